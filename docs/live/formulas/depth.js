/**
 * Feed-forward networks one after the other, with or without a residual connection and a
 * norm around each: the experiment of the chapter on feed-forward networks, with its
 * seed, sizes and numbers. A token goes up through all of them, a gradient comes down.
 *
 * D width · F inner width · N tokens · all matrices row after row in one array
 */

import { TorchRandom } from "../ui/torch-random.js";

export const WIDTH = 64; // D
export const INNER = 256; // F
export const TOKENS = 32; // N
const EPS = 1e-5;

/** @typedef {"none" | "before" | "after"} Norm */
/**
 * @typedef {object} Part The weights of FFN(x) = max(0, x W1ᵀ + b1) W2ᵀ + b2.
 * @property {Float64Array} w1 (F, D)
 * @property {Float64Array} b1 (F,)
 * @property {Float64Array} w2 (F, D): transposed, so that both are read row by row
 * @property {Float64Array} b2 (D,)
 */
/**
 * @typedef {object} Stack
 * @property {Part[]} parts
 * @property {Float64Array} x (N, D): the tokens
 * @property {Float64Array} back (N, D): the gradient at the end
 */

/** Parts with torch's own weights, and the generator after each: drawn once.
 * @type {{parts: Part[], after: TorchRandom[]}} */
const drawn = { parts: [], after: [new TorchRandom(0)] };

/**
 * Draw a stack as the chapter does.
 *
 * @param {number} depth
 * @param {boolean} strong weights like He's: a part's output is as large as its input
 * @returns {Stack}
 */
export function drawStack(depth, strong) {
  while (drawn.parts.length < depth) {
    const random = drawn.after[drawn.parts.length].copy();
    const w1 = random.linear(INNER * WIDTH, WIDTH);
    const b1 = random.linear(INNER, WIDTH);
    const w2 = transposed(random.linear(WIDTH * INNER, INNER), WIDTH, INNER);
    const b2 = random.linear(WIDTH, INNER);
    drawn.parts.push({ w1, b1, w2, b2 });
    drawn.after.push(random);
  }
  const random = drawn.after[depth].copy();
  let parts = drawn.parts.slice(0, depth);
  if (strong)
    parts = parts.map(({ b1, b2 }) => {
      const w1 = random.normal(INNER * WIDTH, Math.sqrt(2 / WIDTH));
      const w2 = random.normal(WIDTH * INNER, Math.sqrt(1 / INNER));
      return { w1, b1, w2: transposed(w2, WIDTH, INNER), b2 };
    });
  return { parts, x: random.normal(TOKENS * WIDTH), back: random.normal(TOKENS * WIDTH) };
}

/**
 * @param {Float64Array} matrix (rows, cols)
 * @param {number} rows
 * @param {number} cols
 */
function transposed(matrix, rows, cols) {
  const other = new Float64Array(matrix.length);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < cols; j++) other[j * rows + i] = matrix[i * cols + j];
  return other;
}

/**
 * The stack run once: `forward` layer by layer up, then `backward` layer by layer down.
 *
 * With a residual connection, norm "none" is x + part(x), "before" is pre-norm,
 * x + part(norm(x)), and "after" is post-norm, norm(x + part(x)).
 */
export class Run {
  /**
   * @param {Stack} stack
   * @param {{residual: boolean, norm: Norm}} around
   */
  constructor(stack, { residual, norm }) {
    this.stack = stack;
    this.residual = residual;
    this.norm = norm;
    /** What the way back needs of each layer.
     * @type {{hidden: Float64Array, std: Float64Array, normed: Float64Array}[]} */
    this.layers = [];
    this.x = stack.x;
    this.gradient = stack.back;
    this.signals = [spread(stack.x)];
    /** Of layer 0 to L, filled from the end.
     * @type {number[]} */
    this.gradients = new Array(stack.parts.length + 1);
    this.gradients[stack.parts.length] = spread(stack.back);
  }

  /** Go up through one more layer. */
  forward() {
    const part = this.stack.parts[this.layers.length];
    const first = this.norm === "before" ? normalise(this.x) : null;
    const { output, hidden } = feedForward(first ? first.normed : this.x, part);
    if (this.residual) add(output, this.x);
    const last = this.norm === "after" ? normalise(output) : null;
    const { normed, std } = first ?? last ?? { normed: output, std: output };
    this.layers.push({ hidden, normed, std });
    this.x = last ? last.normed : output;
    this.signals.push(spread(this.x));
  }

  /** Bring the gradient down through the newest layer that it has not passed. */
  backward() {
    const { hidden, normed, std } = this.layers[this.layers.length - 1];
    this.layers.pop();
    const layer = this.layers.length;
    let sum = this.gradient; // at what comes out of the sum
    if (this.norm === "after") sum = normaliseBack(sum, normed, std);
    let branch = feedForwardBack(sum, hidden, this.stack.parts[layer]);
    if (this.norm === "before") branch = normaliseBack(branch, normed, std);
    if (this.residual) add(branch, sum);
    this.gradient = branch;
    this.gradients[layer] = spread(branch);
  }

