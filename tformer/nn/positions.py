"""Positions: what tells attention where a token stands.

B batch · T length · D d_model
"""

import torch
from torch import Tensor, nn

from tformer.checks import check_at_least_0, check_one_of, check_positive


def sinusoidal_positions(length: int, d_model: int, *, layout: str = "pairs") -> Tensor:
    """Compute sin(p / 10000^(2i/D)) in column 2i, and the cosine in column 2i + 1.

    Vaswani et al. 2017, section 3.5. The wavelengths grow from 2π to 10000 · 2π.

    Args:
        length: number of positions.
        d_model: width D; even, as each sine has its cosine.
        layout: "pairs" as in the paper; "halves": all sines, then all cosines, as in
            tensor2tensor and Marian.

    Returns:
        float64 (length, D). In float32 the angle of position 10,000 is off by 1/1000.
    """
    check_positive(length=length, d_model=d_model)
    check_one_of("layout", layout, ("pairs", "halves"))
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even: a cosine for each sine")
    # On the CPU whatever the default device is: others may lack float64.
    position = torch.arange(length, dtype=torch.float64, device="cpu")
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64, device="cpu") / d_model
    angle = position[:, None] / 10000.0**exponent  # (length, D/2)
    if layout == "halves":
        return torch.cat((angle.sin(), angle.cos()), dim=1)  # (length, D)
    waves = torch.stack((angle.sin(), angle.cos()), dim=-1)  # (length, D/2, 2)
    return waves.flatten(1)  # (length, D)


class SinusoidalPositionalEncoding(nn.Module):
    """Add the sinusoid of its position to each token: x + PE. Nothing is learned.

    A sequence may be of every length: the table grows when a longer sequence comes.

    Args:
        d_model: width D; even.
        max_len: positions to compute beforehand.
        layout: "pairs" or "halves", as in `sinusoidal_positions`.
    """

    def __init__(
        self, d_model: int, *, max_len: int = 512, layout: str = "pairs"
    ) -> None:
        super().__init__()
        check_positive(max_len=max_len)
        sinusoidal_positions(1, d_model, layout=layout)  # which checks both
        self.d_model, self.max_len, self.layout = d_model, max_len, layout
        # No buffer: `model.bfloat16()` would round it, and no file need hold it.
        self._table = torch.empty(0, d_model, device="cpu")

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """Add positions start, start + 1, … to x (B, T, D); returns (B, T, D)."""
        check_start(x, self.d_model, start)
        end = start + x.shape[1]
        if torch.compiler.is_exporting():  # the graph makes it, for any length
            return x + self.make_table(end)[start:].to(x)
        table = self._table  # as it is now: another thread may put one in its place
        if end > len(table) or (table.dtype, table.device) != (x.dtype, x.device):
            rows = max(self.max_len, len(table))
            rows = rows if end <= rows else 2 * end
            table = self._table = self.make_table(rows).to(x)
        return x + table[start:end]

    def make_table(self, length: int) -> Tensor:
        """Compute the first positions: float64 (length, D)."""
        return sinusoidal_positions(length, self.d_model, layout=self.layout)


class LearnedPositionalEmbedding(nn.Module):
    """Add a learned vector for each position: x + P, as BERT and GPT-2 do.

    Gehring et al. 2017 (arXiv:1705.03122); in the paper's table 3, row E, nearly as
    good as the sinusoid. Unlike the sinusoid it ends at `max_len`.

    Args:
        max_len: number of positions.
        d_model: width D.
        offset: so many rows before that of position 0, which nothing uses: BART's
            table has 2, for the places of padding in fairseq.
    """

    def __init__(self, max_len: int, d_model: int, *, offset: int = 0) -> None:
        super().__init__()
        check_positive(max_len=max_len, d_model=d_model)
        check_at_least_0(offset=offset)
        self.max_len, self.d_model, self.offset = max_len, d_model, offset
        self.weight = nn.Parameter(torch.empty(offset + max_len, d_model))
        nn.init.normal_(self.weight, std=0.02)  # as BERT, nanoGPT; OpenAI's GPT-2: 0.01

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """Add positions start, start + 1, … to x (B, T, D); returns (B, T, D)."""
        check_start(x, self.d_model, start)
        end = start + x.shape[1]
        if end > self.max_len:
            raise ValueError(
                f"x needs positions up to {end} but max_len is {self.max_len}: "
                f"x is {tuple(x.shape)}, start is {start}"
            )
        return x + self.weight[self.offset + start : self.offset + end]


def check_start(x: Tensor, d_model: int, start: int) -> None:
    """Raise unless x is (B, T, D), not empty, and `start` a position."""
    if x.ndim != 3 or x.shape[-1] != d_model:
        raise ValueError(
            f"x must be (batch, length, d_model = {d_model}), not {tuple(x.shape)}"
        )
    if x.shape[1] == 0:
        raise ValueError(f"x is an empty sequence: its shape is {tuple(x.shape)}")
    if start < 0:
        raise ValueError(f"start ({start}) must be at least 0")
