// The steps of one attention, for one token and the picked head.

import { fixed } from "../ui/format.js";
import { headOf } from "./head-view.js";
import { normStep, residualStep, sumAfter } from "./path.js";

/** @typedef {import("./runs.js").View} View */
/** @typedef {import("./path.js").PathStep} PathStep */
/** @typedef {ArrayLike<number>} Numbers */

/**
 * The head that is shown of an attention: the picked one, or that of the same number.
 * @param {string} attention
 * @param {string} head
 */
export function headIn(attention, head) {
  return `${attention}:${head.split(":")[1]}`;
}

/**
 * @param {View} view
 * @param {string} attention
 * @param {number} at
 * @param {Numbers} x what came in
 * @returns {PathStep[]}
 */
export function attentionSteps(view, attention, at, x) {
  const { record, state, model } = view;
  const head = headIn(attention, state.head);
  const shown = headOf(view, head);
  if (!record || !shown) return [];
  const [h, kept] = [Number(head.split(":")[1]), record.attention(attention)];
  const { dModel, numHeads } = model.config;
  const Dh = dModel / numHeads;
  const tokens = shown.columns;
  const rows = (/** @type {import("../engine/linear.js").Matrix} */ m) =>
    tokens.map((_, s) => m.row(s));
  const cross = attention.endsWith("cross_attention");
  const hidden = [...kept.masked[h].row(at)].filter((score) => score === -Infinity).length;
  const factor = state.scale / Math.sqrt(Dh);
  const whose = cross ? "of the memory, the encoder's output" : "of the same text";

  return [
    normStep(record.matrix(`${attention}_norm`).row(at), x),
    {
      title: "Query, keys, values",
      text: `Head ${h + 1} of ${numHeads}: ${Dh} numbers each. The query is this token's; there is a key and a value for each token ${whose}.`,
      quotes: ["q", "k", "v"],
      parts: [
        { kind: "vector", name: "query", values: kept.query[h].row(at) },
        { kind: "vectors", name: "keys", tokens, rows: rows(kept.key[h]) },
        { kind: "vectors", name: "values", tokens, rows: rows(kept.value[h]) },
      ],
    },
    {
      title: "Q · K",
      text: "The dot product of the query with each key.",
      quotes: ["scores"],
      parts: [{ kind: "row", name: "scores", tokens, values: kept.scores[h].row(at) }],
    },
    {
      title: `Scale: × ${fixed(factor, 4)}`,
      text: `1/√d_k = 1/√${Dh} = ${fixed(1 / Math.sqrt(Dh), 2)}${state.scale === 1 ? "" : `, here × ${state.scale}`}. The package multiplies the query by it first; the product is the same.`,
      quotes: ["scale"],
      parts: [{ kind: "row", name: "scaled scores", tokens, values: kept.scaled[h].row(at) }],
    },
    {
      title: "Mask",
      text: maskText(hidden, cross, attention.startsWith("encoder"), kept.mask !== null),
      quotes: ["masked"],
      parts: [{ kind: "row", name: "masked scores", tokens, values: kept.masked[h].row(at) }],
    },
    {
      title: "Softmax",
      text: "e to the power of each score, divided by their sum: positive, and their sum is 1.",
      quotes: ["weights-masked"],
      parts: [{ kind: "row", name: "weights", tokens, values: kept.weights[h].row(at), digits: 4, most: 1 }],
    },
    {
      title: "Weighted sum",
      text: state.off.includes(head)
        ? "The sum of the values, each times its weight. This head is switched off: zeros go on."
        : "The sum of the values, each times its weight.",
      quotes: ["mixed"],
      parts: [{ kind: "vector", name: `head ${h + 1}`, values: kept.heads[h].row(at) }],
    },
    {
      title: "Heads joined",
      text: `The ${numHeads} heads side by side, ${numHeads} · ${Dh} = ${dModel} numbers (head ${h + 1} outlined); then a matrix mixes them.`,
      quotes: ["merge", "out"],
      parts: [
        { kind: "vector", name: "heads side by side", values: kept.joined.row(at), part: [h * Dh, (h + 1) * Dh] },
        { kind: "vector", name: "output of the attention", values: kept.output.row(at) },
      ],
    },
    residualStep(record.matrix(sumAfter(attention)).row(at)),
  ];
}

/**
 * @param {number} hidden
 * @param {boolean} cross
 * @param {boolean} encoder
 * @param {boolean} masked
 */
function maskText(hidden, cross, encoder, masked) {
  if (!masked) return "Switched off: the model may look at what comes after this token.";
  const what = cross || encoder ? "unknown to the model" : "later than this token";
  if (hidden === 0) return cross || encoder
    ? "Every token of the source may be looked at: nothing is hidden."
    : "No token that is written so far comes after this one: nothing is hidden.";
  return `What may not be looked at becomes −∞: ${hidden} token${hidden === 1 ? "" : "s"} ${what}.`;
}
