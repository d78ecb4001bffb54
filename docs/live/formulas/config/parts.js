/**
 * What a part of a model is made of, as formulas of its sizes: the count is computed from
 * the formula that is shown.
 *
 * V vocabulary · D width · F inner width · H heads · G key/value heads · Dh width of a head
 * · E experts · k experts of a token · R latent of keys and values · Q latent of queries ·
 * Dr rotated part · Dv width of a value · Dk width of a key · K kernel · P positions ·
 * N rank of the decay and the gate
 * Of what each layer is told: N layers · P width
 */

/** @typedef {(string | number)[]} Term a product of letters and numbers */
/**
 * @typedef {object} Part
 * @property {string} name
 * @property {Term[]} terms whose sum is the count
 * @property {Record<string, number>} sizes of the letters
 * @property {string} chapter that explains it, with the section
 * @property {number} [chosen] of E experts, those that a token uses
 */
/** @typedef {{D: number, H: number, G: number, Dh: number, bias: boolean,
 *   outBias: boolean, norms: "" | "head" | "all", normNumbers: number,
 *   gate: Term[], sinks: boolean, shared: boolean,
 *   valuesAreKeys: boolean}} Heads `shared` where keys and values are another layer's */
/** @typedef {{D: number, H: number, Q: number | null, R: number, Dh: number, Dr: number,
 *   Dv: number}} Latent */
/** @typedef {{D: number, H: number, G: number, Dk: number, Dv: number, K: number,
 *   N: number}} Delta `N` is 0 where decay and gate are one matrix each */
/** @typedef {{D: number, F: number, gated: boolean, bias: boolean}} Network */
/** @typedef {Network & {E: number, k: number, Fs: number, sharedGate: boolean,
 *   routerBias: boolean, selectionBias: boolean}} Experts */

/**
 * The value of a formula.
 * @param {Term[]} terms
 * @param {Record<string, number>} sizes
 */
export function valueOf(terms, sizes) {
  return terms.reduce((sum, term) => sum + term.reduce(
    (/** @type {number} */ product, factor) =>
      product * (typeof factor === "number" ? factor : sizes[factor]), 1), 0);
}

/**
 * A formula as text: in letters, or with its sizes.
 * @param {Term[]} terms
 * @param {(factor: string | number) => string} [write]
 */
export function written(terms, write = String) {
  return terms.map((term) => term.map(write).join(" · ")).join(" + ");
}

/**
 * @param {string} name
 * @param {string} chapter
 * @param {Record<string, number>} sizes
 * @param {...(Term | false | null | "")} terms those that are there
 * @returns {Part}
 */
export function part(name, chapter, sizes, ...terms) {
  const there = /** @type {Term[]} */ (terms.filter(Boolean));
  const letters = new Set(there.flat());
  const used = Object.entries(sizes).filter(([letter]) => letters.has(letter));
  return { name, chapter, terms: there, sizes: Object.fromEntries(used) };
}

/** @param {Heads} sizes @returns {Part[]} */
export function headParts({ D, H, G, Dh, bias, outBias, norms, normNumbers, gate, sinks, shared,
  valuesAreKeys }) {
  const sizes = { D, H, G, Dh };
  const few = G < H ? "heads/#fewer-keys-and-values" : "heads/#the-formula";
  const n = normNumbers;
  const shares = "shared-keys/#the-formula";
  const keys = shared ? part("keys and values of an earlier layer", shares, sizes, [0])
    : valuesAreKeys
      ? part("keys, which are values too", shares, sizes, ["D", "G", "Dh"], bias && ["G", "Dh"])
      : part("keys and values", few, sizes, [2, "D", "G", "Dh"], bias && [2, "G", "Dh"]);
  const found = [
    part("queries", "heads/#the-formula", sizes, ["D", "H", "Dh"], bias && ["H", "Dh"]),
    keys,
    part("output of attention", "heads/#the-formula", sizes, ["H", "Dh", "D"], outBias && ["D"]),
  ];
  const normed = "qk-norm/#the-norm-of-queries-has-the-wrong-width";
  if (norms && n) {
    found.push(norms === "head"
      ? part(shared ? "norm of queries" : "norms of queries and keys", normed, sizes,
        shared && n === 1 ? ["Dh"] : [(shared ? 1 : 2) * n, "Dh"])
      : part("norms of queries and keys", normed, sizes, ["H", "Dh"], ["G", "Dh"]));
  }
  if (gate.length) {
    found.push(part("gate of attention", "qk-norm/#output-gate", sizes, ...gate));
  }
  if (sinks) found.push(part("sinks", "attention-sinks/#what-a-sink-does", sizes, ["H"]));
  return found;
}

