"""Command R7B (Cohere2): Llama with parallel sub-layers, after one LayerNorm.

Cohere 2024, "Introducing Command R7B"; arXiv:2504.00698, section 2. Three of four
layers rotate within a window; the fourth sees all tokens, and has no positions. The
LayerNorm has no bias, neighbours are a pair of the rotation, and the tied logits are
multiplied by a number.
"""

from collections.abc import Sequence

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, with_defaults
from tformer.models.families.assembling import (
    Options,
    all_but_every,
    assemble,
    head_dim_of,
    only,
    sizes,
)
from tformer.models.families.rope_words import rotary_of
from tformer.nn.norm import LayerNorm

DEFAULTS: Config = {
    **llama.DEFAULTS,
    **sizes(8192, 22_528, 40, 64),
    "model_type": "cohere2",
    "vocab_size": 256_000,
    "max_position_embeddings": 8192,
    "layer_norm_eps": 1e-5,
    "logit_scale": 0.0625,
    "tie_word_embeddings": True,
    "pad_token_id": 0,
    "sliding_window": 4096,
    "sliding_window_pattern": 4,
    "layer_types": None,
}
# What older files say of every Cohere2.
SAID: Options = {
    "order_of_interleaved_layers": "local_attn_first",
    "position_embedding_type": "rope_gptj",
    "use_embedding_sharing": True,
    "use_gated_activation": True,
    "use_parallel_block": True,
    "use_parallel_embedding": False,
    "use_qk_norm": False,
    "layer_switch": 4,
    "rotary_pct": 1.0,
}
SIZES: dict[str, Config] = {
    "command-r7b": {
        **sizes(4096, 14_336, 32, 32, 8),
        "rope_theta": 50_000.0,
        "logit_scale": 0.25,
    }
}
rename = llama.rename


def norm(c: Config, width: int) -> nn.Module:
    """Make a norm of this width, without a bias."""
    return LayerNorm(width, c["layer_norm_eps"], bias=False)


def layer_types(c: Config) -> Sequence[str]:
    """Give the layers a window, but each fourth."""
    return all_but_every(c["sliding_window_pattern"], c)


def rotaries(c: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Rotate neighbours, and in the layers with a window alone."""
    rotary = rotary_of(c, head_dim_of(c), layout="pairs")
    return [rotary if kind == "sliding_attention" else None for kind in kinds]


def block(_: Config) -> Options:
    """Let both sub-layers read the same."""
    return {"placement": "parallel"}


def model(c: Config) -> Options:
    """Multiply the logits."""
    return {"logit_scale": c["logit_scale"]}


PARTS = llama.PARTS._replace(
    norm=norm, layer_types=layer_types, rotaries=rotaries, block=block, model=model
)


def build(config: Config) -> CausalLM:
    """Build a Cohere2 with random weights; arguments and errors as of `gpt2.build`."""
    c = with_defaults(config, {**DEFAULTS, **SAID})
    only(c, **SAID)
    built = assemble(c, PARTS)
    for each in built.blocks:  # one norm is for both
        each.feed_forward_norm = each.attention_norm
    return built
