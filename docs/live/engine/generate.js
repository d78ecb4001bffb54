/**
 * From a trained model's scores to a text, token by token.
 *
 * Twin of tformer/generate/decode.py. The package keeps keys and values in a
 * cache; here the whole target is read anew at each step, so that the record of each step
 * is whole.
 *
 * S length of the source · V vocabulary
 */

import { softmax } from "./attention.js";
import { Matrix } from "./linear.js";
import { Recording } from "./recording.js";
import { draw, filtered, seededRandom } from "./sampling.js";

/** @typedef {import("./recording.js").Changes} Changes */
/** @typedef {import("./sampling.js").Filters} Filters */
/** @typedef {import("./transformer.js").Transformer} Transformer */

/**
 * How to write.
 * @typedef {object} Writing
 * @property {Changes} [changes] in the model
 * @property {number} [maxLen] write at most so many tokens, the end token included; 11, an
 *   ISO date and its end, if not given
 * @property {number} [temperature] draw from softmax(logits / temperature); 0, if not given,
 *   takes the likeliest
 * @property {number} [seed] of what is drawn: the same seed, the same text
 */

/**
 * One token more.
 * @typedef {object} Step
 * @property {number[]} target the ids that were read: start token and all before
 * @property {number} id the token that was chosen
 * @property {number[]} ids all that is written so far, `id` included
 * @property {Float32Array} logits (V,), of what follows `target`
 * @property {Float32Array} probabilities (V,), from which `id` was chosen: after
 *   temperature and filters
 * @property {Recording} record every number of encoder and decoder at this step
 */

/** A date in ISO 8601 has ten characters, and the end token follows. */
export const MAX_LEN = 11;

/**
 * Write token by token; `for (const step of write(…))` goes at the caller's pace.
 * @param {Transformer} model
 * @param {readonly number[]} source S ids, with the end token
 * @param {Writing & Filters} [options]
 * @returns {Generator<Step, void, void>}
 */
export function* write(model, source, options = {}) {
  const { changes = {}, maxLen = MAX_LEN, temperature = 0, seed = 0, ...filters } = options;
  const { bosId, eosId } = model.vocabulary;
  const random = seededRandom(seed);
  const { memory, record: encoding } = model.encode(source, changes);
  /** @type {number[]} */
  let ids = [];
  while (ids.length < maxLen && ids.at(-1) !== eosId) {
    const target = [bosId, ...ids];
    const decoded = model.decode(target, memory, changes);
    const logits = decoded.logits.row(target.length - 1); // (V,)
    const sharpened = temperature > 0 ? filtered(logits, temperature, filters) : logits;
    const probabilities = softmax(new Matrix(1, logits.length, sharpened)).data; // (V,)
    const id = temperature > 0 ? draw(probabilities, random) : argmax(logits);
    ids = [...ids, id];
    const record = new Recording([...encoding, ...decoded.record]);
    yield { target, id, ids, logits, probabilities, record };
  }
}

/**
 * Append the likeliest next token, argmax p(next | so far), until the end token.
 * @param {Transformer} model
 * @param {readonly number[]} source S ids, with the end token
 * @param {{changes?: Changes, maxLen?: number}} [options]
 * @returns {{ids: number[], steps: Step[]}} ids with the end token, if it came
 */
export function greedy(model, source, { changes, maxLen } = {}) {
  const steps = [...write(model, source, { changes, maxLen })];
  return { ids: steps.at(-1)?.ids ?? [], steps };
}

/**
 * The place of the largest number; the first of equal ones.
 * @param {Float32Array} x
 */
export function argmax(x) {
  return x.reduce((best, value, i) => (value > x[best] ? i : best), 0);
}
