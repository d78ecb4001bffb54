/**
 * Positions: what tells attention where a token stands.
 *
 * Twin of tformer/nn/positions.py.
 *
 * T length · D d_model
 */

import { Matrix } from "./linear.js";

/** @typedef {import("./recording.js").Run} Run */

/**
 * Compute sin(p / 10000^(2i/D)) in column 2i, and the cosine in column 2i + 1.
 *
 * Vaswani et al. 2017, section 3.5. The wavelengths grow from 2π to 10000 · 2π.
 * @param {number} length number of positions T
 * @param {number} dModel width D; even
 * @returns {Matrix} (T, D)
 */
export function sinusoidalPositions(length, dModel) {
  const table = new Matrix(length, dModel);
  for (let p = 0; p < length; p++) {
    const row = table.row(p);
    for (let i = 0; i < dModel; i += 2) {
      const angle = p / 10000 ** (i / dModel);
      row[i] = Math.sin(angle);
      row[i + 1] = Math.cos(angle);
    }
  }
  return table;
}

/** Add the sinusoid of its position to each token: x + PE. Nothing is learned. */
export class SinusoidalPositionalEncoding {
  /** @param {string} name in the model */
  constructor(name) {
    this.name = name;
  }

  /**
   * Add positions 0, 1, …; of the change `positions` the factor.
   * @param {Matrix} x (T, D)
   * @param {Run} run
   * @returns {Matrix} (T, D)
   */
  forward(x, run) {
    const factor = run.changes.positions;
    const table = sinusoidalPositions(x.rows, x.cols); // (T, D)
    const output = new Matrix(x.rows, x.cols);
    output.data.forEach((_, i) => (output.data[i] = x.data[i] + factor * table.data[i]));
    return run.keep(this.name, output);
  }
}
