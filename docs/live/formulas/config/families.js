/**
 * What each family makes of its complete config c, as `tformer/models/families/*.py`: a
 * family is the one that it came from, with some functions replaced.
 */

import {
  allButEvery, dense, experts, FAR, heads, headsOf, layersOf, NEAR, STATE, typesBy,
} from "./layers.js";
import { gemma4 } from "./gemma4.js";
import { divides, only, Refused, shown, size, sizeOr } from "./words.js";

/** @typedef {import("./words.js").Config} Config */
/** @typedef {import("./layers.js").Family} Family */

/** @type {Family} */
const llama = {
  sizes: (c) => ({ V: size(c, "vocab_size"), D: size(c, "hidden_size"), N: layersOf(c),
    P: size(c, "max_position_embeddings") }),
  tied: (c) => Boolean(c.tie_word_embeddings),
  layerTypes: (c) => Array(layersOf(c)).fill(NEAR),
  attention: heads(() => ({})),
  network: dense(true),
  norm: () => ({ name: "RMSNorm", numbers: 1 }),
  placement: () => "pre",
  oneNorm: false,
  positions: () => "rotary",
  window: (c) => sizeOr(c, "sliding_window", 0) || null,
  check: () => {},
};
const noBias = (/** @type {Config} */ c) => only(c, "attention_bias", false);
const plusOne = () => ({ name: "RMSNorm, 1 + w", numbers: 1 });

/** @type {Family} */
const qwen2 = {
  ...llama,
  attention: heads(() => ({ outBias: false })),
  layerTypes: (c) => typesBy((i) => (c.use_sliding_window && i >= size(c, "max_window_layers",
    { least: 0 }) ? NEAR : FAR))(c).map((type) => (c.use_sliding_window ? type : FAR)),
  check: (c) => only(c, "attention_bias", true),
};
/** @type {Family} */
const qwen3 = {
  ...qwen2,
  attention: heads(() => ({ norms: "head" })),
  check: (c) => only(c, "qk_norm", true),
};
/** @type {Family} */
const olmo2 = { ...llama, attention: heads(() => ({ norms: "all" })), placement: () => "output" };
/** @type {Family} */
const gemma2 = {
  ...llama,
  network: dense(true, () => false),
  norm: plusOne,
  placement: () => "sandwich",
  layerTypes: allButEvery(() => 2),
  check: (c) => only(c, "mlp_bias", false),
};
/** @type {Family} */
const deepseek = {
  ...llama,
  layerTypes: (c) => Array(layersOf(c)).fill(FAR),
  attention: (c) => ({ kind: "latent", rotates: true, sizes: {
    D: size(c, "hidden_size"), H: size(c, "num_attention_heads"),
    Q: c.q_lora_rank === null ? null : size(c, "q_lora_rank"), R: size(c, "kv_lora_rank"),
    Dh: size(c, "qk_nope_head_dim"), Dr: size(c, "qk_rope_head_dim"), Dv: size(c, "v_head_dim") } }),
  network: experts((c) => ({ E: size(c, "n_routed_experts"), F: size(c, "moe_intermediate_size"),
    Fs: size(c, "n_shared_experts", { least: 0 }) * size(c, "moe_intermediate_size"),
    selectionBias: true })),
  check: (c) => {
    noBias(c);
    only(c, "sliding_window", null);
    only(c, "num_key_value_heads", c.num_attention_heads, null);
    only(c, "moe_layer_freq", 1);
  },
};
/** @type {Family} */
const next = {
  ...llama,
  norm: plusOne,
  layerTypes: (c) => {
    const every = size(c, "full_attention_interval");
    return typesBy((i) => ((i + 1) % every ? STATE : FAR), [STATE, FAR])(c);
  },
  attention: (c, _, type) => {
    if (type === FAR) {
      const gate = [["D", "H", "Dh"], ...(c.attention_bias ? [["H", "Dh"]] : [])];
      return { kind: "heads", sizes: headsOf(c, { norms: "head", gate }), rotates: true };
    }
    const H = size(c, "linear_num_value_heads"), G = size(c, "linear_num_key_heads");
    divides(["linear_num_value_heads", H], ["linear_num_key_heads", G]);
    return { kind: "delta", rotates: false, sizes: { D: size(c, "hidden_size"), H, G,
      Dk: size(c, "linear_key_head_dim"), Dv: size(c, "linear_value_head_dim"),
      K: size(c, "linear_conv_kernel_dim"), N: 0 } };
  },
  network: experts((c) => ({ E: size(c, "num_experts"), F: size(c, "moe_intermediate_size"),
    Fs: size(c, "shared_expert_intermediate_size"), sharedGate: true })),
};

