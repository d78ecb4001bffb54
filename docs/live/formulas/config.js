/**
 * What a config.json of a language model says: its layers, its parameters part by part,
 * and the bytes of its KV cache. Pure functions, held to `tformer.models.families`.
 */

import { FAMILIES } from "./config/families.js";
import { OWN } from "./config/own.js";
import * as parts from "./config/parts.js";
import { complete, Refused } from "./config/words.js";
import { roomFor } from "./window.js";

/** @typedef {import("./config/words.js").Config} Config */
/** @typedef {import("./config/words.js").Known} Known */
/** @typedef {import("./config/parts.js").Part} Part */
/** @typedef {import("./config/parts.js").Term} Term */
/** @typedef {import("./config/layers.js").Attention} Attention */
/** @typedef {import("./config/layers.js").Following} Following */
/** @typedef {Part & {times: number, count: number, active: number}} Row `count` of all
 *   times together, `active` those that one token uses */
/**
 * @typedef {object} Layer
 * @property {string} attends "all", "window 4,096", "latent", "delta rule"
 * @property {Attention} attention
 * @property {Following} network
 * @property {number | null} window
 */
/** @typedef {{layer: Layer, count: number, first: number}} Kind of so many layers */
/**
 * @typedef {object} Reading
 * @property {string} kind the `model_type`
 * @property {string[]} unknown words that the family does not know
 * @property {string[]} notes
 * @property {Row[]} rows
 * @property {number} parameters
 * @property {number} active
 * @property {Layer[]} layers
 * @property {Kind[]} kinds of layers, each once, in the order in which they first come
 * @property {{placement: import("./config/layers.js").Placement, norm: string,
 *   oneNorm: boolean, positions: string, tied: boolean, V: number, D: number, told: number,
 *   scaled: boolean}} around
 * @property {number} maxLen
 */

export { parse, Refused } from "./config/words.js";
export { valueOf, written } from "./config/parts.js";

const WIDE = 4; // bytes: a state is kept in float32, also where weights have 16 bits

/**
 * Read a config.
 * @param {Config} given
 * @param {Known} known
 * @returns {Reading}
 */
export function read(given, known) {
  const { c, kind, unknown, notes } = complete(given, known);
  const family = FAMILIES[kind] ?? OWN[kind];
  if (!family) throw new Refused(`model_type (${kind}) is known by name, and cannot be counted yet.`);
  family.check(c);
  const { V, D, N, P } = family.sizes(c);
  const norm = family.norm(c), placement = family.placement(c), tied = family.tied(c);
  const positions = family.positions(c);
  const layers = family.layerTypes(c).map((type, i) => {
    const attention = family.attention(c, i, type);
    const window = type === "sliding_attention" && attention.kind === "heads" ? family.window(c) : null;
    return { attention, window, attends: attends(attention, window), network: family.network(c, i) };
  });
  const rows = [row(parts.part("embedding", "tokens/#what-does-a-larger-vocabulary-cost",
    { V, D }, ["V", "D"]))];
  if (positions === "learned") {
    rows.push(row(parts.part("positions", "positions/#a-learned-table", { P, D }, ["P", "D"])));
  }
  if (positions === "t5" && layers[0].attention.kind === "heads") {
    rows.push(row(parts.part("bias of distances", "relative-biases/", { H: layers[0].attention.sizes.H },
      [32, "H"])));
  }
  rows.push(...ofLayers(layers));
  rows.push(...(family.further?.(c) ?? []).map(({ part, times }) => row(part, times)));
  const each = { pre: 2, post: 2, output: 2, sandwich: 4, parallel: family.oneNorm ? 1 : 2 }[placement];
  const normed = "block-today/#rmsnorm";
  if (norm.numbers) {
    const times = (/** @type {number} */ n) => (n === 1 ? ["D"] : [n, "D"]);
    rows.push(row(parts.part("norms of a block", normed, { D }, times(each * norm.numbers)), N));
    if (placement !== "post") rows.push(row(parts.part("last norm", normed, { D }, times(norm.numbers))));
  }
  if (!tied) rows.push(row(parts.part("output", "gpt/#the-formula", { D, V }, ["D", "V"])));
  const parameters = sum(rows.map(({ count }) => count));
  if (parameters > Number.MAX_SAFE_INTEGER) {
    throw new Refused("These sizes make more parameters than can be counted exactly here.");
  }
  return {
    kind, unknown, notes, rows, parameters, active: sum(rows.map(({ active }) => active)),
    layers, kinds: kindsOf(layers), maxLen: P,
    around: { placement, norm: norm.name, oneNorm: family.oneNorm, positions, tied, V, D,
      told: family.told?.(c) ?? 0, scaled: Boolean(family.scaled) },
  };
}

