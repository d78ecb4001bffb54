/**
 * The decoder: causal self-attention, attention to the source, feed-forward.
 *
 * Twin of tformer/nn/decoder.py.
 *
 * T target length · S source length · D d_model
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
 * Attend to the target so far, then to the source, then transform each position.
 *
 * Vaswani et al. 2017, section 3.1 and figure 1, right.
 */
export class DecoderLayer {
  /**
   * @param {Tensors} tensors
   * @param {string} name in the model
   * @param {Config} config
   */
  constructor(tensors, name, config) {
    this.name = name;
    this.selfAttn = new MultiHeadAttention(tensors, `${name}.self_attn`, config);
    this.crossAttn = new MultiHeadAttention(tensors, `${name}.cross_attn`, config);
    this.feedForward = new FeedForward(tensors, `${name}.feed_forward`, config);
    this.selfAttnResidual = new Residual(tensors, `${name}.self_attn_residual`, config);
    this.crossAttnResidual = new Residual(tensors, `${name}.cross_attn_residual`, config);
    this.feedForwardResidual = new Residual(tensors, `${name}.feed_forward_residual`, config);
  }

  /**
   * @param {Matrix} x (T, D)
   * @param {Matrix} memory (S, D), the encoder's output
   * @param {Mask} memoryMask (T, S), true = may attend
   * @param {Run} run
   * @returns {Matrix} (T, D)
   */
  forward(x, memory, memoryMask, run) {
    const isCausal = run.changes.causal;
    /** @param {Matrix} x */
    const toTarget = (x) => this.selfAttn.forward(x, x, run, { isCausal });
    /** @param {Matrix} x */
    const toMemory = (x) => this.crossAttn.forward(x, memory, run, { attnMask: memoryMask });
    /** @param {Matrix} x */
    const transform = (x) => this.feedForward.forward(x, run);
    x = this.selfAttnResidual.forward(x, toTarget, run); // (T, D)
    x = this.crossAttnResidual.forward(x, toMemory, run); // (T, D)
    x = this.feedForwardResidual.forward(x, transform, run); // (T, D)
    return run.keep(this.name, x);
  }
}

/** A stack of decoder layers, each of which attends to the same encoder output. */
export class Decoder {
  /**
   * @param {Tensors} tensors
   * @param {string} name in the model
   * @param {Config} config
   */
  constructor(tensors, name, config) {
    const { numDecoderLayers, normFirst, dModel, eps, bias } = config;
    this.name = name;
    this.layers = Array.from(
      { length: numDecoderLayers },
      (_, i) => new DecoderLayer(tensors, `${name}.layers.${i}`, config),
    );
    this.norm = normFirst ? new LayerNorm(tensors, `${name}.norm`, dModel, eps, bias) : null;
  }

  /**
   * @param {Matrix} x (T, D)
   * @param {Matrix} memory (S, D), the encoder's output
   * @param {Mask} memoryMask (T, S), true = may attend
   * @param {Run} run
   * @returns {Matrix} (T, D)
   */
  forward(x, memory, memoryMask, run) {
    for (const layer of this.layers) x = layer.forward(x, memory, memoryMask, run);
    return run.keep(this.name, this.norm ? this.norm.forward(x, run) : x);
  }
}
