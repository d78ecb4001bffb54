"""Rotary positions: queries and keys are turned by the angle of their position.

B batch · H heads · T length · Dh head_dim
"""

import torch
from torch import Tensor, nn

from tformer.checks import check_at_least_0, check_divisible, check_positive
from tformer.fast.rotary import can_rotate, fast_rotate

LAYOUTS = ("pairs", "halves")


def rotary_frequencies(head_dim: int, *, base: float = 10_000.0) -> Tensor:
    """Compute θᵢ = base^(−2i/Dh), by how many radians pair i turns at each position.

    Su et al. 2021, section 3.2.2 (arXiv:2104.09864).

    Args:
        head_dim: width Dh of a head; even, as two numbers make a pair.
        base: above 1. 10,000 in the paper, 500,000 in Llama 3, 1,000,000 in Qwen3.

    Returns:
        float64 (Dh/2,) on the CPU, from 1 down to nearly 1 / base.

    Raises:
        ValueError: `head_dim` is odd or below 1, or `base` is not above 1.
    """
    check_positive(head_dim=head_dim)
    if head_dim % 2:
        raise ValueError(f"head_dim ({head_dim}) must be even: two numbers make a pair")
    if not base > 1:
        raise ValueError(f"base ({base}) must be above 1")
    exponent = torch.arange(0, head_dim, 2, dtype=torch.float64, device="cpu")
    return base ** -(exponent / head_dim)  # (Dh/2,)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor, *, layout: str = "pairs") -> Tensor:
    """Turn each pair of numbers: (a, b) to (a cos − b sin, a sin + b cos).

    Su et al. 2021, equation 34.

    Args:
        x: (..., T, Dh).
        cosine: (T, Dh/2), of the angle of each position and pair.
        sine: (T, Dh/2).
        layout: which numbers make pair i. "pairs": 2i and 2i + 1, as in the paper and
            in Meta's Llama. "halves": i and i + Dh/2, as in GPT-NeoX and Hugging Face.

    Returns:
        (..., T, Dh), in the dtype of x; half precision is turned in float32.

    Raises:
        ValueError: `layout` is unknown.
    """
    check_layout(layout)
    if layout == "pairs":
        a, b = x[..., 0::2], x[..., 1::2]  # (..., T, Dh/2)
    else:
        a, b = x.chunk(2, dim=-1)  # (..., T, Dh/2)
    turned = a * cosine - b * sine, a * sine + b * cosine
    if layout == "pairs":
        return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)  # (..., T, Dh)
    return torch.cat(turned, dim=-1).to(x.dtype)  # (..., T, Dh)


class RotaryPositions(nn.Module):
    """Turn the query or the key at position p by the angles p · θᵢ. Nothing is learned.

    Su et al. 2021 (arXiv:2104.09864): RoPE. The product of a turned query and a turned
    key depends on the distance of their positions only. Values are not turned.

    The table of cosines and sines grows with the text. It is computed in float64 and
    is no buffer: `model.bfloat16()` would round a buffer, and the positions with it.

    Args:
        frequencies: (Dh/2,), of `rotary_frequencies`, or one of the functions of
            `tformer.nn.rotary_scaling` of them.
        factor: multiplies what is turned, as YaRN's attention factor does.
        layout: "pairs" or "halves", as in `rotate`.

    Raises:
        ValueError: `frequencies` has no number or several axes, `factor` is not above
            0, or `layout` is unknown.
    """

    def __init__(
        self, frequencies: Tensor, *, factor: float = 1.0, layout: str = "pairs"
    ) -> None:
        super().__init__()
        if frequencies.ndim != 1 or len(frequencies) == 0:
            raise ValueError(
                f"frequencies must be (head_dim / 2,), not {tuple(frequencies.shape)}"
            )
        if not factor > 0:
            raise ValueError(f"factor ({factor}) must be above 0")
        check_layout(layout)
        self.frequencies = frequencies.double()
        self.factor = factor
        self.layout = layout
        self._table = torch.empty(2, 0, len(frequencies), device="cpu")

    def extra_repr(self) -> str:
        """What `print(model)` says of it."""
        width = 2 * len(self.frequencies)
        return f"head_dim={width}, factor={self.factor:.4g}, layout={self.layout!r}"

    def table(self, end: int, like: Tensor) -> Tensor:
        """Return the cosines and the sines of positions 0 to end − 1.

        Returns:
            (2, end or more, Dh/2), where `like` is, and in float32 at least.
        """
        dtype = torch.promote_types(like.dtype, torch.float32)
        if torch.compiler.is_exporting():  # the graph makes it, for any length
            return self._make_table(end).to(like.device, dtype)
        table = self._table  # as it is now: another thread may put one in its place
        if table.shape[1] < end or (table.dtype, table.device) != (dtype, like.device):
            table = self._make_table(max(end, 2 * table.shape[1]))
            table = self._table = table.to(like.device, dtype)
        return table

    def _make_table(self, rows: int) -> Tensor:
        position = torch.arange(rows, dtype=torch.float64, device="cpu")
        angle = position[:, None] * self.frequencies  # (rows, Dh/2)
        return self.factor * torch.stack((angle.cos(), angle.sin()))

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """Turn x (B, H, T, Dh), whose first position is `start`; returns (B, H, T, Dh).

        Raises:
            ValueError: x has other axes or another Dh, or `start` is below 0.
        """
        if x.ndim != 4 or x.shape[-1] != 2 * len(self.frequencies):
            raise ValueError(
                "x must be (batch, heads, length, head_dim = "
                f"{2 * len(self.frequencies)}), not {tuple(x.shape)}"
            )
        check_at_least_0(start=start)
        end = start + x.shape[2]
        cosine, sine = self.table(end, x)[:, start:end]  # (T, Dh/2)
        if can_rotate(x):  # the same, in fewer operations
            return fast_rotate(x, cosine, sine, self.layout)
        return rotate(x, cosine, sine, layout=self.layout)


def pairs_to_halves(weight: Tensor, num_heads: int) -> Tensor:
    """Reorder the rows of W_q or W_k of a model with "pairs" for one with "halves".

    Row 2i of each head becomes row i, and row 2i + 1 becomes row i + Dh/2.

    Args:
        weight: (H · Dh, ...): a matrix, its bias, or with one head a gain (Dh,).
        num_heads: how many heads lie in it: for W_k the key/value heads.

    Returns:
        A copy of the same shape.

    Raises:
        ValueError: the rows are no even number in each head.
    """
    check_divisible(rows=weight.shape[0], **{"2 · num_heads": 2 * num_heads})
    by_pair = weight.reshape(num_heads, -1, 2, *weight.shape[1:])  # (H, Dh/2, 2, ...)
    return by_pair.transpose(1, 2).flatten(0, 2)  # (H · Dh, ...)


def halves_to_pairs(weight: Tensor, num_heads: int) -> Tensor:
    """Undo `pairs_to_halves`: row i of each head becomes row 2i again."""
    check_divisible(rows=weight.shape[0], **{"2 · num_heads": 2 * num_heads})
    by_half = weight.reshape(num_heads, 2, -1, *weight.shape[1:])  # (H, 2, Dh/2, ...)
    return by_half.transpose(1, 2).flatten(0, 2)  # (H · Dh, ...)


def check_layout(layout: str) -> None:
    """Raise unless `layout` is one of the two."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout ({layout!r}) must be one of {', '.join(LAYOUTS)}")
