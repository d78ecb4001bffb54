"""Masked language modelling: hide tokens of a text for BERT to guess."""

from collections.abc import Collection

import torch
from torch import Tensor


def mask_tokens(
    ids: Tensor,
    *,
    mask_id: int,
    vocab_size: int,
    special_ids: Collection[int],
    generator: torch.Generator,
    probability: float = 0.15,
    pad_id: int = 0,
) -> tuple[Tensor, Tensor]:
    """Hide tokens for BERT to guess: of those asked, 80 % are masked, 10 % changed.

    Devlin et al. 2019, section 3.1. The remaining 10 % stay as they are, so that
    vectors of visible tokens are trained too. Each token is asked by its own chance, so
    a short text may by luck have none; BERT's code asks for 15 % of the text, and at
    least one.

    Args:
        ids: (B, S) or any other shape.
        mask_id: what stands in place of a masked token.
        vocab_size: a changed token becomes any below this but the special ones; by
            chance, itself.
        special_ids: never asked, as the mask and padding; BERT's code may change a
            token into one of them.
        generator: of chance, on the device of the ids; it makes masks repeatable.
        probability: in (0, 1), that a token is asked.
        pad_id: the target where nothing is asked.

    Returns:
        The ids with tokens hidden, and the targets: both in the shape of `ids`.
    """
    if not 0 < probability < 1:
        raise ValueError(f"probability ({probability}) must be in (0, 1)")
    special = torch.tensor([*special_ids, mask_id, pad_id], device=ids.device)
    others = torch.arange(vocab_size, device=ids.device)
    others = others[~torch.isin(others, special)]
    if not len(others):
        raise ValueError(f"special_ids leave none of vocab_size ({vocab_size}) tokens")

    draw = torch.rand(ids.shape, generator=generator, device=ids.device)
    draw = draw.masked_fill(torch.isin(ids, special), 1.0)
    place = torch.randint(
        len(others), ids.shape, generator=generator, device=ids.device
    )
    targets = ids.masked_fill(draw >= probability, pad_id)
    changed = torch.where(draw < 0.9 * probability, others[place].to(ids.dtype), ids)
    return changed.masked_fill(draw < 0.8 * probability, mask_id), targets
