/**
 * What a KV cache takes and what it saves: the formulas of the chapter on decoding.
 *
 * N layers · H heads · G key/value heads · Dh width of a head · D = H · Dh · F = 4 D ·
 * B texts at once · T tokens that are read · L tokens in all
 */

/**
 * @typedef {object} Sizes
 * @property {number} layers N
 * @property {number} heads H
 * @property {number} kvHeads G
 * @property {number} headDim Dh
 * @property {number} bytes b: of a number
 */

/**
 * The models of the book that write one token after the other.
 * @type {{name: string, sizes: Sizes, length: number}[]}
 */
export const MODELS = [
  { name: "the decoder of dates", length: 11,
    sizes: { layers: 2, heads: 4, kvHeads: 4, headDim: 16, bytes: 4 } },
  { name: "GPT-2", length: 1024,
    sizes: { layers: 12, heads: 12, kvHeads: 12, headDim: 64, bytes: 4 } },
  { name: "GPT-2 XL", length: 1024,
    sizes: { layers: 48, heads: 25, kvHeads: 25, headDim: 64, bytes: 4 } },
  { name: "32 layers, G = 32", length: 32768,
    sizes: { layers: 32, heads: 32, kvHeads: 32, headDim: 128, bytes: 2 } },
  { name: "32 layers, G = 8", length: 32768,
    sizes: { layers: 32, heads: 32, kvHeads: 8, headDim: 128, bytes: 2 } },
  { name: "32 layers, G = 1", length: 32768,
    sizes: { layers: 32, heads: 32, kvHeads: 1, headDim: 128, bytes: 2 } },
];

/**
 * 2 · N · B · G · L · Dh · b: the bytes of all keys and values.
 * @param {Sizes} sizes
 * @param {number} length L
 * @param {number} [texts] B
 */
export function cacheBytes({ layers, kvHeads, headDim, bytes }, length, texts = 1) {
  return 2 * layers * texts * kvHeads * length * headDim * bytes;
}

/**
 * The multiplications of all layers of a GPT that reads T tokens, the last of L.
 *
 * Each token goes through six matrices: queries and outputs D · D, keys and values
 * D · G Dh, and two of the feed-forward network D · 4 D. Then each of T queries meets L
 * keys and mixes L values, D multiplications each; what the mask hides is counted too.
 * @param {Sizes} sizes
 * @param {number} tokens T
 * @param {number} length L
 */
export function multiplications({ layers, heads, kvHeads, headDim }, tokens, length) {
  const width = heads * headDim;
  const matrices = 2 * width * width + 2 * width * kvHeads * headDim + 8 * width * width;
  return layers * (tokens * matrices + 2 * tokens * length * width);
}

/**
 * The steps in which a text is read: the prompt at once, then token by token.
 * @param {number} prompt tokens of the prompt
 * @param {number} length tokens in all
 * @param {boolean} cached with a cache only what is new is read, without it everything
 * @returns {{tokens: number, length: number}[]}
 */
export function steps(prompt, length, cached) {
  return Array.from({ length: length - prompt + 1 }, (_, i) => {
    const now = prompt + i;
    return { tokens: cached && i > 0 ? 1 : now, length: now };
  });
}

/**
 * A number of bytes as people write it: 75.5 MB, in powers of 1,000.
 * @param {number} bytes
 */
export function readable(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
  let power = 0;
  while (power < units.length - 1 && bytes / 1000 ** power >= 999.95) power += 1;
  const value = bytes / 1000 ** power;
  return `${power ? value.toFixed(value < 10 ? 2 : 1) : value} ${units[power]}`;
}
