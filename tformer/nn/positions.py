"""Positions: what tells attention where a token stands.

B batch · T length · D d_model
"""

import torch
from torch import Tensor, nn

from tformer.checks import check_one_of, check_positive, check_sequences


def sinusoidal_positions(length: int, d_model: int, *, layout: str = "pairs") -> Tensor:
    """Compute sin(p / 10000^(2i/D)) in column 2i, and the cosine in column 2i + 1.

    Vaswani et al. 2017, section 3.5. The wavelengths grow from 2π towards 10000 · 2π.

    Args:
        length: number of positions.
        d_model: width D; even, as each sine has its cosine.
        layout: "pairs" as in the paper; "halves": all sines, then all cosines, as in
            Hugging Face's Marian.

    Returns:
        float64 (length, D). In float32, angles at 10,000 are off by up to 1/1000.
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

    def forward(
        self, x: Tensor, *, start: int = 0, positions: Tensor | None = None
    ) -> Tensor:
        """Add positions start, start + 1, … to x (B, T, D), or `positions` (T,)."""
        rows, end = rows_of(x, self.d_model, start, positions)
        if torch.compiler.is_exporting():  # the graph makes it, for any length
            return x + self.make_table(end)[rows].to(x)
        table = self._table  # as it is now: another thread may put one in its place
        if end > len(table) or (table.dtype, table.device) != (x.dtype, x.device):
            length = max(self.max_len, len(table))
            length = length if end <= length else 2 * end
            table = self._table = self.make_table(length).to(x)
        return x + table[rows]

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
        check_positive(0, offset=offset)
        self.max_len, self.d_model, self.offset = max_len, d_model, offset
        self.weight = nn.Parameter(torch.empty(offset + max_len, d_model))
        nn.init.normal_(self.weight, std=0.02)  # as BERT, nanoGPT; OpenAI's GPT-2: 0.01

    def forward(
        self, x: Tensor, *, start: int = 0, positions: Tensor | None = None
    ) -> Tensor:
        """Add positions start, start + 1, … to x (B, T, D), or `positions` (T,)."""
        rows, end = rows_of(x, self.d_model, start, positions)
        if end > self.max_len:
            room = f"max_len is {self.max_len}: x is {tuple(x.shape)}, start is {start}"
            raise ValueError(f"x needs positions up to {end} but {room}")
        return x + self.weight[self.offset :][rows]


def rows_of(
    x: Tensor, d_model: int, start: int, positions: Tensor | None
) -> tuple[slice | Tensor, int]:
    """Say which rows of a table are added to x (B, T, D), and how long it must be."""
    check_sequences(d_model, x=x)
    check_positive(0, start=start)
    B, T, _ = x.shape
    if T == 0:
        raise ValueError(f"x is an empty sequence: its shape is {tuple(x.shape)}")
    if positions is None:
        return slice(start, start + T), start + T
    fits = positions.shape in ((T,), (B, T)) and positions.dtype == torch.int64
    if start or not fits or positions.min() < 0:
        rule = f"must be int64 ({T},) or ({B}, {T}), at least 0, and start 0"
        raise ValueError(f"positions {rule}, not {positions.tolist()} and {start}")
    return positions, int(positions.max()) + 1
