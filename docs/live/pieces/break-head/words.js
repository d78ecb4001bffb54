// What is said of a bet. Every number is of the model in the page, and of this date.

import { headOf } from "../../explorer/head-view.js";
import { spoken } from "../../explorer/maps.js";
import { h } from "../../ui/dom.js";
import { percent } from "../../ui/format.js";

/** @typedef {import("../../explorer/head-view.js").Head} Head */
/** @typedef {import("../../explorer/runs.js").View} View */
/** @typedef {import("../../explorer/runs.js").Writing} Writing */

const CHAPTERS = new URL("../../../chapters/", import.meta.url);

/**
 * Whether a head changes what is written.
 * @param {Writing} whole
 * @param {Writing} shown
 */
export function breaks(whole, shown) {
  const ids = (/** @type {Writing} */ { tokens }) => tokens.map(({ id }) => id).join();
  return ids(whole) !== ids(shown);
}

/**
 * Say whether the bet was right.
 * @param {View} view of the model without the head
 */
export function outcome({ whole, shown }) {
  if (!breaks(whole, shown)) {
    return `Not this one. Without it the model still writes ${whole.text || "nothing"}.`;
  }
  return `Right: without it the model writes ${shown.text || "nothing"}, and not ${whole.text || "nothing"}.`;
}

/**
 * Say what a head attends to while this date is written, in one sentence.
 * @param {View} view of the whole model
 * @param {string} name
 */
export function attends(view, name) {
  const head = headOf(view, name);
  if (!head) return "";
  return head.kind === "cross" ? across(head) : within(head);
}

/**
 * Of a cross-attention: at what it looks most, for each part of the date.
 * @param {Head} head
 */
function across({ rows, columns, weights }) {
  /** @type {{written: string, seen: string[]}[]} */
  const parts = [{ written: "", seen: [] }];
  let sum = 0;
  rows.forEach(({ mark }, t) => {
    const row = [...weights.row(t)];
    const most = row.indexOf(Math.max(...row));
    sum += row[most];
    if (mark === "-" || mark === "▮") parts.push({ written: "", seen: [] });
    else {
      const part = /** @type {typeof parts[0]} */ (parts.at(-1));
      part.written += mark;
      part.seen.push(columns[most].name);
    }
  });
  const told = parts.filter(({ written }) => written)
    .map(({ written, seen }) => `for ${written} at ${seen.join(", ")}`);
  return `It looks most ${told.join("; ")}; this is ${percent(sum / rows.length)} of its weight on average.`;
}

/**
 * Of a self-attention: the neighbour or the token that gets most of its weight.
 * @param {Head} head
 */
function within({ kind, rows, columns, weights }) {
  const masked = kind === "masked";
  /** @type {[string, number][]} */
  const neighbours = masked
    ? [["the newest token", 0], ["the token before the newest", -1], ["the token two before the newest", -2]]
    : [["itself", 0], ["the one before it", -1], ["the one after it", 1], ["the one two before it", -2], ["the one two after it", 2]];
  /** @param {(t: number) => number} at */
  const mean = (at) => rows.reduce((sum, _, t) => sum + (weights.row(t)[at(t)] ?? 0), 0) / rows.length;
  const all = [
    ...neighbours.map(([name, by]) => ({ name, share: mean((t) => t + by) })),
    ...columns.map(({ name }, s) => ({ name: `“${name}” (${s + 1})`, share: mean(() => s) })),
  ];
  const most = all.reduce((best, each) => (each.share > best.share ? each : best));
  const who = masked ? "Of what is written it looks" : "In the text each token looks";
  return `${who} most at ${most.name}: ${percent(most.share)} of its weight on average.`;
}

/**
 * The sections that explain it: what a head is worth, and what a map does not show.
 * @param {string} head
 * @param {boolean} broken
 */
export function explained(head, broken) {
  const told = broken ? "What one head is worth" : "A map shows where a head looks, not what it is worth";
  const links = [link(told, "patching/#what-is-one-head-worth")];
  if (head.includes("decoder") && !head.includes("cross")) {
    links.push(link("What a head computes", "what-a-head-computes/#the-question"));
  }
  return links;
}

/** @param {string} text @param {string} section */
function link(text, section) {
  return h("a", { href: new URL(section, CHAPTERS).href, text });
}

/**
 * Say which heads break the date, each alone.
 * @param {string[]} breaking
 * @param {number} count of all heads
 */
export function among(breaking, count) {
  if (!breaking.length) return `None of the ${count} heads breaks this date alone: the others make up for it.`;
  const verb = breaking.length === 1 ? "breaks" : "break";
  return `${breaking.length} of ${count} heads ${verb} this date, each switched off alone: ${breaking.map(spoken).join("; ")}.`;
}
