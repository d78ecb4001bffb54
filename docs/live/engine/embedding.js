/**
 * Token embedding: from ids to vectors, and, with the same matrix, back to logits.
 *
 * Twin of tformer/nn/embedding.py.
 *
 * T length · D d_model · V vocabulary
 */

import { Matrix, linear } from "./linear.js";

/** @typedef {import("./recording.js").Run} Run */

/**
 * Look up a vector for each token, times √D; its transpose makes logits.
 *
 * Vaswani et al. 2017, section 3.4.
 */
export class TokenEmbedding {
  /**
   * @param {string} name in the model
   * @param {Matrix} weight (V, D), which two embeddings may share
   */
  constructor(name, weight) {
    this.name = name;
    this.weight = weight;
  }

  /**
   * @param {readonly number[]} ids T ids, each in [0, V)
   * @param {Run} run
   * @returns {Matrix} (T, D)
   */
  forward(ids, run) {
    const { rows: V, cols: D } = this.weight;
    const x = new Matrix(ids.length, D);
    ids.forEach((id, t) => {
      if (!(Number.isInteger(id) && 0 <= id && id < V)) {
        throw new RangeError(`ids must be in [0, vocab_size = ${V}), not ${id}`);
      }
      x.row(t).set(this.weight.row(id).map((w) => w * Math.sqrt(D)));
    });
    return run.keep(this.name, x);
  }

  /**
   * Score every token by the same matrix.
   * @param {Matrix} x (T, D)
   * @returns {Matrix} (T, V)
   */
  logits(x) {
    return linear(x, this.weight);
  }
}
