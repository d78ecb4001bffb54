/**
 * Which experts tokens use, how evenly, and the bias that evens it out: the same as
 * `route`, `expert_counts`, `load_balance_loss` and `Router.balance` in
 * tformer/nn/router.py, with softmax for scores, in double precision.
 */

import { softmax } from "./softmax.js";

/** @typedef {{scores: number[][], chosen: number[][]}} Routing of each token */

/**
 * Choose the k experts of each token with the largest scores, the best first.
 * @param {number[][]} logits (tokens, E)
 * @param {number[]} bias (E,), added to the scores for the choice
 * @param {number} k
 * @returns {Routing}
 */
export function route(logits, bias, k) {
  const scores = logits.map(softmax);
  const chosen = scores.map((of) => of
    .map((score, expert) => ({ expert, wanted: score + bias[expert] }))
    .sort((a, b) => b.wanted - a.wanted).slice(0, k).map(({ expert }) => expert));
  return { scores, chosen };
}

/**
 * How many tokens chose each expert.
 * @param {number[][]} chosen
 * @param {number} experts E
 */
export function expertCounts(chosen, experts) {
  const counts = new Array(experts).fill(0);
  for (const expert of chosen.flat()) counts[expert] += 1;
  return counts;
}

/**
 * E · Σ f P: 1 if all experts are used alike, E / k if only k are.
 * @param {Routing} routing
 */
export function loadBalance({ scores, chosen }) {
  const experts = scores[0].length;
  const counts = expertCounts(chosen, experts);
  const P = counts.map((_, e) => scores.reduce((sum, of) => sum + of[e], 0) / scores.length);
  return experts * counts.reduce((sum, count, e) => sum + count / chosen.flat().length * P[e], 0);
}

/**
 * Move the bias by `rate`: up for experts with less than the mean load, down for others.
 * @param {number[]} bias
 * @param {number[]} counts
 * @param {number} rate u
 */
export function balanced(bias, counts, rate) {
  const mean = counts.reduce((a, b) => a + b) / counts.length;
  return bias.map((b, e) => b + rate * Math.sign(mean - counts[e]));
}
