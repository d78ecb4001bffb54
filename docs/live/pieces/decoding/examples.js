// Scores of a next token: those of the chapter.

/**
 * @typedef {object} Example
 * @property {string} name
 * @property {string[]} tokens
 * @property {Float32Array} logits
 */

const SONNET = `shall i compare thee to a summer's day?
thou art more lovely and more temperate:
rough winds do shake the darling buds of may,
and summer's lease hath all too short a date:
sometime too hot the eye of heaven shines,
and often is his gold complexion dimm'd;
and every fair from fair sometime declines,
by chance or nature's changing course untrimm'd;
but thy eternal summer shall not fade.`;

/**
 * The characters that follow one in the sonnet, those seen there, the likeliest first:
 * the model of the section on temperature, which adds 0.001 to each count.
 * @param {string} letter
 * @returns {Example}
 */
function after(letter) {
  const counts = new Map([...new Set(SONNET)].sort().map((character) => [character, 0]));
  for (let i = 1; i < SONNET.length; i++) {
    const now = SONNET[i];
    if (SONNET[i - 1] === letter) counts.set(now, (counts.get(now) ?? 0) + 1);
  }
  const rows = [...counts].sort((a, b) => b[1] - a[1]);
  return {
    name: `the letter after “${letter}” in the sonnet`,
    tokens: rows.map(([character]) => ({ " ": "␣", "\n": "/" })[character] ?? character),
    logits: Float32Array.from(rows, ([, count]) => Math.log(count + 1e-3)),
  };
}

/**
 * @param {string} name
 * @param {number[]} logits
 * @returns {Example}
 */
function lettered(name, logits) {
  return { name, tokens: logits.map((_, i) => "ABCDEFGH"[i]), logits: Float32Array.from(logits) };
}

/** @type {Example[]} */
export const EXAMPLES = [
  lettered("rather sure", [4.0, 2.2, 1.2, 0.8, 0.5, 0.2, 0.0, -0.3]),
  lettered("not sure", [1.0, 0.9, 0.8, 0.6, 0.5, 0.3, 0.1, -0.6]),
  lettered("five tokens", [0.40, 0.30, 0.15, 0.10, 0.05]
    .map((p) => Math.log(Math.fround(p)))),
  after("t"),
];
