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
 * Compute x Wᵀ + b.
 * @param {Matrix} x (T, I)
 * @param {Matrix} weight (O, I)
 * @param {Float32Array | null} [bias] (O,)
 * @returns {Matrix} (T, O)
 */
export function linear(x, weight, bias = null) {
  const [T, I, O] = [x.rows, x.cols, weight.rows];
  const y = new Matrix(T, O);
  for (let t = 0; t < T; t++) {
    for (let o = 0; o < O; o++) {
      y.data[t * O + o] = dot(x.data, t * I, weight.data, o * I, I) + (bias ? bias[o] : 0);
    }
  }
  return y;
}

/**
 * Compute the dot product of two rows, as four sums side by side: a processor adds to one
 * while it waits for the others. A text takes a third less time than with one sum.
 * @param {Float32Array} a
 * @param {number} at where the row begins in `a`
 * @param {Float32Array} b
 * @param {number} from where it begins in `b`
 * @param {number} length of both
 */
function dot(a, at, b, from, length) {
  let p = 0, q = 0, r = 0, s = 0, i = 0;
  for (; i + 3 < length; i += 4) {
    p += a[at + i] * b[from + i];
    q += a[at + i + 1] * b[from + i + 1];
    r += a[at + i + 2] * b[from + i + 2];
    s += a[at + i + 3] * b[from + i + 3];
  }
  for (; i < length; i++) p += a[at + i] * b[from + i];
  return p + q + r + s;
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
    this.bias = bias ? tensors.vector(`${name}.bias`, outputs) : null;
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
