/**
 * Masks: booleans of which true means "may attend".
 *
 * Twin of tformer/nn/masks.py. A mask is an array of rows, one a query:
 * `mask[t][s]` says whether query t may attend to key s.
 *
 * T queries · S keys
 */

/** @typedef {boolean[][]} Mask (T, S), true = may attend */

/**
 * Let query t see key s where s <= t + (S - T): itself and what came before.
 *
 * Vaswani et al. 2017, section 3.2.3 (arXiv:1706.03762). With T != S the last query
 * lines up with the last key.
 * @param {number} queryLen number of queries T
 * @param {number} [keyLen] number of keys S
 * @returns {Mask}
 */
export function causalMask(queryLen, keyLen = queryLen) {
  return Array.from({ length: queryLen }, (_, t) =>
    Array.from({ length: keyLen }, (_, s) => s <= t + (keyLen - queryLen)),
  );
}

/**
 * Let every query see the keys that are real tokens, and hide the padding.
 * @param {boolean[]} real (S,), true = a real token
 * @param {number} queryLen number of queries T
 * @returns {Mask}
 */
export function keyMask(real, queryLen) {
  return Array.from({ length: queryLen }, () => [...real]);
}

/**
 * Allow what every mask allows: the logical and. null allows everything.
 * @param {...(Mask | null)} masks all (T, S)
 * @returns {Mask | null} null if every mask is
 */
export function combineMasks(...masks) {
  const given = masks.filter((mask) => mask !== null);
  if (given.length === 0) return null;
  return given[0].map((row, t) => row.map((_, s) => given.every((mask) => mask[t][s])));
}
