/**
 * Numbers as small whole ones, in groups, each with its scale: `quantize` and `dequantize`
 * of tformer/nn/quantized.py, in double precision.
 */

/**
 * To the next whole number, and from the middle to the even one, as torch rounds.
 * @param {number} x
 */
function rounded(x) {
  const below = Math.floor(x);
  if (x - below !== 0.5) return Math.round(x);
  return below % 2 === 0 ? below : below + 1;
}

/**
 * s = max |x| / (2^(bits − 1) − 1), codes = round(x / s), of each group by itself.
 * @param {number[]} x
 * @param {number} bits
 * @param {number} group how many numbers have one scale; it divides their count
 * @returns {{codes: number[], scales: number[]}}
 */
export function quantize(x, bits, group) {
  const most = 2 ** (bits - 1) - 1;
  const scales = Array.from({ length: x.length / group }, (_, g) =>
    Math.max(...x.slice(g * group, (g + 1) * group).map(Math.abs)) / most);
  const codes = x.map((value, i) => {
    const code = rounded(value / (scales[Math.floor(i / group)] || 1));
    return Math.min(most, Math.max(-most, code));
  });
  return { codes, scales };
}

/**
 * What is read: each code times the scale of its group.
 * @param {{codes: number[], scales: number[]}} quantized
 */
export function dequantize({ codes, scales }) {
  const group = codes.length / scales.length;
  return codes.map((code, i) => code * scales[Math.floor(i / group)]);
}

/**
 * The bits of a weight: its code, and its share of a scale in 16 bits.
 * @param {number} bits
 * @param {number} group
 */
export function bitsOfWeight(bits, group) {
  return bits + 16 / group;
}

/**
 * The error of numbers against their size: √(Σ (read − x)² / Σ x²).
 * @param {number[]} x
 * @param {number[]} read
 */
export function relativeError(x, read) {
  const squares = (/** @type {number[]} */ of) => of.reduce((sum, each) => sum + each ** 2, 0);
  return Math.sqrt(squares(read.map((each, i) => each - x[i])) / squares(x));
}
