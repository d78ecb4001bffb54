"""The parts of a language model that a run may name, and what they are if it does not.

A text is learned by a GPT. If a run names a part, it is learned by a `CausalLM`, whose
other parts are those of GPT: so one part can be compared with none.
"""

from typing import Any

from tformer.models.causal_config import Parts

MODEL = "causal-lm"
# What each setting of a run is among the parts, and what it is in a GPT.
OF_GPT: dict[str, Any] = {
    "positions": "learned",
    "norm": "layer",
    "placement": "pre",
    "feed_forward": "gelu_tanh",
    "kv_heads": None,
    "qk_norm": False,
    "window": None,
    "global_every": None,
    "sinks": False,
    "softcap": None,
    "logit_cap": None,
}
OF_CONFIG = ("kv_heads",)  # a size, which is no part
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
    names = OF_GPT.keys() - set(OF_CONFIG)
    return Parts(**{name: getattr(settings, name) for name in names})


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
    if parts.positions == "rotary" and width % 2:
        raise ValueError(
            "positions ('rotary') need heads of an even width: d_model "
            f"({s.d_model}) / num_heads ({s.num_heads}) is {width:g}"
        )
    if s.kv_heads is not None and s.num_heads % s.kv_heads:
        raise ValueError(
            f"num_heads ({s.num_heads}) must be divisible by kv_heads ({s.kv_heads})"
        )
