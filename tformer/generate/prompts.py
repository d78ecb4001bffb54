"""Prompts of different lengths as one batch.

B batch · P of a prompt
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tformer.models.causal_lm import CausalLM
from tformer.models.gpt import GPT


def stack_prompts(
    model: GPT | CausalLM, given: Tensor | Sequence[Sequence[int]], window: int | None
) -> tuple[Tensor, Tensor]:
    """Return prompts as ids (B, P), and by how much each is longer than the shortest.

    The shorter ones are filled up; the filling is never read. Of prompts that are
    longer than the positions, only the window is: as of each would be alone.
    """
    device = model.embedding.weight.device
    rows = [torch.as_tensor(row, device=device) for row in given]
    if not rows or any(row.ndim != 1 or not len(row) for row in rows):
        shapes = [tuple(row.shape) for row in rows]
        raise ValueError(f"prompts must be (B, P) or a list of (P,), not {shapes}")
    if window is not None:
        most = model.config.max_len
        rows = [row[-window:] if len(row) > most else row for row in rows]
    lengths = [len(row) for row in rows]
    prompts = nn.utils.rnn.pad_sequence(rows, batch_first=True)  # (B, P)
    late = torch.tensor(lengths, device=device) - min(lengths)  # (B,)
    return prompts, late
