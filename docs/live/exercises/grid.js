// A mask to click: a grid of switches, with one stop for the Tab key and the arrows.

import { h, uniqueId } from "../ui/dom.js";

/** @typedef {import("./judge.js").Field} Field */

const STEPS = /** @type {Record<string, [number, number]>} */ ({
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
});

/**
 * @param {Field} field
 * @returns {{element: HTMLElement, read: () => number[]}}
 */
export function grid({ asks, shape: [T, S], rows, columns }) {
  const named = rows.length > 0;
  const row = (/** @type {number} */ i) => rows[i] ?? `query ${i}`;
  const column = (/** @type {number} */ j) => columns[j] ?? `${named ? "place" : "key"} ${j}`;
  const cells = Array.from({ length: T * S }, (_, at) => {
    const [i, j] = [Math.floor(at / S), at % S];
    return h("button", {
      type: "button",
      "aria-pressed": "false",
      "aria-label": `${row(i)}, ${column(j)}`,
      tabindex: at ? -1 : 0,
      onclick: () => flip(at),
    });
  });

  /** @param {number} at */
  function flip(at) {
    const cell = cells[at];
    cell.setAttribute("aria-pressed", String(!on(cell)));
    stop(at);
    cell.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** @param {number} at */
  function stop(at) {
    cells.forEach((cell, i) => cell.setAttribute("tabindex", i === at ? "0" : "-1"));
  }

  const id = uniqueId("mask");
  const heads = Array.from({ length: S }, (_, j) => h("span", { text: String(j) }));
  const lines = Array.from({ length: T }, (_, i) => [
    h("span", { class: "answer-row-name", text: named ? rows[i] : String(i) }),
    ...cells.slice(i * S, (i + 1) * S),
  ]);
  const table = h("div", { class: "answer-mask", role: "group", "aria-labelledby": id },
    h("span", { class: "answer-row-name", text: named ? "" : "query ↓ key →" }), ...heads,
    ...lines.flat());
  table.style.setProperty("--columns", String(S));
  table.classList.toggle("answer-named", named);
  table.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const at = cells.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    if (!step || at < 0) return;
    event.preventDefault();
    const i = Math.min(T - 1, Math.max(0, Math.floor(at / S) + step[0]));
    const j = Math.min(S - 1, Math.max(0, (at % S) + step[1]));
    stop(i * S + j);
    cells[i * S + j].focus();
  });
  const help = named ? "Click what changes." : "Click what may be attended to.";
  return {
    element: h("div", { class: "answer-grid" }, h("p", { id, text: `${asks}.` }), table,
      h("p", { class: "answer-help", text: `${help} Arrow keys move, the space bar switches.` })),
    read: () => cells.map((cell) => Number(on(cell))),
  };
}

/** @param {Element} cell */
const on = (cell) => cell.getAttribute("aria-pressed") === "true";
