"""Qwen3-Next: in three of four layers a gated delta rule in the place of attention.

Qwen 2025 (Hugging Face's qwen3_next; arXiv:2412.06464). The rule keeps a state of one
size, whatever the length, in place of keys and values; before it stands a short
convolution. Attention's output has a gate, a quarter of each head is rotated, queries
and keys are normalised, norms multiply by 1 + w. There are experts, of which one, with
a gate, is shared by all tokens.
"""

from collections.abc import Sequence

from torch import nn

from tformer.checks import check_positive
from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, mixtures, with_defaults
from tformer.models.families.assembling import (
    MIXERS,
    Options,
    assemble,
    by_type,
    layer_types_of,
    multi_head,
    norms_of_heads,
    sizes,
)
from tformer.models.families.renaming import HALVES, Cut, Cuts
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
    ("linear_attn.", "attention."),
    ("mlp.shared_expert.", "mlp.shared."),
    ("mlp.shared_expert_gate.", "mlp.shared_gate."),
    *mixtures.NAMES,
)


def norm(c: Config, width: int) -> nn.Module:
    """Make a norm of this width, which multiplies by 1 + w."""
    return RMSNorm(width, c["rms_norm_eps"], plus_one=True)


def layer_types(c: Config) -> Sequence[str]:
    """Give each fourth layer attention, or those that `layer_types` names."""
    every = c["full_attention_interval"]
    check_positive(full_attention_interval=every)
    return layer_types_of(c, lambda i: MIXERS[(i + 1) % every == 0], MIXERS)


def delta(c: Config, _: int, __: Options) -> nn.Module:
    """Make the delta rule with its convolution and its gate."""
    D, H, Dv = c["hidden_size"], c["linear_num_value_heads"], c["linear_value_head_dim"]
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
    gate = nn.Linear(D, width, bias=c["attention_bias"])
    return {**llama.attention(c, layer), **norms_of_heads(c, norm), "gate": gate}


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
    mixer=by_type(layer_types, full_attention=multi_head, linear_attention=delta),
)


def build(config: Config) -> CausalLM:
    """Build a Qwen3-Next with random weights; arguments, errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)


def absent(c: Config) -> tuple[str, ...]:
    """Say of which layers a name cannot be: each has one of the two mixers."""
    other = {"linear_attention": "self_attn", "full_attention": "linear_attn"}
    return tuple(f"layers.{i}.{other[k]}." for i, k in enumerate(layer_types(c)))


def widths(c: Config) -> tuple[int, int, int]:
    """Return of a head of keys Dk, how many of values share it, and their width."""
    shared_by = c["linear_num_value_heads"] // c["linear_num_key_heads"]
    return c["linear_key_head_dim"], shared_by, shared_by * c["linear_value_head_dim"]


def gated(c: Config) -> Cuts:
    """Cut what attention reads: for each head its queries, then its gate."""
    both = {"q_proj": 1, "gate": 1}
    return {"self_attn.q_proj": Cut(both, c["num_attention_heads"])}


def cuts(c: Config) -> Cuts:
    """Cut what the delta rule reads, for each head of keys.

    There are one query, one key, and the values and gates of the heads that share it;
    and of these each β and each decay.
    """
    Dk, shared_by, Dv = widths(c)
    keys = c["linear_num_key_heads"]
    rows = {"q_proj": Dk, "k_proj": Dk, "v_proj": Dv, "gate": Dv}
    steps = {"beta_proj": shared_by, "decay_proj": shared_by}
    own = {"in_proj_qkvz": Cut(rows, keys), "in_proj_ba": Cut(steps, keys)}
    return {**HALVES, **gated(c), **{f"linear_attn.{n}": x for n, x in own.items()}}


rename = mixtures.rename._replace(
    names=NAMES,
    defaults=DEFAULTS,
    cuts=cuts,
    convolutions=("convolution.weight",),
    absent=absent,
)
