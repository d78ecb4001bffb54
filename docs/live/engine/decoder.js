/**
 * The decoder: blocks that read the encoder's output too, and with pre-norm a norm.
 *
 * Twin of tformer/nn/decoder.py.
 *
 * T target length · S source length · D d_model
 */

import { Block } from "./block.js";
import { LayerNorm } from "./norm.js";

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
export class Decoder {
  /**
   * @param {Tensors} tensors
   * @param {string} name in the model
   * @param {Config} config
   */
  constructor(tensors, name, config) {
    const { numDecoderLayers, normFirst, dModel, eps, bias } = config;
    this.name = name;
    this.blocks = Array.from(
      { length: numDecoderLayers },
      (_, i) => new Block(tensors, `${name}.blocks.${i}`, config, true),
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
    const isCausal = run.changes.causal;
    for (const block of this.blocks) x = block.forward(x, run, { isCausal, memory, memoryMask });
    return run.keep(this.name, this.norm ? this.norm.forward(x, run) : x);
  }
}
