/**
 * Every number that a model computes on the way, by the name of the module that did it.
 *
 * Twin of tformer/nn/recording.py, which keeps the weights of each attention; here all
 * outputs are kept. A name is the module's in the package: what `record.matrix(
 * "encoder.blocks.0.feed_forward.linear1")` returns is the output of that module in
 * PyTorch.
 *
 * T queries · S keys · D d_model · H heads · G key/value heads · Dh head_dim
 */

import { Matrix } from "./linear.js";

/** @typedef {import("./attention.js").Weighing} Weighing */
/** @typedef {import("./masks.js").Mask} Mask */

/**
 * What to change in a trained model while it runs.
 * @typedef {object} Changes
 * @property {ReadonlySet<string>} [off] heads switched off: their weighted sum is 0.
 *   "decoder.blocks.1.cross_attention:2" is the third head of that attention
 * @property {number} [scale] factor on 1/√d_k; √d_k itself is no scaling at all
 * @property {number} [positions] factor on the positions added to the embeddings
 * @property {boolean} [causal] hide the future in the decoder; as the model was trained
 *   if not given
 */

/** What one attention computed; arrays have one matrix for each head. */
export class AttentionRecord {
  /**
   * @param {{query: Matrix[], key: Matrix[], value: Matrix[], mask: Mask | null}} given
   */
  constructor({ query, key, value, mask }) {
    /** H × (T, Dh) */
    this.query = query;
    /** G × (S, Dh) */
    this.key = key;
    /** G × (S, Dh) */
    this.value = value;
    /** (T, S), true = may attend; null if nothing is hidden */
    this.mask = mask;
    /** @type {Matrix[]} Q Kᵀ, H × (T, S) */
    this.scores = [];
    /** @type {Matrix[]} times the scale, H × (T, S) */
    this.scaled = [];
    /** @type {Matrix[]} -Infinity where hidden, H × (T, S) */
    this.masked = [];
    /** @type {Matrix[]} softmax of each row, H × (T, S) */
    this.weights = [];
    /** @type {Matrix[]} the weighted sums of values, H × (T, Dh); 0 if switched off */
    this.heads = [];
    /** the heads side by side, (T, H · Dh) */
    this.joined = new Matrix(0, 0);
    /** the output of out_proj, (T, D) */
    this.output = new Matrix(0, 0);
  }

  /**
   * Append what one head computed.
   * @param {Weighing} weighing
   * @param {Matrix} head (T, Dh)
   */
  push({ scores, scaled, masked, weights }, head) {
    this.scores.push(scores);
    this.scaled.push(scaled);
    this.masked.push(masked);
    this.weights.push(weights);
    this.heads.push(head);
  }
}

/**
 * A map from names of modules to what they computed.
 * @extends {Map<string, Matrix | AttentionRecord>}
 */
export class Recording extends Map {
  /**
   * The output of a module, such as "encoder.blocks.0.after_attention".
   * @param {string} name
   * @returns {Matrix} (T, its width)
   */
  matrix(name) {
    const found = this.get(name);
    if (found instanceof Matrix) return found;
    if (found instanceof AttentionRecord) return found.output;
    throw new RangeError(`nothing is recorded under ${name}`);
  }

  /**
   * The steps of an attention, such as "decoder.blocks.1.cross_attention".
   * @param {string} name
   * @returns {AttentionRecord}
   */
  attention(name) {
    const found = this.get(name);
    if (found instanceof AttentionRecord) return found;
    throw new RangeError(`${name} is no attention that is recorded`);
  }
}

/** One pass through the model: what is changed in it, and what is recorded of it. */
export class Run {
  /**
   * @param {Changes} changes
   * @param {{causal: boolean}} trained how the model was trained
   */
  constructor({ off = new Set(), scale = 1, positions = 1, causal }, trained) {
    this.changes = { off, scale, positions, causal: causal ?? trained.causal };
    this.record = new Recording();
  }

  /**
   * Record the output of a module, and hand it on.
   * @param {string} name
   * @param {Matrix} output
   * @returns {Matrix} the same
   */
  keep(name, output) {
    this.record.set(name, output);
    return output;
  }

  /**
   * Begin the record of an attention.
   * @param {string} name
   * @param {{query: Matrix[], key: Matrix[], value: Matrix[], mask: Mask | null}} given
   * @returns {AttentionRecord}
   */
  keepAttention(name, given) {
    const kept = new AttentionRecord(given);
    this.record.set(name, kept);
    return kept;
  }

  /**
   * Say whether a head is switched off.
   * @param {string} name of the attention
   * @param {number} head
   */
  isOff(name, head) {
    return this.changes.off.has(`${name}:${head}`);
  }
}
