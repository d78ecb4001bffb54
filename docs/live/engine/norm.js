/**
 * Layer normalisation: each token's vector gets mean 0 and variance 1.
 *
 * Twin of tformer/nn/norm.py.
 *
 * T length · D d_model
 */

import { Matrix } from "./linear.js";

/** @typedef {import("./safetensors.js").Tensors} Tensors */
/** @typedef {import("./recording.js").Run} Run */

/**
 * Compute (x - mean) / √(variance + ε) · weight + bias over each row.
 *
 * Ba et al. 2016, equations 3 and 4 (arXiv:1607.06450). The variance is the biased
 * one: the squares are divided by D, not by D - 1.
 * @param {Matrix} x (T, D)
 * @param {Float32Array} weight (D,), the gain
 * @param {Float32Array | null} bias (D,)
 * @param {number} eps added to the variance
 * @returns {Matrix} (T, D)
 */
export function layerNorm(x, weight, bias, eps) {
  const [T, D] = [x.rows, x.cols];
  const output = new Matrix(T, D);
  for (let t = 0; t < T; t++) {
    const [from, to] = [x.row(t), output.row(t)];
    let mean = 0;
    for (const value of from) mean += value / D;
    let variance = 0;
    for (const value of from) variance += (value - mean) ** 2 / D;
    const deviation = Math.sqrt(variance + eps);
    for (let d = 0; d < D; d++) {
      to[d] = ((from[d] - mean) / deviation) * weight[d] + (bias ? bias[d] : 0);
    }
  }
  return output;
}

/** Layer normalisation with a learned gain and bias. */
export class LayerNorm {
  /**
   * @param {Tensors} tensors "NAME.weight" (D,), and "NAME.bias" (D,) if `bias`
   * @param {string} name of the norm in the model
   * @param {number} dModel width D
   * @param {number} eps added to the variance
   * @param {boolean} bias
   */
  constructor(tensors, name, dModel, eps, bias) {
    this.name = name;
    this.eps = eps;
    this.weight = tensors.vector(`${name}.weight`, dModel);
    this.bias = bias ? tensors.vector(`${name}.bias`, dModel) : null;
  }

  /**
   * @param {Matrix} x (T, D)
   * @param {Run} run
   * @returns {Matrix} (T, D)
   */
  forward(x, run) {
    return run.keep(this.name, layerNorm(x, this.weight, this.bias, this.eps));
  }
}
