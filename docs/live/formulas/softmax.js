/**
 * Turn a row of scores into weights: exp(x) / Σ exp(x), positive and of sum 1; in double
 * precision. Of a matrix, with what is masked, it is in engine/attention.js.
 * @param {readonly number[]} scores
 * @returns {number[]}
 */
export function softmax(scores) {
  const largest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - largest)); // none overflows
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}
