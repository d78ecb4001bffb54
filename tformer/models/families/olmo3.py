"""OLMo 3: OLMo 2 with a window in three of four layers; the fourth rotates by YaRN.

OLMo team 2025 (arXiv:2512.13961). The fourth layer sees all tokens.
"""

from functools import partial

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, olmo2, with_defaults
from tformer.models.families.assembling import (
    Options,
    all_but_every,
    assemble,
    rotary_of_each_type,
    sizes,
)

DEFAULTS: Config = {
    **olmo2.DEFAULTS,
    "model_type": "olmo3",
    "rope_theta": 500_000.0,
    "sliding_window": 4096,
    "layer_types": None,
}
YARN: Options = {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32, "beta_slow": 1}
YARN |= {"attention_factor": 1.2079441541679836}
YARN |= {"original_max_position_embeddings": 8192}
SHARED: Options = {"vocab_size": 100_278, "max_position_embeddings": 65_536}
SHARED |= {"rms_norm_eps": 1e-6, "rope_scaling": YARN}
SIZES: dict[str, Config] = {
    "olmo-3-7b": SHARED | sizes(4096, 11_008, 32, 32),
    "olmo-3-32b": SHARED | sizes(5120, 27_648, 64, 40, 8),
}
rename = olmo2.rename
PARTS = olmo2.PARTS._replace(
    layer_types=partial(all_but_every, 4), rotaries=rotary_of_each_type
)


def build(config: Config) -> CausalLM:
    """Build an OLMo 3 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
