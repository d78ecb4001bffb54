/**
 * The position-wise feed-forward network: two linear layers, an activation between.
 *
 * Twin of tformer/nn/feed_forward.py.
 *
 * T length · D d_model · F d_ff
 */

import { Linear, Matrix } from "./linear.js";

/** @typedef {import("./recording.js").Run} Run */
/** @typedef {import("./safetensors.js").Tensors} Tensors */
/** @typedef {import("./transformer.js").Config} Config */

/**
 * Transform each position by itself: FFN(x) = max(0, x W₁ + b₁) W₂ + b₂.
 *
 * Vaswani et al. 2017, section 3.3, equation 2.
 */
export class FeedForward {
  /**
   * @param {Tensors} tensors
   * @param {string} name in the model
   * @param {Config} config
   */
  constructor(tensors, name, { dModel, dFf, bias }) {
    this.name = name;
    this.linear1 = new Linear(tensors, `${name}.linear1`, dFf, dModel, bias);
    this.linear2 = new Linear(tensors, `${name}.linear2`, dModel, dFf, bias);
  }

  /**
   * @param {Matrix} x (T, D)
   * @param {Run} run `NAME.hidden` is what the activation lets through
   * @returns {Matrix} (T, D)
   */
  forward(x, run) {
    const relu = this.linear1.forward(x, run).map((h) => Math.max(0, h)); // (T, F)
    const hidden = run.keep(`${this.name}.hidden`, relu);
    return run.keep(this.name, this.linear2.forward(hidden, run)); // (T, D)
  }
}
