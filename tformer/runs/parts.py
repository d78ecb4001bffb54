"""The parts of a language model that a run may name, and the model built with them.

A text is learned by a GPT. If a run names a part, it is learned by a `CausalLM`, whose
other parts are those of GPT: so one part can be compared with none.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tformer.checks import check_at_least_0, check_divisible, check_positive
from tformer.models.attention_parts import LatentParts
from tformer.models.causal_config import NORMS, POSITIONS, CausalLMConfig, Parts
from tformer.models.causal_lm import CausalLM
from tformer.models.expert_parts import ExpertParts
from tformer.nn.block import PLACEMENTS
from tformer.nn.feed_forward import ACTIVATIONS
from tformer.nn.gated import GATES


class Part(NamedTuple):
    """A part: what it is in a GPT, of which kind its value is, and what it does."""

    default: Any
    kind: type | tuple[str, ...]  # or the names that it may have
    help: str


PARTS = {
    "positions": Part("learned", POSITIONS, "How a model knows where a token stands."),
    "norm": Part("layer", NORMS, "The norm; rms_plus_one is Gemma's."),
    "placement": Part("pre", tuple(PLACEMENTS), "Where the norms stand in a block."),
    "feed_forward": Part(
        "gelu_tanh", (*ACTIVATIONS, *GATES), "Its activation, or its gate."
    ),
    "experts": Part(
        None, int, "So many feed-forward networks, of which a token uses a few."
    ),
    "top_k": Part(None, int, "How many of the experts a token uses: 2 if not given."),
    "shared_experts": Part(None, int, "So many more experts, which every token uses."),
    "kv_rank": Part(
        None, int, "In place of keys and values one vector of this width (MLA)."
    ),
    "kv_heads": Part(None, int, "Key/value heads; divides num-heads."),
    "qk_norm": Part(False, bool, "Normalise each query and each key."),
    "window": Part(None, int, "How many tokens a query sees, itself included."),
    "global_every": Part(None, int, "Of so many layers the last has no window."),
    "sinks": Part(False, bool, "A learned logit for each head, in the softmax."),
    "softcap": Part(None, float, "Bound each score of attention, smoothly."),
    "logit_cap": Part(None, float, "Bound each logit, smoothly."),
}


def build(config: Mapping[str, Any]) -> CausalLM:
    """Build a language model from its sizes and its parts.

    Raises:
        TypeError: a size is not an int, or a flag not a bool.
        ValueError: a value is unknown or out of its range, or does not go with others.
    """
    return CausalLM(config_of(config))


def config_of(config: Mapping[str, Any]) -> CausalLMConfig:
    """Make the config of such a model, without its memory; errors as of `build`."""
    sizes = {name: value for name, value in config.items() if name not in PARTS}
    part = {n: config.get(n, p.default) for n, p in PARTS.items()}
    experts, shared, rank = (
        part.pop(n) for n in ("experts", "shared_experts", "kv_rank")
    )
    heads, top_k = part.pop("kv_heads"), part.pop("top_k")
    for name, value in (("top_k", top_k), ("shared_experts", shared)):
        if value is not None and experts is None:
            raise ValueError(f"{name} ({value}) needs experts")
    for name, value in (("experts", experts), ("kv_heads", heads), ("kv_rank", rank)):
        if value is not None:
            check_positive(**{name: value})
    check_at_least_0(shared_experts=shared or 0)
    if rank is not None and heads is not None:
        raise ValueError(f"kv_heads ({heads}) is not for kv_rank ({rank})")
    D, H = sizes["d_model"], sizes["num_heads"]
    if part["positions"] == "rotary" and rank is None and D / H % 2:
        raise ValueError(
            "positions ('rotary') need heads of an even width: d_model "
            f"({D}) / num_heads ({H}) is {D / H:g}"
        )
    if heads is not None:
        check_divisible(num_heads=H, kv_heads=heads)
    chosen = {} if top_k is None else {"top_k": top_k}
    if experts is not None:
        part["experts"] = ExpertParts(
            num_experts=experts, num_shared=shared or 0, **chosen
        )
    if rank is not None:
        part["latent"] = LatentParts(kv_rank=rank)
    return CausalLMConfig(**sizes, num_kv_heads=heads, eps=1e-5, parts=Parts(**part))
