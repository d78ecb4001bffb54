/**
 * How long a step takes on n GPUs: the formula and the assumptions of the chapter on
 * scaling out, DDP.
 */

/**
 * @typedef {object} Assumed
 * @property {number} parameters P
 * @property {number} speed F: operations a second that a GPU really does
 * @property {number} bytes b: of a gradient that is sent
 * @property {number} between bytes a second out of a machine
 */

export const MACHINE = 8; // GPUs
export const INSIDE = 450e9; // bytes a second between GPUs of one machine
export const DELAY = 10e-6; // seconds until a message has arrived
export const CONTEXT = 1024; // tokens of a sequence, which stays on one GPU
const HELD = 16; // bytes a parameter: weight, gradient, AdamW's two means in float32

/** The chapter's two networks, in bytes a second out of a machine. */
export const NETWORKS = { "fast network": 8 * 50e9, Ethernet: 12.5e9 };

/**
 * The parts of a step in seconds. Gradients are sent while the backward pass runs.
 * @param {Assumed} assumed
 * @param {number} n GPUs
 * @param {number} tokens on each of them
 */
export function stepTime({ parameters, speed, bytes, between }, n, tokens) {
  const forward = (2 * parameters * tokens) / speed;
  const link = n <= MACHINE ? INSIDE : Math.min(INSIDE, between);
  const bandwidth = (((2 * (n - 1)) / n) * parameters * bytes) / link;
  const sending = bandwidth + 2 * Math.log2(n) * DELAY; // 2 log₂ n messages in a row
  const total = forward + Math.max(2 * forward, sending);
  return { forward, backward: 2 * forward, sending, total, waiting: total - 3 * forward };
}

/**
 * The speed of n GPUs over n times the speed of one.
 * @param {Assumed} assumed
 * @param {number} n
 * @param {number} tokens on each GPU if weak, in all if strong
 * @param {boolean} weak each GPU has tokens of its own; if not, they divide one batch
 */
export function efficiency(assumed, n, tokens, weak) {
  const alone = stepTime(assumed, 1, tokens).total;
  return weak
    ? alone / stepTime(assumed, n, tokens).total
    : alone / stepTime(assumed, n, tokens / n).total / n;
}

/**
 * A whole training.
 * @param {Assumed} assumed
 * @param {number} n
 * @param {number} tokens on each GPU if weak, in all if strong
 * @param {boolean} weak
 * @param {number} data tokens to train on
 */
export function training(assumed, n, tokens, weak, data) {
  const onEach = weak ? tokens : tokens / n;
  const steps = data / (onEach * n);
  const hours = (steps * stepTime(assumed, n, onEach).total) / 3600;
  return { steps, hours, gpuHours: n * hours };
}

/**
 * Bytes of weights, gradients and optimizer on each GPU.
 * @param {number} parameters
 * @param {number} n
 */
export function held(parameters, n) {
  return { ddp: HELD * parameters, fsdp: (HELD * parameters) / n };
}
