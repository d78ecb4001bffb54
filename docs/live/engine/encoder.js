/**
 * The encoder: blocks, and with pre-norm a norm after the last.
 *
 * Twin of tformer/nn/encoder.py.
 *
 * S source length · D d_model
 */

import { Block } from "./block.js";
import { LayerNorm } from "./norm.js";

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
export class Encoder {
  /**
   * @param {Tensors} tensors
   * @param {string} name in the model
   * @param {Config} config
   */
  constructor(tensors, name, config) {
    const { numEncoderLayers, normFirst, dModel, eps, bias } = config;
    this.name = name;
    this.blocks = Array.from(
      { length: numEncoderLayers },
      (_, i) => new Block(tensors, `${name}.blocks.${i}`, config, false),
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
    for (const block of this.blocks) x = block.forward(x, run, { attnMask });
    return run.keep(this.name, this.norm ? this.norm.forward(x, run) : x);
  }
}
