// Random numbers that are the same for every reader, so that a test can draw them too.

/**
 * Return a generator of numbers in [0, 1): mulberry32.
 * @param {number} seed
 * @returns {() => number}
 */
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * Return a generator of normal numbers, mean 0 and variance 1: Box and Muller's, which
 * uses the cosine of each pair.
 * @param {number} seed
 * @returns {() => number}
 */
export function normal(seed) {
  const next = uniform(seed);
  return () => {
    const radius = Math.sqrt(-2 * Math.log(1 - next()));
    return radius * Math.cos(2 * Math.PI * next());
  };
}
