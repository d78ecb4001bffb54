"""Models to compare ours with: torch's own Transformer, and a GRU with attention.

Both read and write ids as our `Transformer` does, so that the same loop trains them.

B batch · S length of the source · T length of the target · V vocabulary
"""

import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.peers.torchs import TorchTransformer

from tformer.nn.positions import sinusoidal_positions
from tformer.runs.settings import RunSettings


def torch_transformer(
    s: RunSettings, *, vocab_size: int, pad_id: int
) -> TorchTransformer:
    """Make `torch.nn.Transformer` of the settings' sizes, with torch's first weights.

    Only its embedding, with which the logits are made too, begins as ours does.
    """
    embedding = nn.Embedding(vocab_size, s.d_model)
    nn.init.normal_(embedding.weight, std=s.d_model**-0.5)
    sizes = (s.d_model, s.num_heads, s.num_layers, s.num_layers)
    options = {"dropout": s.dropout, "norm_first": s.norm_first, "batch_first": True}
    stacks = nn.Transformer(*sizes, s.d_ff or 4 * s.d_model, **options)
    table = sinusoidal_positions(s.max_len, s.d_model).float()
    return TorchTransformer(embedding, table, stacks, pad_id=pad_id)


class GRUWithAttention(nn.Module):
    """A GRU reads in both directions, another writes, and attends to the first.

    The attention is that of Luong et al. 2015 (arXiv:1508.04025), sections 3.1, score
    "general", without input feeding: so teacher forcing takes one call, as in a
    Transformer. `hidden` is chosen so that there are as many parameters as in ours.
    """

    def __init__(
        self, s: RunSettings, *, vocab_size: int, pad_id: int, hidden: int = 82
    ) -> None:
        super().__init__()
        D, H = s.d_model, 2 * hidden
        self.pad_id = pad_id
        self.src_embedding = nn.Embedding(vocab_size, D)
        nn.init.normal_(self.src_embedding.weight, std=D**-0.5)
        self.reader = nn.GRU(D, hidden, batch_first=True, bidirectional=True)
        self.writer = nn.GRU(D, H, batch_first=True)
        self.score = nn.Linear(H, H, bias=False)
        self.combine = nn.Linear(2 * H, D)
        self.dropout = nn.Dropout(s.dropout)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        real = src != self.pad_id  # (B, S)
        packed = nn.utils.rnn.pack_padded_sequence(
            self._embed(src),
            real.sum(1).cpu(),
            batch_first=True,
            enforce_sorted=False,
        )
        read, last = self.reader(packed)  # last (2, B, hidden)
        memory, _ = nn.utils.rnn.pad_packed_sequence(
            read, batch_first=True, total_length=src.shape[1]
        )  # (B, S, H)
        start = last.transpose(0, 1).flatten(1)[None].contiguous()  # (1, B, H)
        h, _ = self.writer(self._embed(tgt), start)  # (B, T, H)
        scores = h @ self.score(memory).transpose(1, 2)  # (B, T, S)
        weights = scores.masked_fill(~real[:, None], -math.inf).softmax(-1)
        both = torch.cat((weights @ memory, h), dim=-1)  # (B, T, 2H)
        y = self.dropout(torch.tanh(self.combine(both)))  # (B, T, D)
        return F.linear(y, self.src_embedding.weight)  # (B, T, V)

    def _embed(self, ids: Tensor) -> Tensor:
        x = self.src_embedding(ids)
        return self.dropout(x * math.sqrt(x.shape[-1]))


BASELINES = {"nn.Transformer": torch_transformer, "gru": GRUWithAttention}


def greedy(
    model: nn.Module, src: Tensor, *, bos_id: int, eos_id: int, max_len: int
) -> Tensor:
    """Write the likeliest next token, the whole target read anew for each one.

    Returns:
        int64 (B, T), without the start token, padded after the end token.
    """
    pad_id = model.pad_id
    with torch.no_grad():
        written = src.new_full((len(src), 1), bos_id)  # (B, 1)
        ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
        for _ in range(max_len):
            newest = model(src, written)[:, -1].argmax(-1)  # (B,)
            newest = newest.masked_fill(ended, pad_id)
            written = torch.cat((written, newest[:, None]), dim=1)
            ended |= newest == eos_id
            if bool(ended.all()):
                break
    return written[:, 1:]
