"""The parts of a language model that a run may name, and what they are if it does not.

A text is learned by a GPT. If a run names a part, it is learned by a `CausalLM`, whose
other parts are those of GPT: so one part can be compared with none.
"""

from typing import Any

from tformer.checks import check_at_least_0, check_positive
from tformer.models.attention_parts import LatentParts
from tformer.models.causal_config import Parts
from tformer.models.expert_parts import ExpertParts

MODEL = "causal-lm"
# What each setting of a run is among the parts, and what it is in a GPT.
OF_GPT: dict[str, Any] = {
    "positions": "learned",
    "norm": "layer",
    "placement": "pre",
    "feed_forward": "gelu_tanh",
    "experts": None,
    "top_k": None,
    "shared_experts": None,
    "kv_rank": None,
    "kv_heads": None,
    "qk_norm": False,
    "window": None,
    "global_every": None,
    "sinks": False,
    "softcap": None,
    "logit_cap": None,
}
OF_CONFIG = ("kv_heads",)  # a size, which is no part
# What each setting of the experts is in `ExpertParts`.
OF_EXPERTS = {
    "experts": "num_experts",
    "top_k": "top_k",
    "shared_experts": "num_shared",
}
EPS = 1e-5  # of the norms, as in GPT


def with_parts(values: dict[str, Any], given: set[str]) -> dict[str, Any]:
    """Complete the settings of a run that names a part: its model, its other parts.

    Args:
        values: the settings so far, by name.
        given: the names of those that were asked for, and are of no preset.

    Returns:
        The settings; as they came if no part is named and the model is another.
    """
    if given & OF_GPT.keys() and "model" not in given and values.get("model") == "gpt":
        values = {**values, "model": MODEL}
    return {**OF_GPT, **values} if values.get("model") == MODEL else values


def parts_of(settings: Any) -> Parts:
    """Make the parts that the settings of a run name.

    Raises:
        TypeError: a size is not an int, or a flag not a bool.
        ValueError: a part is unknown, out of its range, or does nothing.
    """
    names = OF_GPT.keys() - OF_EXPERTS.keys() - {"kv_rank", *OF_CONFIG}
    rank = settings.kv_rank
    return Parts(
        experts=_experts_of(settings),
        latent=None if rank is None else LatentParts(kv_rank=rank),
        **{name: getattr(settings, name) for name in names},
    )


def _experts_of(settings: Any) -> ExpertParts | None:
    given = {
        name: getattr(settings, name)
        for name in OF_EXPERTS
        if getattr(settings, name) is not None
    }
    if not given:
        return None
    if "experts" not in given:
        name, value = next(iter(given.items()))
        raise ValueError(f"{name} ({value}) needs experts")
    check_positive(experts=given["experts"])
    check_at_least_0(shared_experts=given.get("shared_experts", 0))
    return ExpertParts(**{OF_EXPERTS[name]: value for name, value in given.items()})


def check_parts(settings: Any) -> None:
    """Raise unless the parts go with the model, with each other and with the sizes.

    Raises:
        TypeError: as `parts_of`.
        ValueError: a part is named and the model is none that has parts, or a part
            cannot be with these sizes.
    """
    s = settings
    if s.model != MODEL:
        for name in OF_GPT:
            value = getattr(s, name)
            if value is not None and value is not False:
                raise ValueError(
                    f"{name} ({value!r}) is for model '{MODEL}', which learns a text"
                )
        return
    parts = parts_of(s)
    width = s.d_model / s.num_heads
    if s.kv_rank is not None and s.kv_heads is not None:
        raise ValueError(f"kv_heads ({s.kv_heads}) is not for kv_rank ({s.kv_rank})")
    if parts.positions == "rotary" and parts.latent is None and width % 2:
        raise ValueError(
            "positions ('rotary') need heads of an even width: d_model "
            f"({s.d_model}) / num_heads ({s.num_heads}) is {width:g}"
        )
    if s.kv_heads is not None and s.num_heads % s.kv_heads:
        raise ValueError(
            f"num_heads ({s.num_heads}) must be divisible by kv_heads ({s.kv_heads})"
        )
