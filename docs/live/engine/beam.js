/**
 * Beam search: keep the best few beginnings, and not only the best one.
 *
 * Twin of tformer/generate/beam.py, for one source.
 *
 * K beams · V vocabulary
 */

/** @typedef {import("./recording.js").Changes} Changes */
/** @typedef {import("./transformer.js").Transformer} Transformer */

/**
 * A text, or the beginning of one.
 * @typedef {object} Beam
 * @property {number[]} ids after the start token, with the end token if it has ended
 * @property {number} sum its log-probability
 * @property {number} score the sum / ((5 + length) / 6)^α
 * @property {number} parent the place of what it goes on from among the beams before; -1 at
 *   the start
 * @property {boolean} ended
 */

/**
 * @typedef {object} Search
 * @property {Beam[]} candidates all that were looked at in this step, the best first
 * @property {Beam[]} live the K best that go on
 * @property {Beam[]} ended the K best that have ended so far
 */

/**
 * How to search.
 * @typedef {object} Beaming
 * @property {number} [numBeams] K
 * @property {number} [maxLen] a text has at most so many tokens, the end token included
 * @property {number} [lengthPenalty] α; 0 for none
 * @property {Changes} [changes] in the model
 */

/**
 * Compute ((5 + |Y|) / 6)^α, by which the log-probability of a text is divided.
 *
 * Wu et al. 2016, section 7, equation 14 (arXiv:1609.08144).
 * @param {number} length tokens |Y| of the text, the end token included
 * @param {number} lengthPenalty α; above 0 it favours longer texts
 */
export function lengthDivisor(length, lengthPenalty) {
  return ((5 + length) / 6) ** lengthPenalty;
}

/**
 * Search the text with the best log P(Y | X) / ((5 + |Y|) / 6)^α, step by step.
 *
 * At each step every beam is continued by every token, and the best K stay. One that ends
 * is put aside; the search goes on until nothing that still grows can beat the K best that
 * have ended.
 * @param {Transformer} model
 * @param {readonly number[]} source ids, with the end token
 * @param {Beaming} [options]
 * @returns {Generator<Search, Beam[], void>} what was looked at in each step; at the end
 *   the K best
 */
export function* searchBeams(model, source, options = {}) {
  const { numBeams: K = 4, maxLen = 11, lengthPenalty = 0.6, changes = {} } = options;
  const { bosId, eosId } = model.vocabulary;
  const { memory } = model.encode(source, changes);
  /** @type {Beam[]} */
  let live = [{ ids: [], sum: 0, score: 0, parent: -1, ended: false }];
  /** @type {Beam[]} */
  let ended = [];
  for (let length = 1; length <= maxLen; length++) {
    const divisor = lengthDivisor(length, lengthPenalty);
    const all = live.flatMap(({ ids, sum }, parent) => {
      const { logits } = model.decode([bosId, ...ids], memory, changes);
      return [...logSoftmax(logits.row(ids.length))].map((logProbability, id) => ({
        ids: [...ids, id],
        sum: sum + logProbability,
        score: (sum + logProbability) / divisor,
        parent,
        ended: id === eosId,
      }));
    });
    all.sort((a, b) => b.sum - a.sum);
    // So many that, whichever of them end, K are left that go on.
    const candidates = all.slice(0, 2 * K);
    // What ends counts only if it is among the K best, as in a beam of K.
    const complete = candidates.slice(0, K).filter((beam) => beam.ended || length === maxLen);
    ended = [...ended, ...complete].sort((a, b) => b.score - a.score).slice(0, K);
    live = candidates.filter((beam) => !beam.ended).slice(0, K);
    yield { candidates, live: length === maxLen ? [] : live, ended };
    if (length === maxLen || hopeless(live[0], ended[K - 1])) break;
  }
  return ended;

  /**
   * Say whether a sum, which only falls, can no longer beat the worst that has ended.
   * @param {Beam} best
   * @param {Beam | undefined} worst
   */
  function hopeless(best, worst) {
    if (!worst) return false;
    const ahead = [best.ids.length + 1, maxLen].map((n) => lengthDivisor(n, lengthPenalty));
    return best.sum / Math.max(...ahead) <= worst.score;
  }
}

/**
 * Compute log softmax: x - log Σ exp(x).
 * @param {Float32Array} x (V,)
 * @returns {Float64Array} (V,)
 */
function logSoftmax(x) {
  const largest = Math.max(...x);
  const sum = x.reduce((total, value) => total + Math.exp(value - largest), 0);
  return Float64Array.from(x, (value) => value - largest - Math.log(sum));
}
