/**
 * The residual connection around every sub-layer, with post-norm or pre-norm.
 *
 * Twin of tformer/nn/block.py, of what a block does with each of its parts.
 *
 * T length · D d_model
 */

import { add } from "./linear.js";
import { LayerNorm } from "./norm.js";

/** @typedef {import("./linear.js").Matrix} Matrix */
/** @typedef {import("./recording.js").Run} Run */
/** @typedef {import("./safetensors.js").Tensors} Tensors */
/** @typedef {import("./transformer.js").Config} Config */

/**
 * Add a sub-layer's output to its input, and normalise.
 *
 * Post-norm, as in the paper: LayerNorm(x + f(x)). Pre-norm: x + f(LayerNorm(x)).
 */
export class Residual {
  /**
   * @param {Tensors} tensors
   * @param {string} name in the model
   * @param {Config} config
   */
  constructor(tensors, name, { dModel, normFirst, eps, bias }) {
    this.name = name;
    this.normFirst = normFirst;
    this.norm = new LayerNorm(tensors, `${name}.norm`, dModel, eps, bias);
  }

  /**
   * Put a sub-layer, which maps (T, D) to (T, D), around x.
   * @param {Matrix} x (T, D)
   * @param {(x: Matrix) => Matrix} sublayer
   * @param {Run} run
   * @returns {Matrix} (T, D)
   */
  forward(x, sublayer, run) {
    const output = this.normFirst
      ? add(x, sublayer(this.norm.forward(x, run)))
      : this.norm.forward(add(x, sublayer(x)), run);
    return run.keep(this.name, output);
  }
}
