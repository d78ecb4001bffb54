// The picture of writing: what is read above, what is written below, and lines from each
// written token to those that a head looks at. As wide as a line is, so large is its weight.
//
// Cross-attention goes from below to above. The encoder's own attention is drawn as arcs
// above what it reads, the masked self-attention as arcs below what is written.

import { paint } from "../ui/colours.js";
import { h, set, svg } from "../ui/dom.js";
import { percent } from "../ui/format.js";

/** @typedef {import("./tokens.js").Token} Token */

/** Thinner lines are left out, as in the static picture of the home. */
export const LEAST = 0.03;

/**
 * @typedef {Object} Scene
 * @property {Token[]} source
 * @property {Token[]} written
 * @property {(t: number) => ArrayLike<number>} looks weights of written token t
 * @property {number | null} row the written token whose lines are strong; null: all
 * @property {number} [marked] the written token that is marked; `row` if not given
 * @property {number | null} [sourceRow] the token of the source that is marked
 * @property {{kind: "encoder" | "decoder", weights: ArrayLike<number>} | null} [arcs] of
 *   the marked token, to the source or to what was written before
 * @property {number[]} [chosen] probabilities of what is written
 */

/**
 * Make the picture.
 * @param {{onSource?: (s: number) => void, onWritten?: (t: number) => void}} [on] what a
 *   click on a token does; without it tokens are no buttons
 */
export function stage({ onSource, onWritten } = {}) {
  const wires = svg("svg", { class: "stage-wires", "aria-hidden": "true" });
  const source = h("div", { class: "stage-row stage-source", dir: "ltr" });
  const written = h("div", { class: "stage-row stage-written", dir: "ltr" });
  const element = h("div", { class: "stage" }, wires,
    h("div", { class: "stage-line" }, h("span", { class: "stage-name", text: "reads" }), source),
    h("div", { class: "stage-line" }, h("span", { class: "stage-name", text: "writes" }), written));
  group(source, "What the model reads", Boolean(onSource));
  group(written, "What the model writes", Boolean(onWritten));
  /** @type {Scene | null} */
  let scene = null;

  const redraw = () => scene && drawWires(wires, element, source, written, scene);
  new ResizeObserver(redraw).observe(element);

  return {
    element,
    /** @param {Scene} next */
    update(next) {
      scene = next;
      element.classList.toggle("with-arcs-above", next.arcs?.kind === "encoder");
      element.classList.toggle("with-arcs-below", next.arcs?.kind === "decoder");
      fill(source, next.source, onSource, (cell, one, s) => {
        const weight = next.row === null || next.row < 0 ? 0 : next.looks(next.row)[s] ?? 0;
        paint(cell, weight);
        mark(cell, s === next.sourceRow);
        name(cell, `${one.name}${next.row === null ? "" : `, weight ${percent(weight)}`}`);
        cell.classList.toggle("unknown", one.unknown);
      });
      fill(written, next.written, onWritten, (cell, one, t) => {
        mark(cell, t === (next.marked ?? next.row));
        const p = next.chosen?.[t];
        name(cell, p === undefined ? one.name : `${one.name}, probability ${percent(p)}`);
        const note = /** @type {HTMLElement} */ (cell.lastElementChild);
        note.textContent = p === undefined ? "" : `${Math.round(100 * p)}`;
      });
      redraw();
    },
  };
}

/**
 * Make one stop for Tab of many tokens, between which the arrow keys move.
 * @param {HTMLElement} row
 * @param {string} label
 * @param {boolean} active
 */
function group(row, label, active) {
  set(row, { role: "group", "aria-label": label });
  if (!active) return;
  row.addEventListener("keydown", (event) => {
    const cells = [...row.children];
    const at = cells.indexOf(/** @type {Element} */ (document.activeElement));
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: cells.length - 1 }[event.key];
    const cell = /** @type {HTMLElement | undefined} */ (next === undefined ? undefined : cells[next]);
    if (at < 0 || !cell) return;
    event.preventDefault();
    cell.focus();
    cell.click();
  });
}

/**
 * Keep as many cells in a row as there are tokens, and write each anew.
 * @param {HTMLElement} row
 * @param {Token[]} tokens
 * @param {((i: number) => void) | undefined} on
 * @param {(cell: HTMLElement, token: Token, i: number) => void} dress
 */
