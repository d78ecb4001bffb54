"""Kimi Linear: three of four layers have Kimi Delta Attention, and none has positions.

Kimi Team 2025 (Hugging Face's kimi_linear; arXiv:2510.26692). These three keep a state
of one size, whatever the length, in place of keys and values. The other layers have
DeepSeek's latent attention, with nothing rotated. The experts are DeepSeek's too.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import (
    Config,
    Weights,
    deepseek_v3,
    mixtral,
    mixtures,
    one_of,
    with_defaults,
)
from tformer.models.families.assembling import (
    MIXERS,
    Options,
    assemble,
    by_type,
    layer_types_of,
    no_rotary,
    only,
    sizes,
)
from tformer.models.families.renaming import joined
from tformer.nn.kda import KimiDeltaAttention

WORDS = {  # words of its files, and DeepSeek's for the same
    "num_experts": "n_routed_experts",
    "num_experts_per_token": "num_experts_per_tok",
    "num_shared_experts": "n_shared_experts",
    "num_expert_group": "n_group",
    "moe_renormalize": "norm_topk_prob",
}
ONLY: Config = {  # words of the released files, with what is implemented
    "moe_router_activation_func": "sigmoid",
    "mla_use_nope": True,
    "moe_layer_freq": 1,
    "use_grouped_topk": True,
    "attention_bias": False,
}
OF_DELTA: Config = {
    "linear_head_dim": 128,
    "linear_num_heads": 32,
    "linear_conv_kernel_dim": 4,
}
SHORT = ("head_dim", "num_heads", "short_conv_kernel_size")  # in linear_attn_config
DEFAULTS: Config = {
    **{n: x for n, x in deepseek_v3.DEFAULTS.items() if n not in WORDS.values()},
    **sizes(2304, 9216, 27, 32, 32),
    **ONLY,
    **OF_DELTA,
    **dict.fromkeys(("scoring_func", "topk_method", "rope_interleave")),
    "model_type": "kimi_linear",
    "vocab_size": 163_840,
    "model_max_length": 1_048_576,
    "max_position_embeddings": None,  # the same, by the other families' word
    "rms_norm_eps": 1e-5,
    "q_lora_rank": None,
    "head_dim": None,  # of no layer
    "moe_intermediate_size": 1024,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_shared_experts": 1,
    "num_expert_group": 1,
    "topk_group": 1,
    "moe_renormalize": True,
    "routed_scaling_factor": 2.446,
    "first_k_dense_replace": 1,
    "mlp_layer_types": None,  # "dense" or "sparse", each layer
    "layer_types": None,  # each fourth after the first has attention, or:
    "linear_attn_config": None,  # numbers from 1, and the words of `SHORT`
}
FULL = [4, 8, 12, 16, 20, 24, 27]
SIZES: dict[str, Config] = {
    "kimi-linear-48b-a3b": {
        "linear_attn_config": {
            "full_attn_layers": FULL,
            "kda_layers": [i for i in range(1, 28) if i not in FULL],
        }
    }
}
NAMES = (
    ("forget_gate.", ""),
    *mixtral.NAMES[:4],  # the experts
    *deepseek_v3.NAMES,
    ("attention.A_log", "attention.log_rate"),
    ("attention.dt_bias", "attention.step_bias"),
    ("attention.b_proj.", "attention.beta_proj."),
    ("attention.f_a_proj.", "attention.decay_down."),
    ("attention.f_b_proj.", "attention.decay_up."),
    ("attention.g_a_proj.", "attention.gate_down."),
    ("attention.g_b_proj.", "attention.gate_up."),
    ("attention.o_norm.", "attention.norm."),
    ("attention.conv1d.", "attention.convolution."),
)
APART = ("q_conv1d.weight", "k_conv1d.weight", "v_conv1d.weight")  # three of one
NAMED = mixtures.rename._replace(
    names=NAMES, defaults=DEFAULTS, convolutions=("convolution.weight", *APART)
)
ONE_WAY = "a matrix has another name in their files where the layer is of another kind"


def layer_types(c: Config) -> Sequence[str]:
    """Give those layers attention that a config names, in one of its two ways."""
    each_fourth = range(5, c["num_hidden_layers"] + 1, 4)  # after the first, from 1
    full = (c["linear_attn_config"] or {}).get("full_attn_layers", each_fourth)
    return layer_types_of(c, lambda i: MIXERS[i + 1 in full], MIXERS)


def attention(c: Config, _: int) -> Options:
    """Say what latent attention has: a part that heads share, and no rotation."""
    return {**deepseek_v3.latent_sizes(c), "rotary_dim": c["qk_rope_head_dim"]}


def delta(c: Config, _: int, __: Options) -> nn.Module:
    """Make Kimi Delta Attention, of the words of a config in one of its two ways."""
    told: Config = c["linear_attn_config"] or {}
    words = zip(SHORT, OF_DELTA, strict=True)
    width, heads, kernel = (int(told.get(short, c[word])) for short, word in words)
    return KimiDeltaAttention(
        c["hidden_size"],
        heads,
        key_dim=width,
        value_dim=width,
        kernel=kernel,
        eps=c["rms_norm_eps"],
    )


def network(c: Config, layer: int) -> nn.Module:
    """Make DeepSeek's network of a layer, from this family's words."""
    c = {**c, **{theirs: c[own] for own, theirs in WORDS.items()}}
    if (kinds := c["mlp_layer_types"]) is not None:
        kind = one_of("mlp_layer_types", kinds[layer], ["dense", "sparse"])
        c["first_k_dense_replace"] = layer + (kind == "dense")
    return deepseek_v3.network(c, layer)


def model(c: Config) -> Options:
    """Say how long a text may be."""
    known = [None, c["model_max_length"]]
    one_of("max_position_embeddings", c["max_position_embeddings"], known)
    return {"max_len": c["model_max_length"]}


PARTS = deepseek_v3.PARTS._replace(
    attention=attention,
    rotaries=no_rotary,
    mixer=by_type(
        layer_types, full_attention=deepseek_v3.latent, linear_attention=delta
    ),
    network=network,
    layer_types=layer_types,
    model=model,
)


def build(config: Config) -> CausalLM:
    """Build a Kimi Linear with random weights; arguments, errors as of `gpt2.build`."""
    c = with_defaults(config, DEFAULTS)
    only(c, **ONLY)
    return assemble(c, PARTS)


def rename(state: Weights, config: Config) -> dict[str, Tensor]:
    """Name Hugging Face's weights as ours; three convolutions of a file are one."""
    ours = joined(NAMED(state, config), APART, "convolution.weight")
    # Decays are (1, 1, H, 1) there.
    return {n: x.flatten() if n.endswith("log_rate") else x for n, x in ours.items()}
