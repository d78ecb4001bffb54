"""Gemma 2: Llama with four norms of 1 + w, softcaps, and a window in every other layer.

Gemma team 2024 (arXiv:2408.00118), section 2. The four are before and after each of the
two sub-layers. Of Gemma 1 are the gate with GELU, the embedding times √D, and the gain
1 + w. A head's width is chosen; in the largest model the scores are divided by √(D/H).
"""

from functools import partial

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, with_defaults
from tformer.models.families.assembling import (
    Options,
    all_but_every,
    assemble,
    only,
    sizes,
)
from tformer.models.families.renaming import Renaming
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.feed_forward import GatedFeedForward
from tformer.nn.norm import RMSNorm

DEFAULTS: Config = {
    **llama.DEFAULTS,
    **sizes(2304, 9216, 26, 8, 4),
    "model_type": "gemma2",
    "vocab_size": 256_000,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_act": "gelu_pytorch_tanh",  # of old files, which nobody reads
    "max_position_embeddings": 8192,
    "query_pre_attn_scalar": 256,
    "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0,
    "sliding_window": 4096,
    "layer_types": None,
    "tie_word_embeddings": True,
    "pad_token_id": 0,
    "use_bidirectional_attention": None,
}
SIZES: dict[str, Config] = {
    "gemma-2-2b": {},
    "gemma-2-9b": sizes(3584, 14_336, 42, 16, 8),
    "gemma-2-27b": {
        **sizes(4608, 36_864, 46, 32, 16),
        "head_dim": 128,
        "query_pre_attn_scalar": 144,
    },
}
NAMES = (
    ("post_attention_layernorm.", "attention_norm2."),
    ("pre_feedforward_layernorm.", "feed_forward_norm."),
    ("post_feedforward_layernorm.", "feed_forward_norm2."),
    *llama.NAMES,
)
rename = Renaming(NAMES)


def norm(c: Config, width: int) -> nn.Module:
    """Make a norm of this width, which multiplies by 1 + w."""
    return RMSNorm(width, c["rms_norm_eps"], plus_one=True)


def attention(c: Config, layer: int) -> Options:
    """Divide the scores by the root of a number of the config, and bound them."""
    if c["use_bidirectional_attention"] not in (None, False):
        only(c, use_bidirectional_attention=False)
    return {
        **llama.attention(c, layer),
        "scale": c["query_pre_attn_scalar"] ** -0.5,
        "softcap": c["attn_logit_softcapping"],
    }


def network(c: Config, _: int) -> nn.Module:
    """Make the network, whose gate is GELU's approximation."""
    only(c, hidden_activation="gelu_pytorch_tanh", mlp_bias=False)
    D, F = c["hidden_size"], c["intermediate_size"]
    return GatedFeedForward(D, F, gate="geglu_tanh")


def block(_: Config) -> Options:
    """Normalise what a sub-layer reads, and what it adds."""
    return {"placement": "sandwich"}


def model(c: Config) -> Options:
    """Multiply the embedded tokens by √D, and bound the logits."""
    V, D = c["vocab_size"], c["hidden_size"]
    embedding = TokenEmbedding(V, D, scale=D**0.5)
    return {"embedding": embedding, "logit_cap": c["final_logit_softcapping"]}


PARTS = llama.PARTS._replace(norm=norm, attention=attention, network=network)
PARTS = PARTS._replace(layer_types=partial(all_but_every, 2), block=block, model=model)


def build(config: Config) -> CausalLM:
    """Build a Gemma 2 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
