// The steps of <live-attention> as a table: score, division, exponential, weight, mean.

import { paint } from "../../ui/colours.js";
import { h } from "../../ui/dom.js";
import { fixed, grouped } from "../../ui/format.js";

/** @typedef {import("../attention.js").Key} Key */
/** @typedef {import("../attention.js").Result} Result */

/** @param {number} power */
function short(power) {
  if (power >= 1e5) {
    const digits = Math.floor(Math.log10(power));
    return `${fixed(power / 10 ** digits, 1)} · 10${superscript(digits)}`;
  }
  return power >= 1000 ? grouped(power) : fixed(power, power >= 100 ? 1 : 2);
}

/** @param {number} n */
function superscript(n) {
  return String(n).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]);
}

/**
 * @param {Key[]} keys
 * @returns {{element: HTMLElement, update: (result: Result, by: string) => void}}
 */
export function steps(keys) {
  const division = h("th", { scope: "col" });
  const rows = keys.map(({ word, colour }) => {
    const cells = [0, 1, 2].map(() => h("td"));
    const bar = h("span", { class: `attention-bar ${colour}` });
    const weight = h("td", { class: "attention-weight" });
    const row = h("tr", {}, h("th", { scope: "row", class: colour, text: word }), ...cells,
      weight);
    return { row, cells, bar, weight };
  });
  const table = h("table", { class: "attention-steps" },
    h("caption", { class: "live-said", text: "The steps from scores to weights" }),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "key" }),
      h("th", { scope: "col", text: "q · k" }), division,
      h("th", { scope: "col" }, "e", h("sup", { text: "x" })),
      h("th", { scope: "col", text: "weight" }))),
    h("tbody", {}, ...rows.map(({ row }) => row)));
  const places = keys[0].value.map(() => h("td", { class: "live-cell" }));
  const mean = h("table", { class: "attention-mean" },
    h("caption", { class: "live-said", text: "The values, and their mean" }),
    h("tbody", {}, ...keys.map(({ word, colour, value }) => h("tr", {},
      h("th", { scope: "row", class: colour, text: `value of ${word}` }),
      ...value.map((x) => {
        const cell = h("td", { class: "live-cell", text: x });
        paint(cell, x, 10);
        return cell;
      }))),
    h("tr", { class: "new" }, h("th", { scope: "row" }, "new vector of ", h("i", {}, "it")), ...places)));
  return {
    element: h("div", { class: "attention-tables" }, table, mean),
    update(result, by) {
      division.textContent = `÷ ${by}`;
      rows.forEach(({ cells, bar, weight }, i) => {
        [fixed(result.scores[i]), fixed(result.scaled[i]), short(result.powers[i])]
          .forEach((text, step) => (cells[step].textContent = text));
        bar.style.width = `${100 * result.weights[i]}%`;
        weight.replaceChildren(bar, h("span", { text: fixed(result.weights[i], 3) }));
      });
      places.forEach((cell, place) => {
        cell.textContent = fixed(result.output[place]);
        paint(cell, result.output[place], 10);
      });
    },
  };
}
