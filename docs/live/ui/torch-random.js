// torch's own random numbers: what `torch.manual_seed(seed)` and then
// `torch.randn(…, dtype=torch.float64)` draw on a CPU, so that a live piece has the very
// numbers of its chapter. The generator is the Mersenne Twister, mt19937 (Matsumoto and
// Nishimura, 1998); pairs of its numbers become normal ones as in Box and Muller (1958),
// eight pairs at a time, as torch lays them out.

const SIZE = 624;
const AHEAD = 397;

/**
 * Return a generator of whole numbers in [0, 2³²).
 * @param {number} seed
 * @returns {() => number}
 */
export function mersenneTwister(seed) {
  const state = new Uint32Array(SIZE);
  state[0] = seed;
  for (let i = 1; i < SIZE; i += 1) {
    const before = state[i - 1] ^ (state[i - 1] >>> 30);
    state[i] = Math.imul(before, 1812433253) + i;
  }
  let at = SIZE;

  function renew() {
    for (let i = 0; i < SIZE; i += 1) {
      const joined = (state[i] & 0x80000000) | (state[(i + 1) % SIZE] & 0x7fffffff);
      const twist = joined & 1 ? 0x9908b0df : 0;
      state[i] = state[(i + AHEAD) % SIZE] ^ (joined >>> 1) ^ twist;
    }
    at = 0;
  }

  return () => {
    if (at === SIZE) renew();
    let y = state[at];
    at += 1;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  };
}

/**
 * Return `torch.randn(count, dtype=torch.float64)` after `torch.manual_seed(seed)`.
 * @param {number} seed
 * @param {number} count a multiple of 16: others torch draws in another order
 */
export function torchNormal(seed, count) {
  if (count % 16) throw new RangeError(`count (${count}) must be a multiple of 16`);
  const next = mersenneTwister(seed);
  const numbers = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const high = next() & 0x1fffff; // 53 bits in all
    numbers[i] = (high * 4294967296 + next()) / 9007199254740992;
  }
  for (let first = 0; first < count; first += 16) {
    for (let i = first; i < first + 8; i += 1) {
      const radius = Math.sqrt(-2 * Math.log(1 - numbers[i]));
      const angle = 2 * Math.PI * numbers[i + 8];
      numbers[i] = radius * Math.cos(angle);
      numbers[i + 8] = radius * Math.sin(angle);
    }
  }
  return numbers;
}
