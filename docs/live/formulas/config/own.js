/** Two families whose configs have words of their own: GPT-2, and those of this book. */

import { FAMILIES } from "./families.js";
import { FAR, MOST_LAYERS, NEAR } from "./layers.js";
import { divides, only, Refused, size, sizeOr } from "./words.js";

/** @typedef {import("./words.js").Config} Config */
/** @typedef {import("./layers.js").Family} Family */

const GATES = ["glu", "reglu", "geglu", "geglu_tanh", "swiglu"]; // as GATES of feed_forward.py
const NORMS = {
  layer: "LayerNorm", rms: "RMSNorm", rms_plus_one: "RMSNorm, 1 + w",
};

/** @type {Family} */
const gpt2 = {
  ...FAMILIES.llama,
  sizes: (c) => ({ V: size(c, "vocab_size"), D: size(c, "n_embd"),
    N: size(c, "n_layer", { most: MOST_LAYERS }), P: size(c, "n_positions") }),
  layerTypes: (c) => Array(size(c, "n_layer", { most: MOST_LAYERS })).fill(FAR),
  attention: (c) => {
    const D = size(c, "n_embd"), H = size(c, "n_head"), bias = Boolean(c.bias);
    divides(["n_embd", D], ["n_head", H]);
    return { kind: "heads", rotates: false, sizes: { D, H, G: H, Dh: D / H, bias, outBias: bias,
      norms: "", normNumbers: 0, gate: [], sinks: false, shared: false, valuesAreKeys: false } };
  },
  network: (c) => {
    const D = size(c, "n_embd");
    return { kind: "dense", sizes: { D, F: sizeOr(c, "n_inner", 4 * D), gated: false,
      bias: Boolean(c.bias) } };
  },
  norm: (c) => (c.bias ? { name: "LayerNorm", numbers: 2 } : { name: "LayerNorm, no bias", numbers: 1 }),
  positions: () => "learned",
  window: () => null,
};

/** @param {Config} c */
const normOf = (c) => {
  const name = NORMS[/** @type {keyof typeof NORMS} */ (c.norm)];
  return c.norm === "layer" && c.bias ? { name, numbers: 2 } : { name, numbers: 1 };
};

/** @type {Family} */
const tformer = {
  ...FAMILIES.llama,
  sizes: (c) => ({ V: size(c, "vocab_size"), D: size(c, "d_model"),
    N: size(c, "num_layers", { most: MOST_LAYERS }), P: size(c, "max_len") }),
  tied: (c) => Boolean(c.tie_embeddings),
  layerTypes: (c) => {
    const every = sizeOr(c, "global_every", Infinity);
    const N = size(c, "num_layers", { most: MOST_LAYERS });
    return Array.from({ length: N }, (_, i) => ((i + 1) % every ? NEAR : FAR));
  },
  attention: (c) => {
    const D = size(c, "d_model"), H = size(c, "num_heads"), bias = Boolean(c.bias);
    const rotates = c.positions === "rotary";
    if (c.head_dim === null) divides(["d_model", D], ["num_heads", H]);
    const Dh = sizeOr(c, "head_dim", D / H);
    if (c.kv_rank !== null) {
      only(c, "positions", "rotary");
      only(c, "kv_heads", null);
      only(c, "window", null);
      for (const word of ["qk_norm", "gate", "head_gate", "sinks"]) only(c, word, false);
      const Dr = Math.max(2, Math.floor(Dh / 4) * 2);
      return { kind: "latent", rotates, sizes: { D, H, Q: null, R: size(c, "kv_rank"), Dh, Dr, Dv: Dh } };
    }
    const G = sizeOr(c, "kv_heads", H);
    const gate = c.gate ? [["D", "H", "Dh"]] : [];
    divides(["num_heads", H], ["kv_heads", G]);
    return { kind: "heads", rotates, sizes: { D, H, G, Dh, bias, outBias: bias,
      norms: c.qk_norm ? "head" : "", normNumbers: normOf(c).numbers,
      gate: c.head_gate ? [["D", "H"]] : gate, sinks: Boolean(c.sinks), shared: false, valuesAreKeys: false } };
  },
  network: (c) => {
    const D = size(c, "d_model"), gated = GATES.includes(c.feed_forward), bias = Boolean(c.bias);
    const F = sizeOr(c, "d_ff", gated ? Math.max(1, Math.floor((8 * D) / 3)) : 4 * D);
    for (const word of ["top_k", "shared_experts"]) if (c[word] && c.experts === null) only(c, word, null);
    if (c.experts === null) return { kind: "dense", sizes: { D, F, gated, bias } };
    const E = size(c, "experts"), k = sizeOr(c, "top_k", 2);
    if (k > E) throw new Refused(`top_k (${k}) must be at most ${E}, the experts.`);
    const shared = c.shared_experts === null ? 0 : size(c, "shared_experts", { least: 0 });
    return { kind: "experts", sizes: { D, F, gated, bias, E, k, Fs: shared * F, sharedGate: false,
      routerBias: false, selectionBias: true } };
  },
  norm: normOf,
  placement: (c) => c.placement,
  positions: (c) => c.positions,
  window: (c) => sizeOr(c, "window", 0) || null,
  check: (c) => {
    only(c, "norm", ...Object.keys(NORMS));
    only(c, "placement", "pre", "post", "output", "sandwich", "parallel");
    only(c, "positions", "learned", "sinusoidal", "rotary", "alibi", "t5", "none");
    only(c, "feed_forward", "relu", "gelu", "gelu_tanh", "relu2", "silu", ...GATES);
    if (c.global_every !== null && c.window === null) only(c, "global_every", null);
  },
};

/** @type {Record<string, Family>} */
export const OWN = { gpt2, tformer };
