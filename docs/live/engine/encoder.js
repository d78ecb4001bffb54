/**
 * The encoder: layers of self-attention and feed-forward, each in its residual.
 *
 * Twin of tformer/nn/encoder.py.
 *
 * S source length · D d_model
 */

import { FeedForward } from "./feed-forward.js";
import { MultiHeadAttention } from "./heads.js";
import { LayerNorm } from "./norm.js";
import { Residual } from "./residual.js";

/** @typedef {import("./linear.js").Matrix} Matrix */
/** @typedef {import("./masks.js").Mask} Mask */
/** @typedef {import("./recording.js").Run} Run */
/** @typedef {import("./safetensors.js").Tensors} Tensors */
/** @typedef {import("./transformer.js").Config} Config */

/**
 * Attend to the whole source, then transform each position.
 *
 * Vaswani et al. 2017, section 3.1 and figure 1, left.
 */
export class EncoderLayer {
  /**
   * @param {Tensors} tensors
   * @param {string} name in the model
   * @param {Config} config
   */
  constructor(tensors, name, config) {
    this.name = name;
    this.selfAttn = new MultiHeadAttention(tensors, `${name}.self_attn`, config);
    this.feedForward = new FeedForward(tensors, `${name}.feed_forward`, config);
    this.selfAttnResidual = new Residual(tensors, `${name}.self_attn_residual`, config);
    this.feedForwardResidual = new Residual(tensors, `${name}.feed_forward_residual`, config);
  }

  /**
   * @param {Matrix} x (S, D)
   * @param {Mask} attnMask (S, S), true = may attend
   * @param {Run} run
   * @returns {Matrix} (S, D)
   */
  forward(x, attnMask, run) {
    /** @param {Matrix} x */
    const attend = (x) => this.selfAttn.forward(x, x, run, { attnMask });
    /** @param {Matrix} x */
    const transform = (x) => this.feedForward.forward(x, run);
    x = this.selfAttnResidual.forward(x, attend, run); // (S, D)
    x = this.feedForwardResidual.forward(x, transform, run); // (S, D)
    return run.keep(this.name, x);
  }
}

/** A stack of encoder layers; with pre-norm it ends with a norm. */
export class Encoder {
  /**
   * @param {Tensors} tensors
   * @param {string} name in the model
   * @param {Config} config
   */
  constructor(tensors, name, config) {
    const { numEncoderLayers, normFirst, dModel, eps, bias } = config;
    this.name = name;
    this.layers = Array.from(
      { length: numEncoderLayers },
      (_, i) => new EncoderLayer(tensors, `${name}.layers.${i}`, config),
    );
    this.norm = normFirst ? new LayerNorm(tensors, `${name}.norm`, dModel, eps, bias) : null;
  }

  /**
   * @param {Matrix} x (S, D)
   * @param {Mask} attnMask (S, S), true = may attend
   * @param {Run} run
   * @returns {Matrix} (S, D)
   */
  forward(x, attnMask, run) {
    for (const layer of this.layers) x = layer.forward(x, attnMask, run);
    return run.keep(this.name, this.norm ? this.norm.forward(x, run) : x);
  }
}
