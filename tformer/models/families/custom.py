"""A language model of one's own choice of parts: what a run trains and compares.

With the defaults it is a GPT. Each part stands once, in `PARTS`: the command line, the
settings of a run and the results take its name, its kind and its help from there.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tformer.checks import check_above_0, check_divisible, check_positive
from tformer.models.causal_lm import CausalLM
from tformer.models.config import check_shared
from tformer.models.families import Config, check_kind, one_of, with_defaults
from tformer.nn.block import PLACEMENTS, Block
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.experts import Experts
from tformer.nn.feed_forward import ACTIVATIONS, GATES, FeedForward, GatedFeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.latent import LatentAttention
from tformer.nn.norm import LayerNorm, RMSNorm
from tformer.nn.positions import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
)
from tformer.nn.relative import ALiBi, RelativeBias
from tformer.nn.rotary import RotaryEmbedding, rotary_frequencies


class Part(NamedTuple):
    """What may be chosen."""

    default: Any  # its value in a GPT
    kind: type | tuple[str, ...]  # or the known values
    help: str
    latent: bool = True  # whether latent attention (`kv_rank`) takes it too


flag = partial(Part, False, bool)
count, number = partial(Part, None, int), partial(Part, None, float)
PARTS = {
    "positions": Part(
        "learned",
        ("learned", "sinusoidal", "rotary", "alibi", "t5", "none"),
        "How a token knows where it stands.",
    ),
    "norm": Part(
        "layer", ("layer", "rms", "rms_plus_one"), "Kind of the norms; 1 + w: Gemma's."
    ),
    "placement": Part("pre", PLACEMENTS, "Where the norms stand."),
    "feed_forward": Part(
        "gelu_tanh", (*ACTIVATIONS, *GATES), "An activation, or a gate."
    ),
    "experts": count("So many networks in place of one, of which a token uses a few."),
    "top_k": count("How many of the experts a token uses: 2 if not given."),
    "shared_experts": count("So many more, as one network, which every token uses."),
    "kv_rank": count("Keep one vector of this width for a token, not keys and values."),
    "kv_heads": count("Key/value heads; divides the number of heads.", latent=False),
    "qk_norm": flag("Normalise each query and each key.", latent=False),
    "gate": flag("Gate what the heads bring by a sigmoid of x.", latent=False),
    "head_gate": flag("Gate each head as a whole: a number a head.", latent=False),
    "window": count("How many tokens a query sees, itself included.", latent=False),
    "global_every": count("Of so many layers the last sees all tokens, and no window."),
    "sinks": flag("A learned logit of each head, in its softmax.", latent=False),
    "softcap": number("Bound each score of attention, smoothly.", latent=False),
    "logit_cap": number("Bound each logit, smoothly."),
}
DEFAULTS: Config = {
    "model_type": "tformer",
    "vocab_size": 256,
    "d_model": 64,
    "num_heads": 4,
    "head_dim": None,
    "num_layers": 2,
    "d_ff": None,  # 4 · d_model, or with a gate 8/3 · d_model
    "max_len": 64,
    "dropout": 0.0,
    "eps": 1e-5,
    "bias": True,
    "tie_embeddings": True,
    "logit_scale": 1.0,  # with µP 1 / m, as score_scale
    "score_scale": None,  # 1 / √head_dim
    "pad_id": None,
    **{name: part.default for name, part in PARTS.items()},
}


OF_MODEL = ("dropout", "logit_scale", "logit_cap", "max_len", "pad_id")


def build(config: Config) -> CausalLM:
    """Build a language model of these sizes and parts, with random weights."""
    c = check_config(config)
    D, V, every = c["d_model"], c["vocab_size"], c["global_every"]
    norm, distances = partial(make_norm, c), make_distances(c)
    blocks = []
    for layer in range(1, c["num_layers"] + 1):
        window = None if every and layer % every == 0 else c["window"]
        parts = make_attention(c, window, distances), make_feed_forward(c)
        options = {"placement": c["placement"], "dropout": c["dropout"]}
        blocks.append(Block(*parts, partial(norm, D), **options))
    model = CausalLM(
        TokenEmbedding(V, D, scale=False),
        blocks,
        None if c["placement"] == "post" else norm(D),
        positions=make_positions(c),
        output=None if c["tie_embeddings"] else nn.Linear(D, V, bias=False),
        **{name: c[name] for name in OF_MODEL},
        config=c,
    )
    model.reset_parameters()
    return model


def check_config(config: Config) -> dict[str, Any]:
    """Complete a config, or raise as `build`, without making anything."""
    c = with_defaults(config, DEFAULTS)
    for name, part in PARTS.items():
        if isinstance(part.kind, tuple):
            one_of(name, c[name], part.kind)
        elif c[name] is not None:
            check_kind(name, c[name], part.kind())
            if part.kind is int:
                check_positive(int(name != "shared_experts"), **{name: c[name]})
    check_shared(c)
    for name in ("softcap", "logit_cap", "logit_scale", "score_scale"):
        check_above_0(**{name: c[name]})
        if c[name] is not None:
            c[name] = float(c[name])  # of 10³⁰ as an int torch raises an error
    for name in ("top_k", "shared_experts"):
        if c[name] and not c["experts"]:
            raise ValueError(f"{name} ({c[name]}) needs experts")
    if c["global_every"] and not c["window"]:
        raise ValueError(f"global_every ({c['global_every']}) needs a window")
    if c["experts"] and (c["top_k"] or 2) > c["experts"]:
        known = f"[1, num_experts = {c['experts']}]"
        raise ValueError(f"top_k ({c['top_k'] or 2}) must be in {known}")
    if c["kv_heads"]:
        check_divisible(num_heads=c["num_heads"], kv_heads=c["kv_heads"])
    if not c["head_dim"]:
        check_divisible(d_model=c["d_model"], num_heads=c["num_heads"])
    if c["kv_rank"]:
        if c["positions"] != "rotary":
            given = c["positions"]
            raise ValueError(f"positions ({given!r}) must be 'rotary' for kv_rank")
        for name, part in PARTS.items():
            if c[name] and not part.latent:
                rank = c["kv_rank"]
                raise ValueError(f"{name} ({c[name]}) is not for kv_rank ({rank})")
    elif c["positions"] == "rotary" and width_of(c) % 2:
        raise ValueError(
            f"positions ('rotary') need heads of an even width, and d_model "
            f"({c['d_model']}) / num_heads ({c['num_heads']}) is {width_of(c)}"
        )
    return c


def width_of(c: Config) -> int:
    """Return the width of a head."""
    return int(c["head_dim"] or c["d_model"] // c["num_heads"])


def make_positions(c: Config) -> nn.Module | None:
    """Make what is added to the embedded tokens, if anything is."""
    if c["positions"] == "learned":
        return LearnedPositionalEmbedding(c["max_len"], c["d_model"])
    if c["positions"] == "sinusoidal":  # the table grows with a longer sequence
        length = min(c["max_len"], 4096)
        return SinusoidalPositionalEncoding(c["d_model"], max_len=length)
    return None


def make_distances(c: Config) -> dict[str, nn.Module]:
    """Make what rotates queries and keys, or adds to scores, for all layers."""
    kinds = {"alibi": ALiBi, "t5": RelativeBias}
    if kind := kinds.get(c["positions"]):
        return {"relative": kind(c["num_heads"])}
    if c["positions"] != "rotary":
        return {}
    # Of latent attention half of a head is rotated, and it is even.
    width = max(2, width_of(c) // 4 * 2) if c["kv_rank"] else width_of(c)
    return {"rotary": RotaryEmbedding(rotary_frequencies(width), layout="halves")}


def make_norm(c: Config, width: int) -> nn.Module:
    """Make a norm of this width."""
    if c["norm"] == "layer":
        return LayerNorm(width, c["eps"], bias=c["bias"])
    return RMSNorm(width, c["eps"], plus_one=c["norm"] == "rms_plus_one")


def make_attention(
    c: Config, window: int | None, distances: Mapping[str, Any]
) -> nn.Module:
    """Make the attention of a layer."""
    D, H, width = c["d_model"], c["num_heads"], width_of(c)
    gates = H if c["head_gate"] else H * width
    shared = {**distances, "dropout": c["dropout"], "scale": c["score_scale"]}
    if c["kv_rank"]:
        sizes = {"kv_rank": c["kv_rank"], "head_dim": width}
        return LatentAttention(D, H, **sizes, eps=c["eps"], **shared)
    return MultiHeadAttention(
        D,
        H,
        num_kv_heads=c["kv_heads"],
        head_dim=c["head_dim"],
        bias=c["bias"],
        q_norm=make_norm(c, width) if c["qk_norm"] else None,
        k_norm=make_norm(c, width) if c["qk_norm"] else None,
        gate=nn.Linear(D, gates, bias=False) if c["gate"] or c["head_gate"] else None,
        sinks=nn.Parameter(torch.zeros(H)) if c["sinks"] else None,
        window=window,
        softcap=c["softcap"],
        **shared,
    )


def make_feed_forward(c: Config) -> nn.Module:
    """Make the feed-forward network of a layer, or its experts."""
    D, F, kind = c["d_model"], inner_width(c), c["feed_forward"]

    def network(d_ff: int = F) -> nn.Module:
        if kind in GATES:
            return GatedFeedForward(D, d_ff, gate=kind, bias=c["bias"])
        return FeedForward(D, d_ff, activation=kind, bias=c["bias"])

    if c["experts"] is None:
        return network()
    shared = network(c["shared_experts"] * F) if c["shared_experts"] else None
    options: Any = {"top_k": c["top_k"] or 2, "balance_rate": 0.001}
    return Experts(D, c["experts"], network, shared=shared, **options)


def inner_width(c: Config) -> int:
    """Return `d_ff`, or what it is if not given: 4 · D, or with a gate 8/3 · D."""
    gated, D = c["feed_forward"] in GATES, c["d_model"]
    return int(c["d_ff"] or (max(1, 8 * D // 3) if gated else 4 * D))


def rename(state: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:  # noqa: ARG001
    """Give weights the names of today: they have them."""
    return dict(state)
