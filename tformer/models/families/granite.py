"""Granite 3: Llama with four multipliers.

IBM 2024, "Granite 3.0 Language Models", section 2: of the embedded tokens, of the
scores in place of 1/√Dh, of what a sub-layer adds, and of the logits, which are
divided. They are those with which sizes share one learning rate (Yang et al. 2022,
arXiv:2203.03466).
"""

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, with_defaults
from tformer.models.families.assembling import Options, assemble, sizes
from tformer.nn.embedding import TokenEmbedding

DEFAULTS: Config = {
    **llama.DEFAULTS,
    "model_type": "granite",
    "embedding_multiplier": 1.0,  # of the embedded tokens
    "attention_multiplier": 1.0,  # of the scores, in place of 1 / √head_dim
    "residual_multiplier": 1.0,  # of what a sub-layer adds
    "logits_scaling": 1.0,  # divides the logits
}
SHARED: Options = {"vocab_size": 49_155, "tie_word_embeddings": True}
SHARED |= {"embedding_multiplier": 12.0, "residual_multiplier": 0.22}
SHARED |= {"max_position_embeddings": 4096, "rms_norm_eps": 1e-5}
SIZES: dict[str, Config] = {
    "granite-3.0-2b": SHARED
    | sizes(2048, 8192, 40, 32, 8)
    | {"attention_multiplier": 0.015625, "logits_scaling": 8.0},
    "granite-3.0-8b": SHARED
    | sizes(4096, 12_800, 40, 32, 8)
    | {"attention_multiplier": 0.0078125, "logits_scaling": 16.0},
}
rename = llama.rename


def attention(c: Config, layer: int) -> Options:
    """Multiply the scores by a number of the config."""
    return {**llama.attention(c, layer), "scale": c["attention_multiplier"]}


def block(c: Config) -> Options:
    """Multiply what is added."""
    return {"residual_scale": c["residual_multiplier"]}


def model(c: Config) -> Options:
    """Multiply the embedded tokens, and divide the logits."""
    V, D, factor = c["vocab_size"], c["hidden_size"], c["embedding_multiplier"]
    return {
        "embedding": TokenEmbedding(V, D, scale=float(factor)),
        "logit_scale": 1 / c["logits_scaling"],
    }


PARTS = llama.PARTS._replace(attention=attention, block=block, model=model)


def build(config: Config) -> CausalLM:
    """Build a Granite with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
