"""A GPT and a BERT of odd sizes, so small that a test of them takes no time."""

from tformer import BERT, BERTConfig, CausalLM
from tformer.models.families import custom

V = 61  # tokens
SIZES = {
    "vocab_size": V,
    "d_model": 15,
    "num_heads": 3,
    "num_layers": 2,
    "d_ff": 23,
    "max_len": 11,
}

# The parts of most models of today, in place of GPT's.
MODERN = {
    "positions": "rotary",
    "norm": "rms",
    "feed_forward": "swiglu",
    "bias": False,
    "eps": 1e-6,
}


def small_gpt(**changes) -> CausalLM:
    return custom.build({**SIZES, **changes})


def small_bert(**changes) -> BERT:
    return BERT(BERTConfig.tiny(**{**SIZES, **changes}))
