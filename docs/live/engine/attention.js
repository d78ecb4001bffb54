/**
 * Scaled dot-product attention: softmax(Q Kᵀ / √d_k) V.
 *
 * Twin of tformer/nn/attention.py, for one head of one text; heads.js runs it for each
 * head. It returns every step on the way, as pictures show them.
 *
 * T queries · S keys · Dh head_dim · Dv width of a value
 */

import { Matrix, linear } from "./linear.js";

/** @typedef {import("./masks.js").Mask} Mask */

/**
 * The steps from scores to weights, each (T, S).
 * @typedef {object} Weighing
 * @property {Matrix} scores Q Kᵀ
 * @property {Matrix} scaled scale · Q Kᵀ
 * @property {Matrix} masked the same, -Infinity where the query may not attend
 * @property {Matrix} weights softmax of each row: rows sum to 1, or are 0 where a query
 *   may attend to nothing
 */

/**
 * Compute how much each query takes from each key: softmax(scale · Q Kᵀ).
 * @param {Matrix} query (T, Dh)
 * @param {Matrix} key (S, Dh)
 * @param {Mask | null} attnMask (T, S), true = may attend
 * @param {{scale?: number}} [options] factor of the scores; 1 / √Dh if not given
 * @returns {Weighing}
 */
export function attentionWeights(query, key, attnMask, { scale = 1 / Math.sqrt(query.cols) } = {}) {
  const scores = linear(query, key); // (T, S): linear computes Q Kᵀ
  const scaled = scores.map((score) => score * scale); // (T, S)
  const masked = attnMask ? maskedFill(scaled, attnMask) : scaled; // (T, S)
  return { scores, scaled, masked, weights: softmax(masked) };
}

/**
 * Average values by weights.
 * @param {Matrix} weights (T, S)
 * @param {Matrix} value (S, Dv)
 * @returns {Matrix} (T, Dv)
 */
export function mixValues(weights, value) {
  const mixed = new Matrix(weights.rows, value.cols);
  for (let t = 0; t < weights.rows; t++) {
    const to = mixed.row(t);
    weights.row(t).forEach((weight, s) => {
      const from = value.row(s);
      for (let d = 0; d < to.length; d++) to[d] += weight * from[d];
    });
  }
  return mixed;
}

/**
 * Attend: Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V.
 *
 * Vaswani et al. 2017, section 3.2.1, equation 1 (arXiv:1706.03762).
 * @param {Matrix} query (T, Dh)
 * @param {Matrix} key (S, Dh)
 * @param {Matrix} value (S, Dv)
 * @param {Mask | null} attnMask (T, S), true = may attend
 * @param {{scale?: number}} [options]
 * @returns {Weighing & {output: Matrix}} output (T, Dv); zeros where a query may attend
 *   to nothing
 */
export function scaledDotProductAttention(query, key, value, attnMask, options) {
  const steps = attentionWeights(query, key, attnMask, options);
  return { ...steps, output: mixValues(steps.weights, value) };
}

/**
 * Put -Infinity where a query may not attend.
 * @param {Matrix} scores (T, S)
 * @param {Mask} mask (T, S)
 * @returns {Matrix} (T, S)
 */
function maskedFill(scores, mask) {
  const filled = new Matrix(scores.rows, scores.cols);
  mask.forEach((row, t) => {
    const [from, to] = [scores.row(t), filled.row(t)];
    row.forEach((allowed, s) => (to[s] = allowed ? from[s] : -Infinity));
  });
  return filled;
}

/**
 * Turn each row of scores into weights: exp(x) / Σ exp(x), positive and of sum 1.
 * @param {Matrix} scores (T, S)
 * @returns {Matrix} (T, S)
 */
export function softmax(scores) {
  const weights = new Matrix(scores.rows, scores.cols);
  for (let t = 0; t < scores.rows; t++) {
    const [from, to] = [scores.row(t), weights.row(t)];
    let largest = -Infinity;
    for (const score of from) largest = Math.max(largest, score);
    if (largest === -Infinity) continue; // all is masked: the row stays 0
    let sum = 0;
    for (const score of from) sum += Math.exp(score - largest); // the largest is exp(0) = 1
    for (let s = 0; s < to.length; s++) to[s] = Math.exp(from[s] - largest) / sum;
  }
  return weights;
}
