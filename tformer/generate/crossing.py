"""Writing on where a text grows beyond what a rotation was made for.

B batch · T what is new · V vocabulary
"""

import torch
from torch import Tensor

from tformer.generate.decode import Score
from tformer.models.causal_lm import CausalLM
from tformer.nn.cache import ModelCache


def crossing(model: CausalLM, cache: ModelCache, at: int, room: int) -> Score:
    """As `continuing`; a text that grows beyond `at` tokens is read anew, once.

    A `LongRotaryEmbedding` rotates a long text otherwise, from its first token on.
    """
    text: Tensor | None = None

    def score(newest: Tensor) -> Tensor:
        nonlocal cache, text
        text = newest if text is None else torch.cat((text, newest), dim=1)
        if 0 < cache.length <= at < cache.length + newest.shape[1]:
            newest, cache = text, model.new_cache(room)
        return model(newest, cache=cache, last_only=True)[:, -1]

    return score
