// The smallest language model: a table of what follows each token. It is the chapter's.

import { Matrix } from "../../engine/linear.js";

/** @typedef {import("../../engine/transformer.js").Transformer} Transformer */

export const TOKENS = ["a", "b", ".", "start"];

export const [END, START] = [2, 3];

/**
 * The log-probabilities of what follows each token: the row of the token before.
 * @param {number} first the probability of "a" as the first token
 */
export function logProbabilities(first) {
  const rows = [
    [0.3, 0.3, 0.4, 0],
    [0.05, 0.05, 0.9, 0],
    [0, 0, 1, 0],
    [first, 1 - first, 0, 0],
  ];
  return rows.map((row) => row.map(Math.log));
}

/**
 * A model that looks its scores up, with as much of a Transformer as a search asks for.
 * @param {number[][]} scores
 */
export function tableModel(scores) {
  const model = {
    vocabulary: { bosId: START, eosId: END },
    encode: () => ({ memory: null }),
    decode: (/** @type {number[]} */ ids) => {
      const logits = Float32Array.from(ids.flatMap((id) => scores[id]));
      return { logits: new Matrix(ids.length, TOKENS.length, logits) };
    },
  };
  return /** @type {Transformer} */ (/** @type {unknown} */ (model));
}

/** @param {readonly number[]} ids */
export function textOf(ids) {
  return ids.map((id) => TOKENS[id]).join("");
}
