// The mask of <live-masks>: a button for each pair of query and key.

import { h, set } from "../../ui/dom.js";
import { fixed } from "../../ui/format.js";

/** @typedef {import("../../engine/masks.js").Mask} Mask */
/** @typedef {import("../../engine/linear.js").Matrix} Matrix */

const MOVES = /** @type {Record<string, [number, number]>} */ ({
  ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
});

/**
 * @param {{size: number, toggle: (i: number, j: number) => void,
 *   select: (i: number, j: number) => void}} given
 * @returns {{element: HTMLElement, update: (state: {mask: Mask, two: Mask,
 *   weights: Matrix, query: number, key: number}) => void}}
 */
export function grid({ size, toggle, select }) {
  const all = [...Array(size).keys()];
  const weights = all.map(() => h("td", { class: "masks-weight number" }));
  const buttons = all.map((i) => all.map((j) => h("button", {
    type: "button",
    onclick: () => toggle(i, j),
    onfocus: (event) => {
      if (event.target.matches(":focus-visible")) select(i, j);
    },
    onpointerenter: (event) => {
      if (event.pointerType === "mouse") select(i, j);
    },
    onkeydown: (event) => move(event, i, j),
  })));

  /**
   * @param {KeyboardEvent} event
   * @param {number} i
   * @param {number} j
   */
  function move(event, i, j) {
    const by = MOVES[event.key];
    if (!by) return;
    event.preventDefault();
    /** @param {number} x */
    const inside = (x) => Math.min(size - 1, Math.max(0, x));
    const [row, column] = [inside(i + by[0]), inside(j + by[1])];
    select(row, column);
    buttons[row][column].focus();
  }

  const element = h("table", { class: "masks-grid", role: "grid", "aria-label": "mask" },
    h("thead", {}, h("tr", {}, h("td", { class: "masks-corner" }, "query \\ key"),
      ...all.map((j) => h("th", { scope: "col", text: j })),
      h("th", { scope: "col", class: "masks-weight", text: "weights" }))),
    h("tbody", {}, ...all.map((i) => h("tr", {}, h("th", { scope: "row", text: i }),
      ...buttons[i].map((button) => h("td", {}, button)), weights[i]))));
  return {
    element,
    update({ mask, two, weights: given, query, key }) {
      buttons.forEach((line, i) => line.forEach((button, j) => {
        const later = two[i][j] && !mask[i][j];
        const chosen = i === query && j === key;
        set(button, {
          "aria-pressed": String(mask[i][j]),
          "aria-label": `query ${i}, key ${j}${later ? ", read in 2 layers" : ""}`,
          class: [later && "later", chosen && "chosen"].filter(Boolean).join(" "),
          tabindex: chosen ? 0 : -1,
        });
        button.textContent = later ? "2" : "";
      }));
      weights.forEach((cell, i) => {
        const seen = mask[i].filter(Boolean).length;
        const weight = given.row(i)[mask[i].indexOf(true)] ?? 0;
        cell.textContent = seen ? `${seen} × ${fixed(weight)}` : "all 0";
        cell.classList.toggle("none", !seen);
      });
    },
  };
}
