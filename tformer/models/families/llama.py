"""Llama 2 and 3: what changed since GPT-2 is RMSNorm, RoPE, SwiGLU, grouped queries.

Touvron et al. 2023 (arXiv:2302.13971); Grattafiori et al. 2024 (arXiv:2407.21783). No
linear layer has a bias, logits have a matrix of their own, and nothing is dropped.
"""

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, one_of, rope_words, with_defaults
from tformer.models.families.assembling import (
    Options,
    Parts,
    assemble,
    sizes,
)
from tformer.models.families.renaming import Renaming
from tformer.nn.feed_forward import GatedFeedForward
from tformer.nn.norm import RMSNorm

DEFAULTS: Config = {
    "model_type": "llama",
    "vocab_size": 32_000,
    "hidden_size": 4096,
    "intermediate_size": 11_008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": None,  # as many as heads
    "head_dim": None,  # hidden_size / num_attention_heads
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "mlp_bias": False,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "pad_token_id": None,
    **rope_words.DEFAULTS,
}
LLAMA_3: Options = {"vocab_size": 128_256, "rope_theta": 500_000.0}
LLAMA_3 |= {"max_position_embeddings": 8192, "rms_norm_eps": 1e-5}
SIZES: dict[str, Config] = {
    "llama-2-7b": {"max_position_embeddings": 4096, "rms_norm_eps": 1e-5},
    "llama-3-8b": LLAMA_3 | sizes(4096, 14_336, 32, 32, 8),
    "llama-3-70b": LLAMA_3 | sizes(8192, 28_672, 80, 64, 8),
}
NAMES = (
    ("model.", ""),
    ("embed_tokens.", "embedding."),
    ("lm_head.", "output."),
    ("layers.", "blocks."),
    ("self_attn.o_proj.", "attention.out_proj."),
    ("self_attn.", "attention."),
    ("mlp.", "feed_forward."),
    ("input_layernorm.", "attention_norm."),
    ("post_attention_layernorm.", "feed_forward_norm."),
)
rename = Renaming(NAMES)


def norm(c: Config, width: int) -> nn.Module:
    """Make a norm of this width."""
    return RMSNorm(width, c["rms_norm_eps"], cast_first=True)


def attention(c: Config, _: int) -> Options:
    """Say what attention has: groups, and seldom biases."""
    return {
        "num_kv_heads": c["num_key_value_heads"],
        "bias": c["attention_bias"],
        "dropout": c["attention_dropout"],
    }


def network(c: Config, _: int) -> nn.Module:
    """Make the gated network."""
    one_of("hidden_act", c["hidden_act"], ["silu"])
    D, F = c["hidden_size"], c["intermediate_size"]
    return GatedFeedForward(D, F, bias=c["mlp_bias"])


PARTS = Parts(norm, attention, network)


def build(config: Config) -> CausalLM:
    """Build a Llama with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
