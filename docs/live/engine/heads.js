/**
 * Multi-head attention: several attentions side by side, each in its own projection.
 *
 * Twin of tformer/nn/heads.py.
 *
 * T queries · S keys · D d_model · H heads · G key/value heads · Dh head_dim
 */

import { scaledDotProductAttention } from "./attention.js";
import { Linear, Matrix } from "./linear.js";
import { causalMask, combineMasks } from "./masks.js";

/** @typedef {import("./masks.js").Mask} Mask */
/** @typedef {import("./recording.js").Run} Run */
/** @typedef {import("./recording.js").AttentionRecord} AttentionRecord */
/** @typedef {import("./safetensors.js").Tensors} Tensors */
/** @typedef {import("./transformer.js").Config} Config */

/**
 * Cut the width into heads.
 * @param {Matrix} x (T, H · Dh)
 * @param {number} numHeads H
 * @returns {Matrix[]} H matrices (T, Dh)
 */
export function splitHeads(x, numHeads) {
  const Dh = x.cols / numHeads;
  return Array.from({ length: numHeads }, (_, h) => {
    const head = new Matrix(x.rows, Dh);
    for (let t = 0; t < x.rows; t++) head.row(t).set(x.row(t).subarray(h * Dh, (h + 1) * Dh));
    return head;
  });
}

/**
 * Put the heads side by side again.
 * @param {Matrix[]} heads H matrices (T, Dh)
 * @returns {Matrix} (T, H · Dh)
 */
export function mergeHeads(heads) {
  const [{ rows, cols: Dh }] = heads;
  const x = new Matrix(rows, heads.length * Dh);
  heads.forEach((head, h) => {
    for (let t = 0; t < rows; t++) x.row(t).set(head.row(t), h * Dh);
  });
  return x;
}

/**
 * Attend with H heads: Concat(head₁, …) W^O, headᵢ = Attention(Q Wᵢ^Q, …).
 *
 * Vaswani et al. 2017, section 3.2.2 (arXiv:1706.03762).
 */
export class MultiHeadAttention {
  /**
   * @param {Tensors} tensors
   * @param {string} name of the attention in the model
   * @param {Config} config
   */
  constructor(tensors, name, { dModel, numHeads, numKvHeads, bias }) {
    this.name = name;
    this.numHeads = numHeads;
    this.numKvHeads = numKvHeads ?? numHeads;
    this.headDim = dModel / numHeads;
    const kvWidth = this.numKvHeads * this.headDim; // G · Dh
    this.qProj = new Linear(tensors, `${name}.q_proj`, dModel, dModel, bias);
    this.kProj = new Linear(tensors, `${name}.k_proj`, kvWidth, dModel, bias);
    this.vProj = new Linear(tensors, `${name}.v_proj`, kvWidth, dModel, bias);
    this.outProj = new Linear(tensors, `${name}.out_proj`, dModel, dModel, bias);
  }

  /**
   * Attend from `query` to `key`, whose values are made from it as well.
   * @param {Matrix} query (T, D)
   * @param {Matrix} key (S, D); `query` itself in self-attention
   * @param {Run} run
   * @param {{attnMask?: Mask | null, isCausal?: boolean}} [options] which keys (T, S) a
   *   query may attend to; hide later keys
   * @returns {Matrix} (T, D)
   */
  forward(query, key, run, { attnMask = null, isCausal = false } = {}) {
    const q = splitHeads(this.qProj.forward(query, run), this.numHeads); // H × (T, Dh)
    const k = splitHeads(this.kProj.forward(key, run), this.numKvHeads); // G × (S, Dh)
    const v = splitHeads(this.vProj.forward(key, run), this.numKvHeads); // G × (S, Dh)
    const mask = combineMasks(attnMask, isCausal ? causalMask(query.rows, key.rows) : null);
    const scale = run.changes.scale / Math.sqrt(this.headDim);
    const group = this.numHeads / this.numKvHeads; // query heads that share a key head

    /** @type {AttentionRecord} */
    const kept = run.keepAttention(this.name, { query: q, key: k, value: v, mask });
    const heads = q.map((_, h) => {
      const g = Math.floor(h / group);
      const { output, ...weighing } = scaledDotProductAttention(q[h], k[g], v[g], mask, { scale });
      const head = run.isOff(this.name, h) ? new Matrix(output.rows, output.cols) : output;
      kept.push(weighing, head);
      return head; // (T, Dh)
    });
    kept.joined = mergeHeads(heads); // (T, D)
    kept.output = this.outProj.forward(kept.joined, run); // (T, D)
    return kept.output;
  }
}
