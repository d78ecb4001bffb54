"""EXAONE 4: OLMo 3 with a norm of each head, and no positions where all is seen.

LG AI Research 2025 (arXiv:2507.11407), section 2.1. The heads are those of queries and
keys. The rotation is slowed by Llama 3's rule in place of YaRN. The small model has no
window, and rotates in every layer.
"""

from collections.abc import Sequence

from torch import nn

from tformer.checks import check_positive
from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, olmo2, olmo3, with_defaults
from tformer.models.families.assembling import (
    Options,
    all_but_every,
    assemble,
    head_dim_of,
    norms_of_heads,
    only,
    sizes,
)
from tformer.models.families.renaming import Renaming
from tformer.models.families.rope_words import rotary_of

DEFAULTS: Config = {
    **olmo3.DEFAULTS,
    **sizes(4096, 16_384, 32, 32, 32),
    "model_type": "exaone4",
    "vocab_size": 102_400,
    "rope_theta": 10_000.0,
    "pad_token_id": None,
    "sliding_window_pattern": 4,  # layers, of which the last sees all
}
LLAMA_3: Options = {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0}
LLAMA_3 |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
SHARED: Options = {"rope_theta": 1_000_000.0, "rope_scaling": LLAMA_3}
SIZES: dict[str, Config] = {
    "exaone-4.0-1.2b": {
        **SHARED,
        **sizes(2048, 4096, 30, 32, 8),
        "max_position_embeddings": 65_536,
        "sliding_window": None,
        "tie_word_embeddings": True,
    },
    "exaone-4.0-32b": {
        **SHARED,
        **sizes(5120, 27_392, 64, 40, 8),
        "max_position_embeddings": 131_072,
    },
}
rename = Renaming(tuple(x for x in olmo2.NAMES if x not in olmo2.OVER_HEADS))


def attention(c: Config, layer: int) -> Options:
    """Normalise each head of a query and of a key."""
    only(c, attention_bias=False, mlp_bias=False)
    return {**llama.attention(c, layer), **norms_of_heads(c, llama.norm)}


def layer_types(c: Config) -> Sequence[str]:
    """Give the layers a window, but each fourth; none, if the config has no window."""
    n = 1 if c["sliding_window"] is None else c["sliding_window_pattern"]
    check_positive(sliding_window_pattern=n)
    return all_but_every(n, c)


def rotaries(c: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Rotate in the layers with a window alone; in all, if none has one."""
    rotary, none_has = rotary_of(c, head_dim_of(c)), c["sliding_window"] is None
    near = [none_has or kind == "sliding_attention" for kind in kinds]
    return [rotary if each else None for each in near]


PARTS = olmo3.PARTS._replace(
    norm=llama.norm, attention=attention, layer_types=layer_types, rotaries=rotaries
)


def build(config: Config) -> CausalLM:
    """Build an EXAONE 4 of random weights; arguments and errors as of `gpt2.build`."""
    words = dict(config)  # the published files say the pattern as LLLG, or null
    if words.get("sliding_window_pattern") == "LLLG":
        words["sliding_window_pattern"] = 4
    if words.get("sliding_window", 0) is None:
        words["sliding_window_pattern"] = 0
    return assemble(with_defaults(words, DEFAULTS), PARTS)
