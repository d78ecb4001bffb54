"""Qwen3-Next: in three of four layers a gated delta rule in the place of attention.

Qwen 2025 (Hugging Face's qwen3_next; arXiv:2412.06464). Attention's output has a gate,
a quarter of each head is rotated, norms multiply by 1 + w; one expert is shared.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.models.causal_lm import CausalLM
from tformer.models.families import (
    Config,
    Weights,
    llama,
    mixtures,
    one_of,
    replace_parts,
    with_defaults,
)
from tformer.models.families.assembling import (
    Options,
    assemble,
    multi_head,
    sizes,
)
from tformer.nn.delta_rule import GatedDeltaRule
from tformer.nn.norm import RMSNorm

OF_ATTENTION: Config = {
    **mixtures.OF_LLAMA,
    "head_dim": 256,
    "partial_rotary_factor": 0.25,
    "max_position_embeddings": 32_768,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "layer_types": None,  # each so-many-th has attention:
    "full_attention_interval": 4,
}
DEFAULTS: Config = {
    **OF_ATTENTION,
    **sizes(2048, 5632, 48, 16, 2),  # 5632 is of layers without experts
    "model_type": "qwen3_next",
    "vocab_size": 151_936,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": None,
}
OF_NEXT = {"rope_theta": 10_000_000.0, "max_position_embeddings": 262_144}
SIZES: dict[str, Config] = {"qwen3-next-80b-a3b": OF_NEXT}
NAMES = (
    ("linear_attn.A_log", "attention.log_rate"),
    ("linear_attn.dt_bias", "attention.step_bias"),
    ("linear_attn.conv1d.", "attention.convolution."),
    ("linear_attn.in_proj_z.", "attention.gate."),
    ("linear_attn.in_proj_a.", "attention.decay_proj."),
    ("linear_attn.in_proj_b.", "attention.beta_proj."),
    ("linear_attn.", "attention."),
)
KINDS = ("linear_attention", "full_attention")


def norm(c: Config, width: int) -> nn.Module:
    """Make a norm of this width, which multiplies by 1 + w."""
    return RMSNorm(width, c["rms_norm_eps"], plus_one=True)


def layer_types(c: Config) -> Sequence[str]:
    """Give each fourth layer attention, or those that `layer_types` names."""
    layers, every = c["num_hidden_layers"], c["full_attention_interval"]
    check_positive(full_attention_interval=every)
    kinds = c["layer_types"]
    if kinds is None:
        return [KINDS[(i + 1) % every == 0] for i in range(layers)]
    if len(kinds) != layers:
        raise ValueError(f"layer_types are {len(kinds)}, num_hidden_layers is {layers}")
    return [one_of("layer_types", kind, KINDS) for kind in kinds]


def mixer(c: Config, layer: int, options: Options) -> nn.Module:
    """Make attention, or the delta rule with its convolution and its gate."""
    if layer_types(c)[layer] == "full_attention":
        return multi_head(c, layer, options)
    D, H, Dv = (
        c[name]
        for name in ("hidden_size", "linear_num_value_heads", "linear_value_head_dim")
    )
    return GatedDeltaRule(
        D,
        H,
        num_key_heads=c["linear_num_key_heads"],
        key_dim=c["linear_key_head_dim"],
        value_dim=Dv,
        kernel=c["linear_conv_kernel_dim"],
        gate=nn.Linear(D, H * Dv, bias=False),
        eps=c["rms_norm_eps"],
        cast_first=True,
    )


def attention(c: Config, layer: int) -> Options:
    """Gate the output of attention, and normalise each head of queries and keys."""
    D, width = c["hidden_size"], c["num_attention_heads"] * c["head_dim"]
    options = {name: norm(c, c["head_dim"]) for name in ("q_norm", "k_norm")}
    options["gate"] = nn.Linear(D, width, bias=c["attention_bias"])
    return {**llama.attention(c, layer), **options}


def network(c: Config, layer: int) -> nn.Module:
    """Make the network of a layer: experts, with one shared by a gate, or a dense."""
    return mixtures.network(
        c,
        layer,
        c["num_experts"],
        c["moe_intermediate_size"],
        shared=c["shared_expert_intermediate_size"],
        shared_gate=nn.Linear(c["hidden_size"], 1, bias=False),
        renormalise=c["norm_topk_prob"],
        selection_bias=False,
    )


PARTS = llama.PARTS._replace(
    norm=norm,
    attention=attention,
    network=network,
    layer_types=layer_types,
    mixer=mixer,
)


def build(config: Config) -> CausalLM:
    """Build a Qwen3-Next with random weights; arguments, errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)


def rename(state: Weights, config: Config) -> dict[str, Tensor]:
    """Name Hugging Face's weights as ours: there several projections are one matrix.

    q_proj holds for each head queries, then its gate. in_proj_qkvz holds for each head
    of keys one query, one key, and the values and gates of the heads that share it;
    in_proj_ba the same of β and the decay; in Qwen3.5 in_proj_qkv all of each kind.
    """
    c = {**DEFAULTS, **config}
    heads, keys = c["num_attention_heads"], c["linear_num_key_heads"]
    Dk, shared_by = c["linear_key_head_dim"], c["linear_num_value_heads"] // keys
    Dv = shared_by * c["linear_value_head_dim"]
    cut = {  # into how many heads, each into parts of which widths
        "q_proj": (heads, 2 * [c["head_dim"]], "q_proj gate"),
        "in_proj_qkvz": (keys, [Dk, Dk, Dv, Dv], "q_proj k_proj v_proj gate"),
        "in_proj_ba": (keys, 2 * [shared_by], "beta_proj decay_proj"),
        "in_proj_qkv": (1, [keys * Dk, keys * Dk, keys * Dv], "q_proj k_proj v_proj"),
    }
    ours: dict[str, Tensor] = {}
    for name, x in mixtures.rename(state, config).items():
        name = replace_parts(name, NAMES)
        owner, _, kind = name.rpartition(".")
        before, _, last = owner.rpartition(".")
        if last not in cut:
            ours[name] = x.squeeze(1) if last == "convolution" else x  # (C, 1, K)
            continue
        count, widths, parts = cut[last]
        each_head = torch.split(x.view(count, -1, *x.shape[1:]), widths, dim=1)
        for part, weight in zip(parts.split(), each_head, strict=True):
            ours[f"{before}.{part}.{kind}"] = weight.flatten(0, 1)
    return ours
