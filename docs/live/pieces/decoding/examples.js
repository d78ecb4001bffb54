// Scores of a next token: those of the chapter, and of the model that it writes with.

/**
 * @typedef {object} Example
 * @property {string} name
 * @property {string[]} tokens
 * @property {Float32Array} logits
 */

/**
 * @param {string} name
 * @param {number[]} logits
 * @returns {Example}
 */
function lettered(name, logits) {
  return { name, tokens: logits.map((_, i) => "ABCDEFGH"[i]), logits: Float32Array.from(logits) };
}

// What the package's model of Shakespeare gives, log p in nats; a test holds them to it.
const KING = {
  W: -2.10, I: -2.45, A: -2.67, N: -2.73, H: -2.73, S: -2.81,
  M: -2.98, G: -2.99, The: -3.16, B: -3.22, And: -3.25, O: -3.45,
};

/** @type {Example[]} */
export const EXAMPLES = [
  lettered("rather sure", [4.0, 2.2, 1.2, 0.8, 0.5, 0.2, 0.0, -0.3]),
  lettered("not sure", [1.0, 0.9, 0.8, 0.6, 0.5, 0.3, 0.1, -0.6]),
  lettered("five tokens", [0.40, 0.30, 0.15, 0.10, 0.05]
    .map((p) => Math.log(Math.fround(p)))),
  {
    name: "the 12 likeliest pieces after “KING HENRY VI:”",
    tokens: Object.keys(KING),
    logits: Float32Array.from(Object.values(KING)),
  },
];
