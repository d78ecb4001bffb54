/**
 * What becomes of a token that a draft proposes: `acceptance` and `after_rejection` of
 * tformer/generate/speculative.py, and the chapter's formulas, in double precision.
 *
 * p the model's probabilities, q the draft's, each (V,)
 */

/**
 * min(1, p / q) of each token; where q is 0 nothing is proposed, and it is 0 here.
 * @param {number[]} p
 * @param {number[]} q
 */
export function acceptance(p, q) {
  return p.map((wanted, x) => (q[x] ? Math.min(1, wanted / q[x]) : 0));
}

/**
 * (p − q)₊ / Σ (p − q)₊, from which is drawn where a proposal was not kept; p where both
 * are equal.
 * @param {number[]} p
 * @param {number[]} q
 */
export function afterRejection(p, q) {
  const missing = p.map((wanted, x) => Math.max(wanted - q[x], 0));
  const sum = missing.reduce((a, b) => a + b);
  return sum ? missing.map((each) => each / sum) : p;
}

/**
 * How probably each token is proposed and kept, and how probably it comes after a
 * rejection.
 * @param {number[]} p
 * @param {number[]} q
 * @param {number[]} after from which is drawn after a rejection
 */
export function outcome(p, q, after) {
  const kept = acceptance(p, q).map((accept, x) => q[x] * accept);
  const rate = kept.reduce((a, b) => a + b);
  return { kept, rate, replaced: after.map((each) => (1 - rate) * each) };
}

/**
 * 1 + α + … + α^K: the tokens that a forward of the model writes.
 * @param {number} rate α
 * @param {number} ahead K
 */
export function tokensAForward(rate, ahead) {
  return Array.from({ length: ahead + 1 }, (_, k) => rate ** k).reduce((a, b) => a + b);
}