  get depth() {
    return this.stack.parts.length;
  }
}

/**
 * @param {Float64Array} x (N, D)
 * @param {Part} part
 * @returns {{output: Float64Array, hidden: Float64Array}} (N, D), and (N, F) after max(0, …)
 */
function feedForward(x, { w1, b1, w2, b2 }) {
  const output = new Float64Array(TOKENS * WIDTH);
  const hidden = new Float64Array(TOKENS * INNER);
  for (let n = 0; n < TOKENS; n++) {
    const row = n * WIDTH;
    for (let d = 0; d < WIDTH; d++) output[row + d] = b2[d];
    for (let f = 0; f < INNER; f++) {
      let sum = b1[f];
      for (let d = 0, w = f * WIDTH; d < WIDTH; d++, w++) sum += x[row + d] * w1[w];
      if (sum <= 0) continue; // a negative inner number is set to 0, and adds nothing
      hidden[n * INNER + f] = sum;
      for (let d = 0, w = f * WIDTH; d < WIDTH; d++, w++) output[row + d] += sum * w2[w];
    }
  }
  return { output, hidden };
}

/**
 * From the gradient at the output of a part to the gradient at its input.
 *
 * @param {Float64Array} gradient (N, D)
 * @param {Float64Array} hidden (N, F)
 * @param {Part} part
 */
function feedForwardBack(gradient, hidden, { w1, w2 }) {
  const below = new Float64Array(TOKENS * WIDTH);
  for (let n = 0; n < TOKENS; n++) {
    const row = n * WIDTH;
    for (let f = 0; f < INNER; f++) {
      if (hidden[n * INNER + f] === 0) continue; // no gradient goes through a 0
      let sum = 0;
      for (let d = 0, w = f * WIDTH; d < WIDTH; d++, w++) sum += gradient[row + d] * w2[w];
      for (let d = 0, w = f * WIDTH; d < WIDTH; d++, w++) below[row + d] += sum * w1[w];
    }
  }
  return below;
}

/**
 * (x - mean) / √(variance + ε), row by row, as in norm.py without gain and bias.
 *
 * @param {Float64Array} x (N, D)
 */
function normalise(x) {
  const normed = new Float64Array(x.length);
  const std = new Float64Array(TOKENS);
  for (let n = 0; n < TOKENS; n++) {
    const row = n * WIDTH;
    let mean = 0;
    let variance = 0;
    for (let d = 0; d < WIDTH; d++) mean += x[row + d] / WIDTH;
    for (let d = 0; d < WIDTH; d++) variance += (x[row + d] - mean) ** 2 / WIDTH;
    std[n] = Math.sqrt(variance + EPS);
    for (let d = 0; d < WIDTH; d++) normed[row + d] = (x[row + d] - mean) / std[n];
  }
  return { normed, std };
}

/**
 * The gradient loses its mean and its part along the token, and is divided by the spread.
 *
 * @param {Float64Array} gradient (N, D)
 * @param {Float64Array} normed (N, D)
 * @param {Float64Array} std (N,)
 */
function normaliseBack(gradient, normed, std) {
  const below = new Float64Array(gradient.length);
  for (let n = 0; n < TOKENS; n++) {
    const row = n * WIDTH;
    let mean = 0;
    let along = 0;
    for (let d = 0; d < WIDTH; d++) {
      mean += gradient[row + d] / WIDTH;
      along += (gradient[row + d] * normed[row + d]) / WIDTH;
    }
    for (let d = 0; d < WIDTH; d++)
      below[row + d] = (gradient[row + d] - mean - normed[row + d] * along) / std[n];
  }
  return below;
}

/**
 * @param {Float64Array} to
 * @param {Float64Array} from
 */
function add(to, from) {
  for (let i = 0; i < to.length; i++) to[i] += from[i];
}

/**
 * The standard deviation of all numbers, as `Tensor.std()`: divided by one less than they are.
 *
 * @param {Float64Array} x
 */
export function spread(x) {
  let mean = 0;
  let squares = 0;
  for (const value of x) mean += value / x.length;
  for (const value of x) squares += (value - mean) ** 2;
  return Math.sqrt(squares / (x.length - 1));
}

/**
 * The cosine of two different tokens, averaged over all pairs: 1 = all point one way.
 *
 * @param {Float64Array} x (N, D)
 */
export function alike(x) {
  const total = new Float64Array(WIDTH); // of the unit vectors
  for (let n = 0; n < TOKENS; n++) {
    const row = x.subarray(n * WIDTH, (n + 1) * WIDTH);
    const length = Math.hypot(...row);
    for (let d = 0; d < WIDTH; d++) total[d] += row[d] / length;
  }
  const square = total.reduce((sum, value) => sum + value * value, 0);
  return (square - TOKENS) / (TOKENS * (TOKENS - 1));
}