function fill(row, tokens, on, dress) {
  row.style.setProperty("--tokens", String(tokens.length));
  while (row.children.length > tokens.length) row.lastElementChild?.remove();
  tokens.forEach((one, i) => {
    let cell = /** @type {HTMLElement | undefined} */ (row.children[i]);
    if (!cell) {
      cell = h(on ? "button" : "span", { class: "stage-token", ...(on ? { type: "button" } : {}) },
        h("bdi", { "aria-hidden": "true" }), h("span", { class: "live-said" }),
        h("small", { "aria-hidden": "true" }));
      if (on) cell.addEventListener("click", () => on(i));
      row.append(cell);
    }
    const text = /** @type {Element} */ (cell.firstElementChild);
    if (text.textContent !== one.mark) text.textContent = one.mark;
    dress(cell, one, i);
  });
}

/** @param {HTMLElement} cell @param {boolean} marked */
function mark(cell, marked) {
  cell.classList.toggle("marked", marked);
  if (cell.localName !== "button") return;
  set(cell, { "aria-current": marked ? "true" : false });
  // One cell of the row is reached by Tab: the marked one, or else the first.
  const cells = [...(cell.parentElement?.children ?? [])];
  const stop = cells.find((each) => each.classList.contains("marked")) ?? cells[0];
  for (const each of cells) set(each, { tabindex: each === stop ? 0 : -1 });
}

/**
 * Say a cell's token and its number: the mark alone would be read wrongly.
 * @param {HTMLElement} cell
 * @param {string} text
 */
function name(cell, text) {
  const said = /** @type {Element} */ (cell.children[1]);
  if (said.textContent !== text) said.textContent = text;
}

/**
 * Draw lines and arcs between cells where they stand now.
 * @param {SVGSVGElement} wires
 * @param {HTMLElement} element
 * @param {HTMLElement} source
 * @param {HTMLElement} written
 * @param {Scene} scene
 */
function drawWires(wires, element, source, written, scene) {
  const { width, height, left, top } = element.getBoundingClientRect();
  set(wires, { viewBox: `0 0 ${width} ${height}` });
  const place = (/** @type {Element} */ cell) => {
    const box = cell.getBoundingClientRect();
    return { x: box.left - left + box.width / 2, top: box.top - top, bottom: box.bottom - top };
  };
  const above = [...source.children].map(place);
  const below = [...written.children].map(place);
  const paths = [];
  if (!scene.arcs) {
    for (const [t, from] of below.entries()) {
      const strong = scene.row === null || t === scene.row;
      const weights = scene.looks(t);
      for (const [s, to] of above.entries()) {
        if (weights[s] < LEAST) continue;
        const middle = (from.top + to.bottom) / 2;
        paths.push(line(
          `M${from.x} ${from.top}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.bottom}`,
          weights[s], scene.row === null ? "all" : strong ? "strong" : "faint", `${t} ${s}`));
      }
    }
  } else {
    const inSource = scene.arcs.kind === "encoder";
    const cells = inSource ? above : below;
    const from = cells[(inSource ? scene.sourceRow : scene.row) ?? 0];
    for (const [s, to] of cells.entries()) {
      const weight = scene.arcs.weights[inSource ? s : s + 1] ?? 0;
      if (!from || weight < LEAST) continue;
      paths.push(line(inSource ? over(from, to) : under(from, to), weight, "strong", `arc ${s}`));
    }
  }
  wires.replaceChildren(...paths);
}

/** @typedef {{x: number, top: number, bottom: number}} Place */

/** @param {Place} from @param {Place} to */
function over(from, to) {
  const [near, far] = [from.top, to.top];
  if (from === to) return `M${from.x - 6} ${near}C${from.x - 14} ${near - 22} ${from.x + 14} ${near - 22} ${from.x + 6} ${near}`;
  const peak = Math.min(near, far) - Math.min(64, 14 + Math.abs(from.x - to.x) / 5);
  return `M${from.x} ${near}C${from.x} ${peak} ${to.x} ${peak} ${to.x} ${far}`;
}

/** @param {Place} from @param {Place} to */
function under(from, to) {
  const depth = Math.max(from.bottom, to.bottom) + Math.min(64, 14 + Math.abs(from.x - to.x) / 5);
  return `M${from.x} ${from.bottom}C${from.x} ${depth} ${to.x} ${depth} ${to.x} ${to.bottom}`;
}

/**
 * @param {string} d
 * @param {number} weight
 * @param {string} kind
 * @param {string} pair
 */
function line(d, weight, kind, pair) {
  return svg("path", {
    d: d.replace(/\d+\.\d+/g, (x) => Number(x).toFixed(1)),
    class: kind, "data-pair": pair, "stroke-width": (0.4 + 6.6 * weight).toFixed(2),
  });
}
