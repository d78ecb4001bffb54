/**
 * A state of fixed size in the place of all keys and values: a token writes, a query
 * reads. The same as tformer/nn/linear_attention.py and tformer/nn/delta_rule.py, token
 * by token, of one head, in double precision.
 */

/** @typedef {number[][]} State (Dk, Dv) */

/**
 * @typedef {object} Written A token.
 * @property {number[]} key (Dk,)
 * @property {number[]} value (Dv,)
 * @property {number} alpha what is kept of the state before it, from 0 to 1
 * @property {number} beta how much of the error is corrected, from 0 to 1
 */

/**
 * @param {number} keyDim
 * @param {number} valueDim
 * @returns {State}
 */
export function emptyState(keyDim, valueDim) {
  return Array.from({ length: keyDim }, () => new Array(valueDim).fill(0));
}

/**
 * What a state answers: Sᵀ q.
 * @param {State} state
 * @param {number[]} query
 */
export function answer(state, query) {
  return state[0].map((_, j) => query.reduce((sum, q, i) => sum + q * state[i][j], 0));
}

/**
 * Linear attention: S ← α S + k vᵀ.
 * @param {State} state
 * @param {Written} token
 */
export function added(state, { key, value, alpha }) {
  return state.map((row, i) => row.map((s, j) => alpha * s + key[i] * value[j]));
}

/**
 * The gated delta rule: S ← α S, then S ← S + β k (v − Sᵀ k)ᵀ.
 * @param {State} state
 * @param {Written} token
 */
export function corrected(state, { key, value, alpha, beta }) {
  const kept = state.map((row) => row.map((s) => alpha * s));
  const answered = answer(kept, key);
  const error = value.map((v, j) => v - answered[j]);
  return kept.map((row, i) => row.map((s, j) => s + beta * key[i] * error[j]));
}
