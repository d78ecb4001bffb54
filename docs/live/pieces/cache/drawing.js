// One step of writing a text: the tokens that are read, what their queries look at, and
// which keys and values are computed, kept, or still to come.

import { svg } from "../../ui/dom.js";
import { fitted } from "../../ui/fit.js";

export const WORDS = ["the", "cat", "sat", "on", "the", "mat", "."];
const [QUERY, KEY, VALUE, CELL, BOTTOM] = [56, 150, 188, 34, 250];

/** @param {() => void} redraw when the width has changed */
export function stepDrawing(redraw) {
  const drawing = fitted(redraw);

  /**
   * @param {{length: number, tokens: number}} step the text has `length` tokens, and its
   *   newest `tokens` are read
   * @param {boolean} moving
   */
  function update({ length, tokens }, moving) {
    drawing.height = BOTTOM;
    const wide = drawing.width / WORDS.length;
    const middle = (/** @type {number} */ i) => (i + 0.5) * wide;
    const first = length - tokens; // of those that are read
    const parts = [];
    if (first) parts.push(name(QUERY + 5, "query"));
    parts.push(name(BOTTOM - 8, "keys and values"));
    for (let q = first; q < length; q++) {
      for (let k = 0; k <= q; k++) {
        const bend = (QUERY + KEY) / 2;
        parts.push(svg("path", { class: moving ? "look moving" : "look", pathLength: 1,
          d: `M${middle(q)} ${QUERY + 9}C${middle(q)} ${bend} ${middle(k)} ${bend} ` +
            `${middle(k)} ${KEY}` }));
      }
    }
    WORDS.forEach((word, i) => {
      const written = i < length;
      parts.push(svg("text", { class: written ? "strong" : "soft", x: middle(i), y: 20,
        "text-anchor": "middle", text: written ? word : "·" }));
      if (i >= first && written) {
        parts.push(svg("circle", { class: "query", cx: middle(i), cy: QUERY, r: 9 }));
      }
      const state = !written ? "empty" : i < first ? "kept" : "new";
      parts.push(cell(middle(i), KEY, wide, state, "k"), cell(middle(i), VALUE, wide, state, "v"));
    });
    drawing.element.replaceChildren(...parts);
  }
  return { element: drawing.element, update };
}

/**
 * @param {number} y
 * @param {string} text
 */
function name(y, text) {
  return svg("text", { class: "soft row-name", x: 0, y, text });
}

/**
 * @param {number} x of its middle
 * @param {number} y of its top
 * @param {number} wide
 * @param {"new" | "kept" | "empty"} state
 * @param {string} letter
 */
function cell(x, y, wide, state, letter) {
  const side = Math.min(wide - 6, 64);
  const box = svg("rect", { x: x - side / 2, y, width: side, height: CELL, rx: 3 });
  const text = state === "empty" ? "" : letter;
  return svg("g", { class: `kv ${state}` }, box,
    svg("text", { x, y: y + CELL / 2 + 5, "text-anchor": "middle", text }));
}
