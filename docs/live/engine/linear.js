/**
 * A linear layer, y = x Wᵀ + b, and the matrix that all files here compute with.
 *
 * Twin of tformer/reference/linear.py. There is no batch: a matrix is (rows, cols),
 * one row a token.
 *
 * T length · I input features · O output features
 */

/** @typedef {import("./safetensors.js").Tensors} Tensors */
/** @typedef {import("./recording.js").Run} Run */

/** A matrix of float32, row after row: entry (r, c) is `data[r * cols + c]`. */
export class Matrix {
  /**
   * @param {number} rows
   * @param {number} cols
   * @param {Float32Array} [data] rows · cols numbers; zeros if not given
   */
  constructor(rows, cols, data = new Float32Array(rows * cols)) {
    if (data.length !== rows * cols) {
      throw new RangeError(`data has ${data.length} numbers, not ${rows} · ${cols}`);
    }
    this.rows = rows;
    this.cols = cols;
    this.data = data;
  }

  /**
   * One row, as a view: what is written to it is written to the matrix.
   * @param {number} r
   * @returns {Float32Array} (cols,)
   */
  row(r) {
    return this.data.subarray(r * this.cols, (r + 1) * this.cols);
  }

  /**
   * Apply a function to each number.
   * @param {(x: number) => number} f
   * @returns {Matrix} a new one, of the same shape
   */
  map(f) {
    return new Matrix(this.rows, this.cols, this.data.map((x) => f(x)));
  }
}

/**
 * Add two matrices of one shape.
 * @param {Matrix} x
 * @param {Matrix} y
 * @returns {Matrix}
 */
export function add(x, y) {
  const sum = new Matrix(x.rows, x.cols);
  for (let i = 0; i < sum.data.length; i++) sum.data[i] = x.data[i] + y.data[i];
  return sum;
}

/**
 * Compute x Wᵀ + b. Four outputs grow side by side: each number of x is read once for four
 * of them, and the processor adds to one while it waits for the others.
 * @param {Matrix} x (T, I)
 * @param {Matrix} weight (O, I)
 * @param {Float32Array} [bias] (O,); zeros if not given
 * @returns {Matrix} (T, O)
 */
export function linear(x, weight, bias = new Float32Array(weight.rows)) {
  const I = x.cols, O = weight.rows;
  const y = new Matrix(x.rows, O);
  for (let t = 0; t < x.rows; t++) {
    const from = x.row(t), to = y.row(t), w = weight.data;
    let o = 0;
    for (; o + 3 < O; o += 4) {
      const w0 = o * I, w1 = w0 + I, w2 = w1 + I, w3 = w2 + I; // where the rows of W begin
      let s0 = bias[o], s1 = bias[o + 1], s2 = bias[o + 2], s3 = bias[o + 3];
      for (let i = 0; i < I; i++) {
        s0 += from[i] * w[w0 + i];
        s1 += from[i] * w[w1 + i];
        s2 += from[i] * w[w2 + i];
        s3 += from[i] * w[w3 + i];
      }
      to[o] = s0;
      to[o + 1] = s1;
      to[o + 2] = s2;
      to[o + 3] = s3;
    }
    for (; o < O; o++) { // those that are left, one by one
      let sum = bias[o];
      for (let i = 0; i < I; i++) sum += from[i] * w[o * I + i];
      to[o] = sum;
    }
  }
  return y;
}

/** A linear layer with its weights, the twin of `nn.Linear`. */
export class Linear {
  /**
   * @param {Tensors} tensors "NAME.weight" (O, I), and "NAME.bias" (O,) if `bias`
   * @param {string} name of the layer in the model
   * @param {number} outputs O
   * @param {number} inputs I
   * @param {boolean} bias
   */
  constructor(tensors, name, outputs, inputs, bias) {
    this.name = name;
    this.weight = tensors.matrix(`${name}.weight`, outputs, inputs);
    this.bias = bias ? tensors.vector(`${name}.bias`, outputs) : undefined;
  }

  /**
   * @param {Matrix} x (T, I)
   * @param {Run} run
   * @returns {Matrix} (T, O)
   */
  forward(x, run) {
    return run.keep(this.name, linear(x, this.weight, this.bias));
  }
}
