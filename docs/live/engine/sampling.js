/**
 * Sampling: draw the next token at random, from all tokens or the likelier ones.
 *
 * Twin of tformer/generate/sampling.py, for one row of logits.
 *
 * V vocabulary
 */

import { softmax } from "./attention.js";
import { Matrix } from "./linear.js";

/**
 * Which tokens may be drawn; each filter sees what the one before it has left.
 * @typedef {object} Filters
 * @property {number | null} [topK] the k likeliest only
 * @property {number | null} [topP] the fewest that sum to p
 * @property {number | null} [minP] those at least this times as probable as the likeliest
 */

/**
 * Divide by the temperature, then filter: top-k, top-p, min-p.
 * @param {Float32Array} logits (V,)
 * @param {number} temperature above 0; below 1 the likeliest becomes likelier
 * @param {Filters} [filters]
 * @returns {Float32Array} (V,), -Infinity for what may not be drawn
 */
export function filtered(logits, temperature, { topK, topP, minP } = {}) {
  if (!(temperature > 0 && temperature < Infinity)) {
    throw new RangeError(`temperature (${temperature}) must be above 0 and finite`);
  }
  const largest = Math.max(...logits);
  // No quotient overflows where the largest is 0, however small the temperature.
  /** @type {Float32Array} */
  let kept = logits.map((x) => (x - largest) / Math.max(temperature, 1e-30));
  if (topK != null) kept = topKFilter(kept, topK);
  if (topP != null) kept = topPFilter(kept, topP);
  if (minP != null) kept = minPFilter(kept, minP);
  return kept;
}

/**
 * Order the tokens by their logits, falling; equal ones stay in the vocabulary's order.
 * @param {Float32Array} logits (V,)
 * @returns {number[]} (V,), ids
 */
function byLogit(logits) {
  return [...logits.keys()].sort((a, b) => logits[b] - logits[a]);
}

/**
 * Keep the k largest logits (Fan et al. 2018); of equal ones at the k-th place the first.
 * @param {Float32Array} logits (V,)
 * @param {number} topK k, in [1, V]
 * @returns {Float32Array} (V,)
 */
export function topKFilter(logits, topK) {
  if (!(Number.isInteger(topK) && 1 <= topK && topK <= logits.length)) {
    throw new RangeError(`top_k (${topK}) must be an int in [1, vocab_size = ${logits.length}]`);
  }
  const kept = logits.map(() => -Infinity);
  for (const i of byLogit(logits).slice(0, topK)) kept[i] = logits[i];
  return kept;
}

/**
 * Keep the fewest tokens whose probabilities sum to p or more (Holtzman et al. 2020).
 * @param {Float32Array} logits (V,)
 * @param {number} topP p, in (0, 1]
 * @returns {Float32Array} (V,)
 */
export function topPFilter(logits, topP) {
  if (!(0 < topP && topP <= 1)) throw new RangeError(`top_p (${topP}) must be in (0, 1]`);
  if (topP === 1) return logits;
  const probabilities = softmax(new Matrix(1, logits.length, logits)).data;
  const kept = logits.map(() => -Infinity);
  let before = 0; // what the larger ones sum to
  for (const i of byLogit(logits)) {
    if (before >= Math.fround(topP)) break;
    kept[i] = logits[i];
    before = Math.fround(before + probabilities[i]); // in float32, as the package
  }
  return kept;
}

/**
 * Keep the tokens at least `minP` times as probable as the likeliest (Nguyen et al. 2024).
 * @param {Float32Array} logits (V,)
 * @param {number} minP in (0, 1]
 * @returns {Float32Array} (V,)
 */
export function minPFilter(logits, minP) {
  if (!(0 < minP && minP <= 1)) throw new RangeError(`min_p (${minP}) must be in (0, 1]`);
  // A quotient of probabilities is a difference of logits: the sum of both cancels. It is
  // rounded as the logits are, so that one exactly at the limit stays.
  const smallest = Math.fround(Math.max(...logits) + Math.fround(Math.log(minP)));
  return logits.map((x) => (x < smallest ? -Infinity : x));
}

/**
 * Draw a token: the smallest of independent waiting times, exponential with rate pᵢ, is
 * the i-th with probability pᵢ.
 * @param {Float32Array} probabilities (V,)
 * @param {() => number} random uniform in [0, 1)
 * @returns {number}
 */
export function draw(probabilities, random) {
  let [first, shortest] = [-1, Infinity];
  probabilities.forEach((p, i) => {
    const waiting = -Math.log(1 - random()) / p; // Infinity, or NaN, where p is 0
    if (p > 0 && waiting < shortest) [first, shortest] = [i, waiting];
  });
  return first;
}

/**
 * Make a source of random numbers: mulberry32, the same numbers for the same seed.
 * @param {number} seed
 * @returns {() => number} uniform in [0, 1)
 */
export function seededRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}
