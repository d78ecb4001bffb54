/**
 * Rotary positions: by how much each pair of numbers is rotated, and a vector that is.
 * The same as tformer/nn/rotary.py, in double precision.
 */

/** @typedef {"pairs" | "halves"} Layout */

/**
 * By how many radians pair i is rotated at each position: base^(−2i/Dh).
 * @param {number} headDim
 * @param {number} base
 */
export function rotaryFrequencies(headDim, base) {
  return Array.from({ length: headDim / 2 }, (_, i) => base ** ((-2 * i) / headDim));
}

/**
 * Which two numbers of a vector make pair i.
 * @param {number} i
 * @param {number} headDim
 * @param {Layout} layout
 */
export function placesOfPair(i, headDim, layout) {
  return layout === "pairs" ? [2 * i, 2 * i + 1] : [i, i + headDim / 2];
}

/**
 * Rotate each pair (a, b) to (a cos − b sin, a sin + b cos).
 * @param {ArrayLike<number>} x
 * @param {number} position
 * @param {number[]} theta of each pair
 * @param {Layout} layout
 */
export function rotate(x, position, theta, layout) {
  const rotated = Array.from(x);
  theta.forEach((speed, i) => {
    const [first, second] = placesOfPair(i, x.length, layout);
    const [cosine, sine] = [Math.cos(position * speed), Math.sin(position * speed)];
    rotated[first] = x[first] * cosine - x[second] * sine;
    rotated[second] = x[first] * sine + x[second] * cosine;
  });
  return rotated;
}
