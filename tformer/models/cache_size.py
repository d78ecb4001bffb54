"""How much memory the cache of a language model takes, known without its weights.

T tokens · D d_model · W window
"""

import torch

from tformer.models.causal_lm import CausalLM
from tformer.nn.shared_keys import NoCache


def cache_nbytes(model: CausalLM, length: int) -> int:
    """Compute the bytes that the cache of one sequence of T tokens takes.

    Each attention writes one token into its own kind of cache: keys and values of its
    heads, a latent, or a state. Room for T is taken at once; with a window for 2W at
    most. The numbers have the dtype of the weights.

    Args:
        model: best on the meta device, where nothing is computed and no memory taken.
        length: T.
    """
    cache, like = model.new_cache(length), next(model.blocks.parameters())
    with torch.no_grad(), torch.device(like.device):
        for block, own in zip(model.blocks, cache.blocks, strict=True):
            if isinstance(own.sequence, NoCache):
                continue  # it attends to what another layer keeps
            x = like.new_empty(1, 1, model.d_model)  # (1, 1, D)
            block.attention(x, is_causal=True, cache=own.sequence)  # type: ignore
    return cache.nbytes
