"""Ministral 3: Mistral without a window, and queries that grow with their position.

Mistral AI 2026 (arXiv:2601.08584); the growth is Llama 4's, and makes attention sharper
far out in a long text. YaRN slows the rotation.
"""

from collections.abc import Sequence

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, mistral, with_defaults
from tformer.models.families.assembling import Options, assemble, head_dim_of, sizes
from tformer.models.families.rope_words import rope_words, rotary_of
from tformer.nn.temperature import QueryTemperature

ROPE: Options = {
    "type": "yarn",
    "rope_theta": 1_000_000.0,
    "factor": 16.0,
    "original_max_position_embeddings": 16_384,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}
DEFAULTS: Config = {
    **mistral.DEFAULTS,
    **sizes(4096, 14_336, 34, 32, 8),
    "model_type": "ministral3",
    "vocab_size": 131_072,
    "head_dim": 128,
    "max_position_embeddings": 262_144,
    "rms_norm_eps": 1e-5,
    "sliding_window": None,
    "pad_token_id": 11,
    "rope_parameters": ROPE,
}
SIZES: dict[str, Config] = {
    "ministral-3-3b": {**sizes(3072, 9216, 26, 32, 8), "tie_word_embeddings": True},
    "ministral-3-8b": {},
    "ministral-3-14b": sizes(5120, 16_384, 40, 32, 8),
}
GROWTH = "llama_4_scaling_beta", "original_max_position_embeddings"
rename = mistral.rename


def rotaries(c: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Rotate in every layer alike, by the words that are of the rotation."""
    others = (GROWTH[0], "max_position_embeddings")
    words = {name: x for name, x in rope_words(c).items() if name not in others}
    return [rotary_of(c, head_dim_of(c), words)] * len(kinds)


def attention(c: Config, layer: int) -> Options:
    """Scale the queries by their position."""
    words = rope_words(c)
    for name in GROWTH:
        if not words.get(name):
            raise ValueError(f"rope_parameters must have {name}, for the queries")
    temperature = QueryTemperature(*(words[name] for name in GROWTH))
    return {**mistral.PARTS.attention(c, layer), "temperature": temperature}


PARTS = mistral.PARTS._replace(attention=attention, rotaries=rotaries)


def build(config: Config) -> CausalLM:
    """Build a Ministral 3 with random weights; arguments as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
