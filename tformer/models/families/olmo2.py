"""OLMo 2: Llama with the norms after the sub-layers, and one over all heads.

OLMo team 2024 (arXiv:2501.00656), section 2: x + norm(f(x)), and a norm of queries and
keys that is as wide as their projection.
"""

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, with_defaults
from tformer.models.families.assembling import (
    Options,
    assemble,
    head_dim_of,
    renaming,
    sizes,
)
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
NAMES = (
    ("post_attention_layernorm.", "attention_norm."),
    ("post_feedforward_layernorm.", "feed_forward_norm."),
    ("q_norm.", "q_norm.norm."),
    ("k_norm.", "k_norm.norm."),
    *llama.NAMES,
)
rename = renaming(NAMES)


def norm(c: Config, width: int) -> nn.Module:
    """Make a norm of this width, which rounds once."""
    return RMSNorm(width, c["rms_norm_eps"])


def attention(c: Config, layer: int) -> Options:
    """Normalise all heads of a query together, and all of a key."""
    options, Dh = llama.attention(c, layer), head_dim_of(c)
    H = c["num_attention_heads"]
    G = H if c["num_key_value_heads"] is None else c["num_key_value_heads"]
    options["q_norm"] = NormOverHeads(norm(c, H * Dh))
    options["k_norm"] = NormOverHeads(norm(c, G * Dh))
    return options


def block(_: Config) -> Options:
    """Normalise what a sub-layer adds, and not what it reads."""
    return {"placement": "output"}


PARTS = llama.PARTS._replace(norm=norm, attention=attention, block=block)


def build(config: Config) -> CausalLM:
    """Build an OLMo 2 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
