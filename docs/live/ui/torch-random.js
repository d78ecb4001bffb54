// torch's own random numbers on a CPU after `torch.manual_seed(seed)`, in the same order,
// so that a live piece has the very numbers of its chapter. The generator is the Mersenne
// Twister, mt19937 (Matsumoto and Nishimura, 1998).

const SIZE = 624;
const SHIFT = 397;

export class TorchRandom {
  /** @param {number} seed */
  constructor(seed) {
    this.state = new Uint32Array(SIZE);
    this.state[0] = seed >>> 0;
    for (let i = 1; i < SIZE; i++) {
      const before = this.state[i - 1];
      this.state[i] = Math.imul(1812433253, before ^ (before >>> 30)) + i;
    }
    this.next = SIZE;
  }

  /** A generator that goes on from here, while this one stays where it is. */
  copy() {
    const other = new TorchRandom(0);
    other.state.set(this.state);
    other.next = this.next;
    return other;
  }

  /** 32 random bits. */
  bits() {
    if (this.next === SIZE) this.twist();
    let y = this.state[this.next++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  twist() {
    const s = this.state;
    for (let i = 0; i < SIZE; i++) {
      const y = (s[i] & 0x80000000) | (s[(i + 1) % SIZE] & 0x7fffffff);
      s[i] = s[(i + SHIFT) % SIZE] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
    this.next = 0;
  }

  /** A float32 in [0, 1): 24 random bits, as torch takes them. */
  single() {
    return (this.bits() & 0xffffff) / 2 ** 24;
  }

  /** A float64 in [0, 1): 53 random bits. */
  double() {
    const high = this.bits();
    const low = this.bits();
    return ((high & 0x1fffff) * 2 ** 32 + low) / 2 ** 53;
  }

  /**
   * What `nn.Linear` begins with: float32, even in (-bound, bound), bound = 1 / √inputs.
   *
   * @param {number} count
   * @param {number} inputs
   */
  linear(count, inputs) {
    const bound = Math.fround(1 / Math.sqrt(inputs));
    const values = new Float64Array(count);
    for (let i = 0; i < count; i++)
      values[i] = Math.fround(this.single() * Math.fround(2 * bound) - bound);
    return values;
  }

  /**
   * `torch.randn(count, dtype=torch.float64) * std`: pairs of even numbers become normal
   * ones as in Box and Muller (1958), eight pairs at a time, as torch lays them out.
   *
   * @param {number} count a multiple of 16: others torch draws in another order
   * @param {number} [std]
   */
  normal(count, std = 1) {
    if (count % 16) throw new RangeError(`count (${count}) must be a multiple of 16`);
    const values = new Float64Array(count);
    for (let i = 0; i < count; i++) values[i] = this.double();
    for (let group = 0; group < count; group += 16)
      for (let i = group; i < group + 8; i++) {
        const radius = Math.sqrt(-2 * Math.log(1 - values[i]));
        const angle = 2 * Math.PI * values[i + 8];
        values[i] = radius * Math.cos(angle) * std;
        values[i + 8] = radius * Math.sin(angle) * std;
      }
    return values;
  }
}

/**
 * Return `torch.randn(count, dtype=torch.float64)` after `torch.manual_seed(seed)`.
 * @param {number} seed
 * @param {number} count a multiple of 16
 */
export function torchNormal(seed, count) {
  return new TorchRandom(seed).normal(count);
}
