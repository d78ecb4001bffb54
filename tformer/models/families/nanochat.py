"""nanochat: Llama without learned gains, with ReLU² in place of a gate.

Karpathy 2025, github.com/karpathy/nanochat. Embedded tokens, queries and keys are
normalised too, logits are bounded, and rotary positions turn the other way round.
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
from tformer.models.families.renaming import Renaming
from tformer.models.families.rope_words import rotary_of
from tformer.nn.feed_forward import FeedForward
from tformer.nn.norm import RMSNorm

DEFAULTS: Config = {
    **llama.DEFAULTS,
    **sizes(768, 8192, 12, 6),
    "model_type": "nanochat",
    "vocab_size": 50_304,
    "hidden_act": "relu2",
    "final_logit_softcapping": 15.0,
    "pad_token_id": 1,
}
SIZES: dict[str, Config] = {
    "nanochat-d20": {**sizes(1280, 5120, 20, 10), "vocab_size": 65_536},
    "nanochat-d32": {**sizes(2048, 8192, 32, 16), "vocab_size": 65_536},
}
NAMES = (("fc1.", "linear1."), ("fc2.", "linear2."), *llama.NAMES)
rename = Renaming(NAMES)


def norm(c: Config, width: int) -> nn.Module:
    """Make a norm of this width, which learns nothing."""
    return RMSNorm(width, c["rms_norm_eps"], learned=False)


def attention(c: Config, layer: int) -> Options:
    """Normalise queries and keys; theirs come after the turning, which is the same."""
    norms = {name: norm(c, head_dim_of(c)) for name in ("q_norm", "k_norm")}
    return {**llama.attention(c, layer), **norms}


def network(c: Config, _: int) -> nn.Module:
    """Make the network, which has no gate."""
    only(c, hidden_act="relu2", mlp_bias=False)
    D, F = c["hidden_size"], c["intermediate_size"]
    return FeedForward(D, F, activation="relu2", bias=False)


def rotaries(c: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Turn by the negative of each angle."""
    rotary = rotary_of(c, head_dim_of(c))
    rotary.frequencies = -rotary.frequencies
    return [rotary] * len(kinds)


def model(c: Config) -> Options:
    """Normalise the embedded tokens, and bound the logits."""
    cap = c["final_logit_softcapping"]
    return {"embedding_norm": norm(c, c["hidden_size"]), "logit_cap": cap}


PARTS = llama.PARTS._replace(norm=norm, attention=attention, network=network)
PARTS = PARTS._replace(rotaries=rotaries, model=model)


def build(config: Config) -> CausalLM:
    """Build a nanochat with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
