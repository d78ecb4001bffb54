"""Qwen3.5, the part that reads text: Qwen3-Next with dense networks.

Qwen 2026 (Hugging Face's qwen3_5_text). Its files keep the delta rule's projections in
other matrices. Its rotary positions count in three directions, for pictures; in
a text the three are equal.
"""

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, qwen3_next, with_defaults
from tformer.models.families.assembling import assemble, only, sizes
from tformer.models.families.renaming import Cut, Cuts
from tformer.nn.feed_forward import GatedFeedForward

DEFAULTS: Config = {
    **qwen3_next.OF_ATTENTION,
    **sizes(4096, 12_288, 32, 16, 4),
    "model_type": "qwen3_5_text",
    "vocab_size": 248_320,
}
SIZES: dict[str, Config] = {"qwen3.5-9b": {}}
NAMES = (
    ("linear_attn.in_proj_z.", "attention.gate."),
    ("linear_attn.in_proj_a.", "attention.decay_proj."),
    ("linear_attn.in_proj_b.", "attention.beta_proj."),
    *qwen3_next.NAMES,
)
OF_IMAGES = ("mrope_section", "mrope_interleaved")


def cuts(c: Config) -> Cuts:
    """Cut queries, keys and values of the delta rule: first all of one kind."""
    Dk, _, Dv = qwen3_next.widths(c)
    qkv = Cut({"q_proj": Dk, "k_proj": Dk, "v_proj": Dv})
    return {**qwen3_next.gated(c), "linear_attn.in_proj_qkv": qkv}


rename = qwen3_next.rename._replace(names=NAMES, defaults=DEFAULTS, cuts=cuts)


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
