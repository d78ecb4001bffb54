"""Gemma 4, its text: Gemma 3 with shared keys and values, and a word to each layer.

By the model card of 2026 and the code of `transformers`, as there is no report: the
last layers attend to keys and values of an earlier one, layers that see all tokens have
wider heads, of which the fast pairs rotate, and may have keys for values; each layer is
told the token again. Values are normalised too, norms multiply by w, and not by 1 + w,
scores are not divided by √Dh, and logits are bounded as in Gemma 2. A number of its own
multiplies what each layer gives. In the smallest model layers without keys have
networks twice as wide. A config with experts is refused here.
"""

from collections.abc import Sequence

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, gemma2, gemma3, rope_words, with_defaults
from tformer.models.families.assembling import (
    Options,
    all_but_every,
    assemble,
    only,
    rotary_of_each_type,
    sizes,
)
from tformer.models.families.renaming import Renaming
from tformer.models.shared_layers import SharedLayersLM
from tformer.nn.feed_forward import GatedFeedForward
from tformer.nn.norm import RMSNorm
from tformer.nn.per_layer import LayerInput, PerLayerEmbedding, ScaledBlock
from tformer.nn.shared_keys import SharedKeysAttention

NEAR = {"rope_type": "default", "rope_theta": 10_000.0}
FAR = {"rope_type": "proportional", "rope_theta": 1_000_000.0}
ROPE = {"sliding_attention": NEAR}
ROPE |= {"full_attention": {**FAR, "partial_rotary_factor": 0.25}}
GONE = {*rope_words.DEFAULTS, "rope_local_base_freq", "query_pre_attn_scalar"}
GONE |= {"attn_logit_softcapping", "sliding_window_pattern", "hidden_act", "mlp_bias"}
GONE |= {"_sliding_window_pattern"}
DEFAULTS: Config = {
    **{word: x for word, x in gemma3.DEFAULTS.items() if word not in GONE},
    "model_type": "gemma4_text",
    "vocab_size": 262_144,
    "num_hidden_layers": 30,
    "global_head_dim": 512,
    "num_global_key_value_heads": None,  # as `num_key_value_heads`
    "attention_k_eq_v": False,
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
    "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262_144,
    "sliding_window": 512,
    "rope_parameters": ROPE,
    "use_bidirectional_attention": None,
    "per_layer_config": None,  # transformers 5 writes it, for two of the words above
    "enable_moe_block": False,
    **dict.fromkeys(("num_experts", "top_k_experts", "moe_intermediate_size")),
}
OWN_WORDS = ("per_layer_config",)
FOUR_NEAR = 7 * [*4 * ["sliding_attention"], "full_attention"]
SMALL: Options = {"final_logit_softcapping": 30.0}
LARGE = SMALL | {"hidden_size_per_layer_input": 0, "max_position_embeddings": 262_144}
LARGE |= {"attention_k_eq_v": True, "num_global_key_value_heads": 4}
SIZES: dict[str, Config] = {
    "gemma-4-e2b": SMALL
    | sizes(1536, 6144, 35, 8, 1)
    | {"num_kv_shared_layers": 20, "use_double_wide_mlp": True}
    | {"layer_types": FOUR_NEAR},
    "gemma-4-e4b": SMALL | sizes(2560, 10_240, 42, 8, 2) | {"num_kv_shared_layers": 18},
    "gemma-4-31b": LARGE | sizes(5376, 21_504, 60, 32, 16) | {"sliding_window": 1024},
}
NAMES = (
    ("embed_tokens_per_layer.", "per_layer.embedding."),
    ("per_layer_model_projection.", "per_layer.proj."),
    ("per_layer_projection_norm.", "per_layer.norm."),
    ("per_layer_input_gate.", "layer_input.gate_proj."),
    ("per_layer_projection.", "layer_input.out_proj."),
    ("post_per_layer_input_norm.", "layer_input.norm."),
    ("layer_scalar", "output_scale"),
    *gemma2.NAMES,
)
rename = Renaming(NAMES)


def norm(c: Config, width: int) -> nn.Module:
    """Make a norm of this width."""
    return RMSNorm(width, c["rms_norm_eps"])


def layer_types(c: Config) -> Sequence[str]:
    """Give the layers a window, but each sixth, and the last."""
    return [*all_but_every(6, c)[:-1], "full_attention"]


