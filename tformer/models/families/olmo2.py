"""OLMo 2: Llama with the norms after the sub-layers, and a norm over all heads.

OLMo team 2024 (arXiv:2501.00656), section 2: x + norm(f(x)), and a norm of queries and
keys that is as wide as their projection. So a sub-layer reads what no norm has changed.
"""

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, with_defaults
from tformer.models.families.assembling import (
    Norm,
    Options,
    assemble,
    head_dim_of,
    sizes,
)
from tformer.models.families.renaming import Renaming
from tformer.nn.norm import RMSNorm
from tformer.nn.qk_norm import NormOverHeads

DEFAULTS: Config = {
    **llama.DEFAULTS,
    "model_type": "olmo2",
    "vocab_size": 50_304,
    "rms_norm_eps": 1e-5,
    "pad_token_id": 1,
}
SHARED: Options = {"vocab_size": 100_352, "rope_theta": 500_000.0}
SHARED |= {"max_position_embeddings": 4096, "rms_norm_eps": 1e-6}
SIZES: dict[str, Config] = {
    "olmo-2-1b": SHARED | sizes(2048, 8192, 16, 16),
    "olmo-2-7b": SHARED | sizes(4096, 11_008, 32, 32),
    "olmo-2-13b": SHARED | sizes(5120, 13_824, 40, 40),
}
OVER_HEADS = ("q_norm.", "q_norm.norm."), ("k_norm.", "k_norm.norm.")
NAMES = (
    ("post_attention_layernorm.", "attention_norm."),
    ("post_feedforward_layernorm.", "feed_forward_norm."),
    *OVER_HEADS,
    *llama.NAMES,
)
rename = Renaming(NAMES)


def norm(c: Config, width: int) -> nn.Module:
    """Make a norm of this width, which rounds once."""
    return RMSNorm(width, c["rms_norm_eps"])


def norms_over_heads(c: Config, norm: Norm) -> Options:
    """Normalise all heads of a query together, and all of a key."""
    H, G, Dh = c["num_attention_heads"], c["num_key_value_heads"], head_dim_of(c)
    heads = {"q_norm": H, "k_norm": H if G is None else G}
    return {name: NormOverHeads(norm(c, n * Dh)) for name, n in heads.items()}


def attention(c: Config, layer: int) -> Options:
    """Give attention both norms."""
    return {**llama.attention(c, layer), **norms_over_heads(c, norm)}


def block(_: Config) -> Options:
    """Normalise what a sub-layer adds, and not what it reads."""
    return {"placement": "output"}


PARTS = llama.PARTS._replace(norm=norm, attention=attention, block=block)


def build(config: Config) -> CausalLM:
    """Build an OLMo 2 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