/** @param {Latent} given @returns {Part[]} */
export function latentParts({ D, H, Q, R, Dh, Dr, Dv }) {
  const sizes = { D, H, Q: Q ?? 0, R, Dh, Dr, Dv };
  const at = "small-caches/#the-formula";
  const from = Q ? "Q" : "D";
  return [
    part("queries", at, sizes, ...(Q ? [["D", "Q"], ["Q"]] : []),
      [from, "H", "Dh"], [from, "H", "Dr"]),
    part("down to the latent", at, sizes, ["D", "R"], ["D", "Dr"], ["R"]),
    part("keys and values of the latent", at, sizes, ["R", "H", "Dh"], ["R", "H", "Dv"]),
    part("output of attention", at, sizes, ["H", "Dv", "D"]),
  ];
}

/** @param {Delta} sizes @returns {Part[]} */
export function deltaParts(sizes) {
  const at = "linear-attention/#the-gated-delta-rule";
  /** @type {Term[]} */
  const rates = sizes.N
    ? [["D", "H"], ["D", "N"], ["N", "H", "Dk"], ["H"], ["H", "Dk"]] : [[2, "D", "H"], [2, "H"]];
  /** @type {Term[]} */
  const gate = sizes.N ? [["D", "N"], ["N", "H", "Dv"]] : [["D", "H", "Dv"]];
  return [
    part("queries, keys of the delta rule", at, sizes, [2, "D", "G", "Dk"]),
    part("values of the delta rule", at, sizes, ["D", "H", "Dv"]),
    part("what is written, what decays", at, sizes, ...rates),
    part("short convolution", "state-spaces/#short-convolution", sizes,
      [2, "G", "Dk", "K"], ["H", "Dv", "K"]),
    part("norm and gate of its output", at, sizes, ["Dv"], ...gate),
    part("output of the delta rule", at, sizes, ["H", "Dv", "D"]),
  ];
}

/** @param {Network} sizes @returns {Term[]} */
function networkTerms({ gated, bias }) {
  const biases = [gated ? [2, "F"] : ["F"], ["D"]];
  return [[gated ? 3 : 2, "D", "F"], ...(bias ? biases : [])];
}

/** @param {Network} network @returns {Part[]} */
export function networkParts(network) {
  const { D, F, gated } = network;
  const at = gated ? "swiglu/#the-gated-network" : "feed-forward/#the-formula";
  return [part(gated ? "gated network" : "network", at, { D, F }, ...networkTerms(network))];
}

/** @param {Experts} experts @returns {Part[]} */
export function expertParts(experts) {
  const { D, E, F, k, Fs, sharedGate, routerBias, selectionBias } = experts;
  const each = networkTerms(experts).map((term) => ["E", ...term]);
  const found = [
    { ...part("experts", "experts/#the-formula", { D, E, F }, ...each), chosen: k },
    part("router", "experts/#the-formula", { D, E }, ["D", "E"], routerBias && ["E"],
      selectionBias && ["E"]),
  ];
  if (Fs) {
    const shared = networkTerms(experts).map((term) => term.map((x) => (x === "F" ? "Fs" : x)));
    found.push(part("expert of all tokens", "experts/#the-formula", { D, Fs }, ...shared,
      sharedGate && ["D"]));
  }
  return found;
}
