"""torch's own Transformer, made to read and write ids.

B batch · S length of the source · T length of the target · D width · V vocabulary
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TorchTransformer(nn.Module):
    """`nn.Transformer` with the embedding, positions and logits that it lacks.

    The logits are made with the embedding matrix, as in our model.
    """

    def __init__(
        self, embedding: nn.Embedding, table: Tensor, stacks: nn.Module, *, pad_id: int
    ) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.src_embedding, self.stacks = embedding, stacks
        self.register_buffer("table", table, persistent=False)  # (longest, D)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Of ids (B, S) and (B, T) make the logits (B, T, V)."""
        scale = self.table.shape[1] ** 0.5
        x, y = (
            self.src_embedding(ids) * scale + self.table[: ids.shape[1]]
            for ids in (src, tgt)
        )
        hidden, T = src == self.pad_id, tgt.shape[1]  # True: it may not be seen
        future = nn.Transformer.generate_square_subsequent_mask(
            T, src.device, torch.bool
        )
        masks = {"src_key_padding_mask": hidden, "memory_key_padding_mask": hidden}
        y = self.stacks(x, y, tgt_mask=future, tgt_is_causal=True, **masks)
        return F.linear(y, self.src_embedding.weight)