def kv_sources(c: Config) -> dict[int, int]:
    """Let the last layers attend to keys of the last of their type that has some."""
    kinds, shared = layer_types(c), c["num_kv_shared_layers"]
    own = len(kinds) - shared
    last = {kind: i for i, kind in enumerate(kinds[: max(0, own)])}
    if shared < 0 or {*kinds} - {*last}:
        rule = f"must leave layers with keys of each type in {len(kinds)}"
        raise ValueError(f"num_kv_shared_layers ({shared}) {rule}")
    return {i: last[kinds[i]] for i in range(own, len(kinds))}


def attention(c: Config, layer: int) -> Options:
    """Normalise values too; where all is seen, take wider heads and keys for values."""
    only(c, use_bidirectional_attention=None)
    far = layer_types(c)[layer] == "full_attention"
    width, shared = c["global_head_dim" if far else "head_dim"], layer in kv_sources(c)
    k_eq_v = far and c["attention_k_eq_v"]
    groups = c["num_global_key_value_heads"] if k_eq_v else None
    options: Options = {"shared_kv": True}
    if not shared:
        v_norm = RMSNorm(width, c["rms_norm_eps"], learned=False)
        options = {"k_norm": norm(c, width), "v_norm": v_norm, "k_eq_v": k_eq_v}
    return options | {
        "head_dim": width,
        "num_kv_heads": groups or c["num_key_value_heads"],
        "bias": c["attention_bias"],
        "dropout": c["attention_dropout"],
        "q_norm": norm(c, width),
        "scale": 1.0,
    }


def mixer(c: Config, _: int, options: Options) -> nn.Module:
    """Make attention that may have no keys and values of its own."""
    return SharedKeysAttention(c["hidden_size"], c["num_attention_heads"], **options)


def rotaries(c: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Rotate heads of each type by its own words."""
    if {*(c["rope_parameters"] or ())} != {*ROPE}:
        raise ValueError(f"rope_parameters must be of {', '.join(ROPE)}")
    c = {**rope_words.DEFAULTS, **c}
    return rotary_of_each_type(c, kinds, full_attention=c["global_head_dim"])


def network(c: Config, layer: int) -> nn.Module:
    """Make the network; where keys are shared, it may be twice as wide."""
    only(c, hidden_activation="gelu_pytorch_tanh", enable_moe_block=False)
    wide = c["use_double_wide_mlp"] and layer in kv_sources(c)
    D, F = c["hidden_size"], c["intermediate_size"] * (1 + wide)
    return GatedFeedForward(D, F, gate="geglu_tanh")


def block(c: Config) -> Options:
    """Normalise as Gemma 2 does; say the token again, if the config has a width for it.

    The function is called for each layer.
    """
    D, P = c["hidden_size"], c["hidden_size_per_layer_input"]
    layer_input = LayerInput(D, P, norm(c, D)) if P else None
    return {"placement": "sandwich", "layer_input": layer_input}


def model(c: Config) -> Options:
    """Say what Gemma 2 does, and what each layer is told and shares."""
    options = {**gemma2.model(c), "kv_sources": kv_sources(c)}
    if P := c["hidden_size_per_layer_input"]:
        V, N = c["vocab_size_per_layer_input"], c["num_hidden_layers"]
        told = PerLayerEmbedding(V, N, P, c["hidden_size"], norm(c, P))
        options["per_layer"] = told
    return options


PARTS = gemma3.PARTS._replace(norm=norm, attention=attention, network=network)
PARTS = PARTS._replace(layer_types=layer_types, rotaries=rotaries, block=block)
PARTS = PARTS._replace(mixer=mixer, model=model)
PARTS = PARTS._replace(block_type=ScaledBlock, model_type=SharedLayersLM)


def global_words(c: Config) -> Config:
    """Read the words for layers that see all tokens out of `per_layer_config`."""
    given = c["per_layer_config"]
    if given is None:
        return c
    far = [i for i, kind in enumerate(layer_types(c)) if kind == "full_attention"]
    # In a file "05" is layer 5.
    theirs = {int(i) if str(i).isdigit() else i: x for i, x in given.items()}
    each = [theirs.get(i, {}) for i in far]
    words = {"head_dim": c["head_dim"], **each[0]}
    width, groups = words.pop("head_dim"), words.pop("num_key_value_heads", None)
    same = all(x == each[0] for x in each) and {*theirs} <= {*far}
    if not same or words or (groups and not c["attention_k_eq_v"]):
        raise ValueError(f"per_layer_config ({given}) must say one head_dim of {far}")
    ours = {"global_head_dim": width, "num_global_key_value_heads": groups}
    return {**c, **ours, "per_layer_config": None}


def build(config: Config) -> CausalLM:
    """Build a Gemma 4 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(global_words(with_defaults(config, DEFAULTS)), PARTS)
