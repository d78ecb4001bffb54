/**
 * What is added to a score by the distance of its tokens: ALiBi's slopes and T5's buckets,
 * the same as in tformer/nn/relative.py.
 */

/**
 * The slope of each head: 2^(−8h/H); with another H than a power of two, those of the power
 * below, and then every second one of twice as many heads.
 * @param {number} heads H
 */
export function alibiSlopes(heads) {
  const n = 2 ** Math.floor(Math.log2(heads));
  const of = (/** @type {number} */ m) =>
    Array.from({ length: m }, (_, h) => 2 ** ((-8 * (h + 1)) / m));
  return [...of(n), ...of(2 * n).filter((_, h) => h % 2 === 0).slice(0, heads - n)];
}

/**
 * The least distance in each bucket of T5. Whole numbers are compared, as a rounded
 * logarithm can put a distance one bucket too low.
 * @param {number} buckets N, of one direction
 * @param {number} furthest M, where the last bucket would end
 */
export function bucketStarts(buckets, furthest) {
  const exact = Math.floor(buckets / 2);
  const rest = buckets - exact;
  const starts = Array.from({ length: exact }, (_, i) => i);
  for (let j = 0; j < rest; j += 1) {
    const power = BigInt(exact) ** BigInt(rest - j) * BigInt(furthest) ** BigInt(j);
    let start = exact; // of bucket E + j: at E (M / E)^(j / rest), rounded up
    while (BigInt(start) ** BigInt(rest) < power) start += 1;
    starts.push(start);
  }
  return starts;
}

/**
 * The bucket of a distance: the last that starts at it or before.
 * @param {number} distance how many places the key stands before the query
 * @param {number[]} starts
 * @param {boolean} bidirectional keys after the query have buckets of their own, after the
 *   others; without it they count as distance 0
 */
export function relativeBucket(distance, starts, bidirectional) {
  const places = bidirectional ? Math.abs(distance) : Math.max(distance, 0);
  const bucket = starts.findLastIndex((start) => start <= places);
  return bucket + (bidirectional && distance < 0 ? starts.length : 0);
}
