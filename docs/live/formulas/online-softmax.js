/**
 * The online softmax of one query: three numbers are kept from tile to tile. The same as
 * the inner loop of `tiled_forward` in tformer/nn/tiles.py, in double precision.
 */

import { softmax } from "./softmax.js";

/**
 * @typedef {object} Kept
 * @property {number} m the largest score so far
 * @property {number} l Σ exp(score − m) so far
 * @property {number} o Σ exp(score − m) · value so far
 * @property {number} shrink by what the sums before this tile were multiplied
 */

/** @type {Kept} */
export const NOTHING_READ = { m: -Infinity, l: 0, o: 0, shrink: 1 };

/**
 * Read a tile.
 * @param {Kept} before
 * @param {number[]} scores of the keys of the tile
 * @param {number[]} values
 * @param {boolean} rescales false is the mistake: the earlier sums stay as they were
 * @returns {Kept}
 */
export function readTile(before, scores, values, rescales) {
  const m = Math.max(before.m, ...scores);
  const shrink = rescales ? Math.exp(before.m - m) : 1;
  const powers = scores.map((score) => Math.exp(score - m));
  return {
    m, shrink,
    l: shrink * before.l + powers.reduce((sum, p) => sum + p, 0),
    o: shrink * before.o + powers.reduce((sum, p, i) => sum + p * values[i], 0),
  };
}

/**
 * The mean of the values, weighted by the softmax of all scores: what tiles have to give.
 * @param {number[]} scores
 * @param {number[]} values
 */
export function softmaxMean(scores, values) {
  return softmax(scores).reduce((mean, weight, i) => mean + weight * values[i], 0);
}
