"""Qwen3.5, the part that reads text: Qwen3-Next with dense networks.

Qwen 2026 (Hugging Face's qwen3_5_text). Its files keep the delta rule's projections in
other matrices. Of a text all three parts of its rotary positions are one.
"""

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import (
    Config,
    qwen3_next,
    with_defaults,
)
from tformer.models.families.assembling import (
    assemble,
    only,
    sizes,
)
from tformer.nn.feed_forward import GatedFeedForward

DEFAULTS: Config = {
    **qwen3_next.OF_ATTENTION,
    **sizes(4096, 12_288, 32, 16, 4),
    "model_type": "qwen3_5_text",
    "vocab_size": 248_320,
}
SIZES: dict[str, Config] = {"qwen3.5-9b": {}}
OF_IMAGES = ("mrope_section", "mrope_interleaved")
rename = qwen3_next.rename


def network(c: Config, _: int) -> nn.Module:
    """Make the gated network."""
    only(c, hidden_act="silu")
    return GatedFeedForward(c["hidden_size"], c["intermediate_size"])


PARTS = qwen3_next.PARTS._replace(network=network)


def build(config: Config) -> CausalLM:
    """Build a Qwen3.5 with random weights; arguments and errors as of `gpt2.build`."""
    c = with_defaults(config, DEFAULTS)
    for name in ("rope_scaling", "rope_parameters"):
        c[name] = {w: x for w, x in (c[name] or {}).items() if w not in OF_IMAGES}
    return assemble(c, PARTS)