/** @param {number[]} numbers */
function sum(numbers) {
  return numbers.reduce((total, x) => total + x, 0);
}

/**
 * How a layer attends, as the page of families says it.
 * @param {Attention} attention
 * @param {number | null} window
 */
function attends(attention, window) {
  if (attention.kind !== "heads") return attention.kind === "latent" ? "latent" : "delta rule";
  return window === null ? "all" : `window ${window.toLocaleString("en")}`;
}

/**
 * A part so many times; of experts a token uses k in the place of E.
 * @param {Part} part
 * @param {number} [times]
 * @returns {Row}
 */
function row(part, times = 1) {
  const { terms, sizes, chosen } = part;
  const used = chosen === undefined ? sizes : { ...sizes, E: chosen };
  return { ...part, times, count: times * parts.valueOf(terms, sizes),
    active: times * parts.valueOf(terms, used) };
}

/**
 * The parts of all layers: those that are alike in name, formula and sizes are one row.
 * @param {Layer[]} layers
 * @returns {Row[]}
 */
function ofLayers(layers) {
  /** @type {Map<string, {part: Part, times: number}>} */
  const found = new Map();
  for (const { attention, network } of layers) {
    for (const part of [...attentionParts(attention), ...followingParts(network)]) {
      const key = JSON.stringify(part);
      const known = found.get(key);
      if (known) known.times += 1;
      else found.set(key, { part, times: 1 });
    }
  }
  return [...found.values()].map(({ part, times }) => row(part, times));
}

/** @param {Attention} attention */
function attentionParts({ kind, sizes }) {
  if (kind === "heads") return parts.headParts(sizes);
  return kind === "latent" ? parts.latentParts(sizes) : parts.deltaParts(sizes);
}

/** @param {Following} network */
function followingParts({ kind, sizes }) {
  return kind === "dense" ? parts.networkParts(sizes) : parts.expertParts(sizes);
}

/**
 * @param {Layer[]} layers
 * @returns {Kind[]}
 */
function kindsOf(layers) {
  /** @type {Map<string, Kind>} */
  const found = new Map();
  layers.forEach((layer, first) => {
    const key = JSON.stringify(layer);
    const known = found.get(key);
    if (known) known.count += 1;
    else found.set(key, { layer, count: 1, first });
  });
  return [...found.values()];
}

/**
 * What one layer keeps of a text, as a formula of bytes.
 *
 * With a window W the package takes room for 2 W tokens: one copy in W tokens, and not at
 * each. A state has one size after any number of tokens.
 * @param {Layer} layer
 * @param {number} length L
 * @param {number} bytes b: of a number
 * @returns {{terms: Term[], sizes: Record<string, number>, bytes: number}}
 */
export function kept({ attention, window }, length, bytes) {
  const { kind, sizes } = attention;
  const rolls = roomFor(length, window) < length;
  /** @type {Term[]} */
  let terms = [[2, "G", "Dh", ...(rolls ? [2, "W"] : ["L"]), "b"]];
  if (kind === "heads" && sizes.shared) terms = [[0]]; // the other layer keeps them
  if (kind === "latent") terms = [["R", "L", "b"], ["Dr", "L", "b"]];
  if (kind === "delta") {
    const before = sizes.K - 1;
    terms = [["H", "Dk", "Dv", WIDE]];
    if (before) terms.push([2, "G", "Dk", before, "b"], ["H", "Dv", before, "b"]);
  }
  const { name: _, chapter: __, ...found } = parts.part("", "", { ...numbersOf(sizes),
    L: length, W: window ?? 0, b: bytes }, ...terms);
  return { ...found, bytes: parts.valueOf(terms, found.sizes) };
}

/** @param {object} sizes @returns {Record<string, number>} those that are numbers */
function numbersOf(sizes) {
  return Object.fromEntries(Object.entries(sizes).filter(([, x]) => typeof x === "number"));
}

/**
 * The bytes of the whole cache of one text.
 * @param {Reading} reading
 * @param {number} length
 * @param {number} bytes of a number
 */
export function cacheBytes({ kinds }, length, bytes) {
  return sum(kinds.map(({ layer, count }) => count * kept(layer, length, bytes).bytes));
}
