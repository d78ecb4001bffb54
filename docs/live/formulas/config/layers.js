/** What families have in common, as `assembling.py` and `mixtures.py`: which layers attend
 * how, and which have experts. */

import { divides, Refused, shown, size, sizeOr } from "./words.js";

/** @typedef {import("./words.js").Config} Config */
/** @typedef {import("./parts.js").Heads} Heads */
/** @typedef {{kind: "heads", sizes: Heads, rotates: boolean}
 *   | {kind: "latent", sizes: import("./parts.js").Latent, rotates: boolean}
 *   | {kind: "delta", sizes: import("./parts.js").Delta, rotates: boolean}} Attention */
/** @typedef {{kind: "dense", sizes: import("./parts.js").Network}
 *   | {kind: "experts", sizes: import("./parts.js").Experts}} Following */
/** @typedef {"pre" | "post" | "output" | "sandwich" | "parallel"} Placement */
/** @typedef {{name: string, numbers: number}} Norm `numbers` learned for each of a width */
/**
 * @typedef {object} Family
 * @property {(c: Config) => {V: number, D: number, N: number, P: number}} sizes
 * @property {(c: Config) => boolean} tied
 * @property {(c: Config) => string[]} layerTypes of each layer
 * @property {(c: Config, layer: number, type: string) => Attention} attention
 * @property {(c: Config, layer: number) => Following} network
 * @property {(c: Config) => Norm} norm
 * @property {(c: Config) => Placement} placement
 * @property {boolean} oneNorm both sub-layers of a block have one norm together
 * @property {(c: Config) => string} positions
 * @property {(c: Config) => number | null} window of the layers that have one
 * @property {(c: Config) => {part: import("./parts.js").Part, times: number}[]} [further]
 *   parts that others do not have
 * @property {(c: Config) => number} [told] width of what each layer is told of its token
 * @property {boolean} [scaled] what a block returns is multiplied by a fixed number
 * @property {(c: Config) => void} check what else the family refuses
 */

export const MOST_LAYERS = 1000;
export const NEAR = "sliding_attention", FAR = "full_attention", STATE = "linear_attention";

/** @param {Config} c @returns {number} */
export function layersOf(c) {
  return size(c, "num_hidden_layers", { most: MOST_LAYERS });
}

/** @param {(layer: number) => string} otherwise @param {string[]} [known] */
export function typesBy(otherwise, known = [FAR, NEAR]) {
  /** @param {Config} c @returns {string[]} */
  return (c) => {
    const N = layersOf(c);
    const given = c.layer_types;
    if (given === null || given === undefined) return Array.from({ length: N }, (_, i) => otherwise(i));
    if (!Array.isArray(given) || given.length !== N) {
      throw new Refused(`layer_types (${shown(given)}) must be a list of ${N} layers.`);
    }
    for (const type of given) {
      if (!known.includes(type)) {
        throw new Refused(`layer_types has ${shown(type)}: known are ${known.join(", ")}.`);
      }
    }
    return given;
  };
}

/** All layers near, but each n-th. @param {(c: Config) => number} every */
export const allButEvery = (every) => (/** @type {Config} */ c) => {
  const n = every(c);
  return typesBy((i) => ((i + 1) % n ? NEAR : FAR))(c);
};

/** @param {Config} c @param {Partial<Heads>} [changes] @returns {Heads} */
export function headsOf(c, changes = {}) {
  const D = size(c, "hidden_size"), H = size(c, "num_attention_heads");
  const G = sizeOr(c, "num_key_value_heads", H);
  const Dh = sizeOr(c, "head_dim", Math.floor(D / H));
  if (Dh < 1) throw new Refused(`hidden_size (${D}) must be at least num_attention_heads (${H}).`);
  divides(["num_attention_heads", H], ["num_key_value_heads", G]);
  const bias = Boolean(c.attention_bias);
  return { D, H, G, Dh, bias, outBias: bias, norms: "", normNumbers: 1, gate: [], sinks: false,
    shared: false, valuesAreKeys: false, ...changes };
}

/** @param {(c: Config) => Partial<Heads>} changes @returns {Family["attention"]} */
export const heads = (changes) => (c) => ({ kind: "heads", sizes: headsOf(c, changes(c)), rotates: true });

/** @param {boolean} gated @param {(c: Config) => unknown} [bias] @returns {Family["network"]} */
export const dense = (gated, bias = (c) => c.mlp_bias) => (c) => ({ kind: "dense", sizes: {
  D: size(c, "hidden_size"), F: size(c, "intermediate_size"), gated, bias: Boolean(bias(c)) } });

/**
 * Experts in the layers that have them, a dense network in the others.
 * @param {(c: Config) => {E: number, F: number, Fs?: number, sharedGate?: boolean,
 *   bias?: boolean, routerBias?: boolean, selectionBias?: boolean}} say
 * @returns {Family["network"]}
 */
export const experts = (say) => (c, layer) => {
  const named = c.mlp_only_layers ?? [];
  if (!Array.isArray(named)) {
    throw new Refused(`mlp_only_layers (${shown(named)}) must be a list of layers.`);
  }
  const first = "first_k_dense_replace" in c ? size(c, "first_k_dense_replace", { least: 0 }) : 0;
  const step = "decoder_sparse_step" in c ? size(c, "decoder_sparse_step") : 1;
  if (layer < first || named.includes(layer) || (layer + 1) % step) return dense(true, () => false)(c, layer);
  const said = say(c);
  const k = size(c, "num_experts_per_tok");
  if (k > said.E) throw new Refused(`num_experts_per_tok (${k}) must be at most ${said.E}, the experts.`);
  return { kind: "experts", sizes: { D: size(c, "hidden_size"), k, gated: true, bias: false, Fs: 0,
    sharedGate: false, routerBias: false, selectionBias: false, ...said } };
};