/** @param {Config} c of SmolLM3 @returns {unknown[]} of each layer whether it rotates */
function rotatesIn(c) {
  const N = layersOf(c), every = size(c, "no_rope_layer_interval"), given = c.no_rope_layers;
  if (given === null) return Array.from({ length: N }, (_, i) => (i + 1) % every);
  if (!Array.isArray(given) || given.length < N) {
    throw new Refused(`no_rope_layers (${shown(given)}) must be a list of ${N} layers.`);
  }
  return given.slice(0, N);
}

/** The words of Kimi Linear's delta layers. @param {Config} c @returns {Config} */
function told(c) {
  const given = c.linear_attn_config ?? {};
  if (typeof given === "object" && !Array.isArray(given)) return given;
  throw new Refused(`linear_attn_config (${shown(given)}) must be an object.`);
}

/** @type {Family} */
const kimi = {
  ...deepseek,
  sizes: (c) => ({ V: size(c, "vocab_size"), D: size(c, "hidden_size"), N: layersOf(c),
    P: size(c, "model_max_length") }),
  layerTypes: (c) => {
    const named = told(c).full_attn_layers;
    if (named !== undefined && !Array.isArray(named)) {
      throw new Refused(`full_attn_layers (${shown(named)}) must be a list of layers.`);
    }
    return typesBy((i) => ((named ? named.includes(i + 1) : i > 0 && i % 4 === 0) ? FAR : STATE),
      [STATE, FAR])(c);
  },
  attention: (c, layer, type) => {
    if (type === FAR) return { ...deepseek.attention(c, layer, type), rotates: false };
    const { head_dim, num_heads, short_conv_kernel_size } = told(c);
    const all = { ...c, linear_head_dim: head_dim ?? c.linear_head_dim,
      linear_num_heads: num_heads ?? c.linear_num_heads,
      linear_conv_kernel_dim: short_conv_kernel_size ?? c.linear_conv_kernel_dim };
    const width = size(all, "linear_head_dim"), H = size(all, "linear_num_heads");
    return { kind: "delta", rotates: false, sizes: { D: size(c, "hidden_size"), H, G: H, Dk: width,
      Dv: width, K: size(all, "linear_conv_kernel_dim"), N: width } };
  },
  network: (c, layer) => {
    const types = c.mlp_layer_types;
    if (types !== null && (!Array.isArray(types) || !["dense", "sparse"].includes(types[layer]))) {
      throw new Refused(`mlp_layer_types (${shown(types)}) must say dense or sparse of each layer.`);
    }
    const first = types === null ? c.first_k_dense_replace : layer + Number(types[layer] === "dense");
    return deepseek.network({ ...c, first_k_dense_replace: first,
      n_routed_experts: size(c, "num_experts"), num_experts_per_tok: size(c, "num_experts_per_token"),
      n_shared_experts: size(c, "num_shared_experts", { least: 0 }) }, layer);
  },
  positions: () => "none",
  check: (c) => {
    deepseek.check(c);
    only(c, "max_position_embeddings", null, c.model_max_length);
  },
};

/** The families by `model_type`, but GPT-2 and our own, whose words are others.
 * @type {Record<string, Family>} */
