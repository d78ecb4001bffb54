"""Phi-3 and Phi-4-mini: Llama with LongRoPE, and q, k, v in one matrix on disk.

Abdin et al. 2024 (arXiv:2404.14219); Phi-4-mini, of which a part of each head is
rotated: arXiv:2503.01743. A config for texts of 4096 tokens, as the first preset,
rotates as Llama does, within a window; the second is its config without LongRoPE.
"""

from collections.abc import Sequence

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, with_defaults
from tformer.models.families.assembling import (
    Options,
    assemble,
    head_dim_of,
    only,
    sizes,
)
from tformer.models.families.renaming import GATE_UP, Cut, Cuts, Renaming
from tformer.models.families.rope_words import long_rotary_of

SAID: Options = {  # what some files say of every Phi-3
    "attention_bias": False,
    "mlp_bias": False,
    "lm_head_bias": False,
    "full_attn_mod": 1,
    "interpolate_factor": 1,
}
DEFAULTS: Config = {
    **llama.DEFAULTS,
    **sizes(3072, 8192, 32, 32),
    **SAID,
    "model_type": "phi3",
    "vocab_size": 32_064,
    "max_position_embeddings": 4096,
    "original_max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,  # which Hugging Face's code does not use
    "pad_token_id": 32_000,
}
SIZES: dict[str, Config] = {
    "phi-3-mini-4k": {"sliding_window": 2047},
    "phi-4-mini": {
        **sizes(3072, 8192, 32, 24, 8),
        "vocab_size": 200_064,
        "partial_rotary_factor": 0.75,
        "tie_word_embeddings": True,
        "pad_token_id": 199_999,
    },
}


def cuts(c: Config) -> Cuts:
    """Cut queries, keys and values, whose heads may be fewer; and gate and up."""
    H, Dh = c["num_attention_heads"], head_dim_of(c)
    G = c["num_key_value_heads"] or H
    qkv = Cut({"q_proj": H * Dh, "k_proj": G * Dh, "v_proj": G * Dh})
    return {"qkv_proj": qkv, "gate_up_proj": GATE_UP}


rename = Renaming(llama.NAMES, DEFAULTS, cuts)


def rotaries(c: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Rotate by other frequencies in a long text."""
    return [long_rotary_of(c, head_dim_of(c))] * len(kinds)


def block(c: Config) -> Options:
    """Drop of what is added."""
    only(c, **SAID)
    return {"dropout": c["resid_pdrop"]}


PARTS = llama.PARTS._replace(rotaries=rotaries, block=block)


def build(config: Config) -> CausalLM:
    """Build a Phi-3 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
