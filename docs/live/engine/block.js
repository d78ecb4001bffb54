/**
 * A block: attention and a feed-forward network, each added to its input.
 *
 * Twin of tformer/nn/block.py, for the encoder and the decoder.
 *
 * T length · S length of the memory · D d_model
 */

import { FeedForward } from "./feed-forward.js";
import { MultiHeadAttention } from "./heads.js";
import { add } from "./linear.js";
import { LayerNorm } from "./norm.js";

/** @typedef {import("./linear.js").Matrix} Matrix */
/** @typedef {import("./masks.js").Mask} Mask */
/** @typedef {import("./recording.js").Run} Run */
/** @typedef {import("./safetensors.js").Tensors} Tensors */
/** @typedef {import("./transformer.js").Config} Config */

/**
 * Layer of the encoder, or with cross-attention of the decoder.
 *
 * Vaswani et al. 2017, section 3.1 and figure 1. Post-norm, as in the paper:
 * LayerNorm(x + f(x)). Pre-norm: x + f(LayerNorm(x)).
 */
export class Block {
  /**
   * @param {Tensors} tensors
   * @param {string} name in the model
   * @param {Config} config
   * @param {boolean} reads attend to a memory too
   */
  constructor(tensors, name, config, reads) {
    const { dModel, normFirst, eps, bias } = config;
    const attention = (/** @type {string} */ part) =>
      new MultiHeadAttention(tensors, `${name}.${part}`, config);
    const norm = (/** @type {string} */ part) =>
      new LayerNorm(tensors, `${name}.${part}_norm`, dModel, eps, bias);
    this.name = name;
    this.normFirst = normFirst;
    this.attention = attention("attention");
    this.attentionNorm = norm("attention");
    this.crossAttention = reads ? attention("cross_attention") : null;
    this.crossAttentionNorm = reads ? norm("cross_attention") : null;
    this.feedForward = new FeedForward(tensors, `${name}.feed_forward`, config);
    this.feedForwardNorm = norm("feed_forward");
  }

  /**
   * @param {Matrix} x (T, D)
   * @param {Run} run `NAME.after_attention`, `NAME.after_cross_attention` and
   *   `NAME.after_feed_forward` are the sums
   * @param {{attnMask?: Mask, isCausal?: boolean, memory?: Matrix, memoryMask?: Mask}} given
   *   which tokens (T, T) a query may attend to; hide later ones; what the encoder made
   *   (S, D), and which of it (T, S) a query may attend to
   * @returns {Matrix} (T, D)
   */
  forward(x, run, { attnMask, isCausal, memory, memoryMask }) {
    const { attention, crossAttention, feedForward, name } = this;
    x = this.#add(x, (y) => attention.forward(y, y, run, { attnMask, isCausal }), this.attentionNorm, run);
    run.keep(`${name}.after_attention`, x); // (T, D)
    if (crossAttention && this.crossAttentionNorm && memory) {
      const read = (/** @type {Matrix} */ y) =>
        crossAttention.forward(y, memory, run, { attnMask: memoryMask });
      x = this.#add(x, read, this.crossAttentionNorm, run);
      run.keep(`${name}.after_cross_attention`, x); // (T, D)
    }
    x = this.#add(x, (y) => feedForward.forward(y, run), this.feedForwardNorm, run);
    run.keep(`${name}.after_feed_forward`, x); // (T, D)
    return run.keep(name, x);
  }

  /**
   * Add to x what a sub-layer makes of it, and normalise.
   * @param {Matrix} x (T, D)
   * @param {(x: Matrix) => Matrix} sublayer
   * @param {LayerNorm} norm
   * @param {Run} run
   * @returns {Matrix} (T, D)
   */
  #add(x, sublayer, norm, run) {
    if (this.normFirst) return add(x, sublayer(norm.forward(x, run)));
    return norm.forward(add(x, sublayer(x)), run);
  }
}