export const FAMILIES = {
  llama, mistral: llama, granite: llama, ministral3: llama, qwen2, qwen3, olmo2, gemma2,
  phi3: { ...llama, check: (c) => {
    for (const word of ["attention_bias", "mlp_bias", "lm_head_bias"]) only(c, word, false);
  } },
  olmo3: { ...olmo2, layerTypes: allButEvery(() => 4) },
  smollm3: {
    ...llama,
    layerTypes: (c) => {
      const turns = rotatesIn(c), windows = c.use_sliding_window && c.sliding_window !== null;
      return typesBy((i) => (turns[i] ? FAR : NEAR))(c).map((type) => (windows ? type : FAR));
    },
    attention: (c, layer) => ({ kind: "heads", sizes: headsOf(c), rotates: Boolean(rotatesIn(c)[layer]) }),
  },
  exaone4: {
    ...olmo2,
    layerTypes: (c) => allButEvery((all) => (all.sliding_window === null ? 1
      : all.sliding_window_pattern === "LLLG" ? 4 : size(all, "sliding_window_pattern")))(c),
    attention: (c, _, type) => ({ kind: "heads", sizes: headsOf(c, { norms: "head" }),
      rotates: c.sliding_window === null || type === NEAR }),
    check: (c) => {
      for (const word of ["attention_bias", "mlp_bias"]) only(c, word, false);
    },
  },
  cohere2: {
    ...llama,
    layerTypes: allButEvery((c) => size(c, "sliding_window_pattern")),
    attention: (c, _, type) => ({ kind: "heads", sizes: headsOf(c), rotates: type === NEAR }),
    norm: () => ({ name: "LayerNorm, no bias", numbers: 1 }),
    placement: () => "parallel",
    oneNorm: true,
    check: (c) => {
      only(c, "use_qk_norm", false);
      only(c, "use_parallel_block", true);
      only(c, "use_gated_activation", true);
    },
  },
  gemma3_text: {
    ...gemma2,
    attention: heads(() => ({ norms: "head" })),
    layerTypes: allButEvery((c) => size(c, "sliding_window_pattern")),
  },
  gemma4_text: gemma4(llama),
  gpt_neox: {
    ...llama,
    network: dense(false, () => true),
    norm: () => ({ name: "LayerNorm", numbers: 2 }),
    placement: (c) => (c.use_parallel_residual ? "parallel" : "pre"),
  },
  hunyuan_v1_dense: {
    ...llama,
    attention: heads(() => ({ norms: "head" })),
    check: (c) => {
      for (const word of ["mlp_bias", "use_cla"]) only(c, word, false);
      only(c, "use_qk_norm", true);
    },
  },
  nanochat: {
    ...llama,
    attention: heads(() => ({ norms: "head", normNumbers: 0 })),
    network: dense(false, () => false),
    norm: () => ({ name: "RMSNorm, no gain", numbers: 0 }),
    check: (c) => only(c, "mlp_bias", false),
  },
  mixtral: { ...llama, network: experts((c) => ({ E: size(c, "num_local_experts"),
    F: size(c, "intermediate_size") })) },
  qwen3_moe: {
    ...qwen3,
    layerTypes: (c) => Array(layersOf(c)).fill(c.use_sliding_window ? NEAR : FAR),
    network: experts((c) => ({ E: sizeOr(c, "num_local_experts", 0) || size(c, "num_experts"),
      F: size(c, "moe_intermediate_size") })),
  },
  gpt_oss: {
    ...llama,
    layerTypes: allButEvery(() => 2),
    attention: heads(() => ({ sinks: true })),
    network: experts((c) => ({ E: size(c, "num_local_experts"), F: size(c, "intermediate_size"),
      bias: true, routerBias: true })),
  },
  minimax_m2: {
    ...llama,
    attention: heads(() => ({ norms: "all" })),
    network: experts((c) => ({ E: size(c, "num_local_experts"), F: size(c, "intermediate_size"),
      selectionBias: true })),
    check: noBias,
  },
  deepseek_v3: deepseek,
  glm4_moe: {
    ...llama,
    attention: heads((c) => ({ outBias: false, norms: c.use_qk_norm ? "head" : "" })),
    network: deepseek.network,
  },
  kimi_linear: kimi,
  qwen3_next: next,
  qwen3_5_text: { ...next, network: dense(true, () => false) },
};
