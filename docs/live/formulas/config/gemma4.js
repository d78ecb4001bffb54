/** Gemma 4, its text: layers that share keys and values, and are told their token again. */

import { dense, FAR, headsOf, layersOf, NEAR, typesBy } from "./layers.js";
import { part } from "./parts.js";
import { divides, isObject, only, Refused, shown, size } from "./words.js";

/** @typedef {import("./words.js").Config} Config */
/** @typedef {import("./layers.js").Family} Family */

/** The type of each layer; the last sees all tokens. @param {Config} c @returns {string[]} */
function layerTypes(c) {
  return [...typesBy((i) => ((i + 1) % 6 ? NEAR : FAR))(c).slice(0, -1), FAR];
}

/** How many layers have keys of their own: the first ones. @param {Config} c */
function withKeys(c) {
  const types = layerTypes(c), own = types.length - size(c, "num_kv_shared_layers", { least: 0 });
  const there = new Set(types.slice(0, Math.max(0, own)));
  if (types.every((type) => there.has(type))) return own;
  throw new Refused(`num_kv_shared_layers (${shown(c.num_kv_shared_layers)}) must leave layers ` +
    `with keys of each type in ${types.length}.`);
}

/** The words for layers that see all tokens, out of `per_layer_config`. @param {Config} c */
function global(c) {
  const given = c.per_layer_config;
  if (given === null) return { width: c.global_head_dim, groups: c.num_global_key_value_heads };
  const wrong = new Refused(`per_layer_config (${shown(given)}) must say one head_dim of the ` +
    "layers that see all tokens.");
  if (!isObject(given) || !Object.values(given).every(isObject)) throw wrong;
  const far = layerTypes(c).flatMap((type, i) => (type === FAR ? [i] : []));
  const told = new Map(Object.entries(given).map(([i, words]) => [Number(i), words]));
  const each = far.map((i) => JSON.stringify(Object.entries(told.get(i) ?? {}).sort()));
  const { head_dim: width = c.head_dim, num_key_value_heads: groups = null, ...others } =
    told.get(far[0]) ?? {};
  const known = each.every((x) => x === each[0]) && [...told.keys()].every((i) => far.includes(i));
  if (!known || Object.keys(others).length || (groups && !c.attention_k_eq_v)) throw wrong;
  return { width, groups };
}

/** The width of what each layer is told, 0 without. @param {Config} c */
function toldWidth(c) {
  const word = "hidden_size_per_layer_input";
  return c[word] === null ? 0 : size(c, word, { least: 0 });
}

/** @param {Family} llama @returns {Family} */
export const gemma4 = (llama) => ({
  ...llama,
  layerTypes,
  attention: (c, layer, type) => {
    const far = type === FAR, { width, groups } = global(c), valuesAreKeys = far && c.attention_k_eq_v;
    /** @type {Config} */
    const told = { ...c, head_dim: far ? width : c.head_dim };
    if (valuesAreKeys && groups) {
      const word = "num_global_key_value_heads", G = size({ ...c, [word]: groups }, word);
      divides(["num_attention_heads", size(c, "num_attention_heads")], [word, G]);
      told.num_key_value_heads = G;
    }
    size(told, "head_dim");
    return { kind: "heads", rotates: true, sizes: headsOf(told, { norms: "head",
      shared: layer >= withKeys(c), valuesAreKeys: Boolean(valuesAreKeys) }) };
  },
  network: (c, layer) => {
    const wide = c.use_double_wide_mlp && layer >= withKeys(c) ? 2 : 1;
    return dense(true, () => false)({ ...c, intermediate_size: wide * size(c, "intermediate_size") },
      layer);
  },
  placement: () => "sandwich",
  told: toldWidth,
  scaled: true,
  further: (c) => {
    const P = toldWidth(c);
    if (!P) return [];
    const N = layersOf(c), at = "block-today/#per-layer";
    const sizes = { V: size(c, "vocab_size_per_layer_input"), D: size(c, "hidden_size"), N, P };
    return [
      { part: part("second embedding, for each layer", at, sizes, ["V", "N", "P"]), times: 1 },
      { part: part("what each layer is told", at, sizes, ["D", "N", "P"], ["P"]), times: 1 },
      { part: part("how far a layer lets it in", at, sizes, [2, "D", "P"], ["D"]), times: N },
    ];
  },
  check: (c) => {
    only(c, "use_bidirectional_attention", null);
    only(c, "enable_moe_block", false);
    only(c, "hidden_activation", "gelu_pytorch_tanh");
    const turned = isObject(c.rope_parameters) ? Object.keys(c.rope_parameters) : [];
    if (turned.sort().join() !== [FAR, NEAR].join()) {
      throw new Refused(`rope_parameters (${shown(c.rope_parameters)}) must be of ${NEAR} and ${FAR}.`);
    }
    withKeys(c);
  },
});
