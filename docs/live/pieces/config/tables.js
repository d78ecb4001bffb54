// What is written of a config: its parts, what its layers keep of a text, and remarks.

import { written } from "../../formulas/config.js";
import { readable } from "../../formulas/cache.js";
import { h } from "../../ui/dom.js";
import { grouped, percent } from "../../ui/format.js";

/** @typedef {import("../../formulas/config.js").Reading} Reading */
/** @typedef {import("../../formulas/config.js").Row} Row */

/** Where chapters lie, seen from this folder. */
const CHAPTERS = new URL("../../../chapters/", import.meta.url);
const OTHERS = 4; // so many words that are not known are named, the others counted

/**
 * A formula with subscripts: Dh as D and a small h.
 * @param {import("../../formulas/config.js").Term[]} terms
 */
function formula(terms) {
  const text = written(terms);
  return text.split(/([A-Z][a-z])/).map((piece, i) =>
    (i % 2 ? h("span", {}, piece[0], h("sub", { text: piece[1] })) : piece));
}

/** @param {Record<string, number>} sizes */
export function withSizes(sizes) {
  return (/** @type {string | number} */ factor) =>
    grouped(typeof factor === "number" ? factor : sizes[factor]);
}

/**
 * The parameters, part by part; the last row is their sum.
 * @param {Reading} reading
 */
export function partsTable({ rows, parameters, active }) {
  const sparse = active < parameters;
  const used = (/** @type {number} */ part, /** @type {number} */ of) => (!sparse ? []
    : part === of ? [soft("all active")] : [soft(`${share(part, of)} active`), soft(grouped(part))]);
  const body = rows.map((row) => h("tr", {},
    h("th", { scope: "row" },
      h("a", { href: new URL(row.chapter, CHAPTERS).href, text: row.name }),
      h("span", { class: "config-formula" }, ...formula(row.terms)),
      h("span", { class: "config-formula number", text: written(row.terms, withSizes(row.sizes)) })),
    h("td", { text: row.times > 1 ? `× ${row.times}` : "" }),
    h("td", {}, grouped(row.count), soft(share(row.count, parameters)), ...used(row.active, row.count))));
  return [
    h("caption", { text: `The parameters, part by part${sparse ? "; active are those that one token uses" : ""}` }),
    header("part", "layers", "parameters"),
    h("tbody", {}, ...body, h("tr", { class: "config-sum" },
      h("th", { scope: "row", text: "together" }), h("td"),
      h("td", {}, grouped(parameters), ...used(active, parameters)))),
  ];
}

/** @param {...string} names of columns */
function header(...names) {
  return h("thead", {}, h("tr", {}, ...names.map((text) => h("th", { scope: "col", text }))));
}

/** @param {string} text below a number */
function soft(text) {
  return h("span", { class: "config-share", text });
}

/**
 * @param {number} part
 * @param {number} whole
 */
function share(part, whole) {
  const ratio = part / whole;
  return ratio > 0 && ratio < 0.001 ? "< 0.1 %" : percent(ratio, 1);
}

/**
 * The cache, kind of layer by kind of layer.
 * @param {{name: string, layers: number, terms: import("../../formulas/config.js").Term[],
 *   sizes: Record<string, number>, bytes: number}[]} rows
 * @param {number} total
 */
export function cacheTable(rows, total) {
  return [
    h("caption", { text: "The bytes that layers keep of one text" }),
    header("attends to", "layers", "bytes"),
    h("tbody", {}, ...rows.map(({ name, layers, terms, sizes, bytes }) => h("tr", {},
      h("th", { scope: "row" }, name, h("span", { class: "config-formula" }, ...formula(terms)),
        h("span", { class: "config-formula number", text: written(terms, withSizes(sizes)) })),
      h("td", { text: `× ${layers}` }),
      h("td", {}, grouped(bytes), soft(readable(bytes))))),
      h("tr", { class: "config-sum" }, h("th", { scope: "row", text: "together" }), h("td"),
        h("td", {}, grouped(total), soft(readable(total))))),
  ];
}

/** What a reader has to know beside the counts. @param {Reading} reading */
export function remarks({ unknown, notes, kind }) {
  if (!unknown.length) return notes;
  const named = unknown.slice(0, OTHERS).join(", ");
  const more = unknown.length > OTHERS ? ` and ${unknown.length - OTHERS} more` : "";
  return [...notes, `Not known in ${kind}, and not counted: ${named}${more}.`];
}
