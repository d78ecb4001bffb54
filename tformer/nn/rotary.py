"""Rotary embedding (RoPE): queries and keys are rotated by the angle of their position.

B batch · H heads · T length · Dh head_dim · R rotary_dim, the part that is rotated
"""

import torch
from torch import Tensor, nn

from tformer.checks import check_above_0, check_positive
from tformer.nn.rotary_scaling import (
    check_frequencies,
    check_layout,
    check_pairs,
    check_rotated,
)


def rotary_frequencies(head_dim: int, *, base: float = 10_000.0) -> Tensor:
    """Compute θᵢ = base^(−2i/Dh), by how many radians pair i rotates at each position.

    Su et al. 2021, section 3.2.2 (arXiv:2104.09864). Returns float64 (Dh/2,) on the
    CPU, from 1 down to base^(2/Dh − 1).

    Args:
        head_dim: width Dh of a head; even, as two numbers make a pair.
        base: above 1. 10,000 in the paper, 500,000 in Llama 3, 1,000,000 in Qwen3.
    """
    check_pairs(head_dim, base)
    exponent = torch.arange(0, head_dim, 2, dtype=torch.float64, device="cpu")
    return base ** -(exponent / head_dim)  # (Dh/2,)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor, *, layout: str = "pairs") -> Tensor:
    """Rotate each pair of numbers: (a, b) to (a cos − b sin, a sin + b cos).

    Su et al. 2021, equation 34. With halves that is x cos + (−b, a) sin.

    Args:
        x: (..., T, Dh).
        cosine: (T, Dh/2), of the angle of each position and pair.
        sine: (T, Dh/2).
        layout: which numbers make pair i. "pairs": 2i and 2i + 1, as in the paper and
            in Meta's Llama. "halves": i and i + Dh/2, as in GPT-NeoX and in Hugging
            Face's Llama 3.

    Returns:
        (..., T, Dh), in the dtype of x; rotated in the wider dtype of x and cosine.
    """
    check_layout(layout)
    wide = x.to(torch.promote_types(x.dtype, cosine.dtype))
    if layout == "pairs":
        return rotate_pairs(wide, cosine, sine).to(x.dtype)
    swapped = wide.roll(x.shape[-1] // 2, dims=-1)  # (b, a)
    cosine = torch.cat((cosine, cosine), dim=-1)  # (T, Dh)
    sine = torch.cat((-sine, sine), dim=-1)  # (T, Dh)
    return torch.addcmul(wide * cosine, swapped, sine).to(x.dtype)


def rotate_pairs(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Multiply complex numbers: (a + bi) (cos + i sin), with 2i and 2i + 1 for a and b.

    One product, which reads x once, in the place of the four of the formula.
    Compilers do not fuse complex numbers, and other devices may lack them: these get
    the formula. The arguments are as in `rotate`; all have the same dtype.
    """
    if torch.compiler.is_compiling() or x.device.type not in ("cpu", "cuda"):
        a, b = x[..., 0::2], x[..., 1::2]  # (..., T, Dh/2)
        rotated = a * cosine - b * sine, a * sine + b * cosine
        return torch.stack(rotated, dim=-1).flatten(-2)  # (..., T, Dh)
    *steps, step = x.stride()
    if step != 1 or x.storage_offset() % 2 or any(step % 2 for step in steps):
        # torch asks this of numbers that become complex.
        x = x.clone(memory_format=torch.contiguous_format)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))  # (..., T, Dh/2)
    return torch.view_as_real(pairs * torch.complex(cosine, sine)).flatten(-2)


class RotaryEmbedding(nn.Module):
    """Rotate the query or the key at position p by the angles p · θᵢ: RoPE.

    Su et al. 2021 (arXiv:2104.09864). The product of a rotated query and a rotated key
    depends on the distance of their positions only. Values are not rotated, and nothing
    is learned.

    The table of cosines and sines grows with the sequence. It is computed in float64
    and is no buffer, which `model.bfloat16()` would round. It is made anew after
    `frequencies` or `factor` is set.

    Args:
        frequencies: (R/2,), of `rotary_frequencies`, or what a `scale_…` of
            `tformer.nn.rotary_scaling` makes of them. Reading it back gives a copy.
        factor: multiplies what is rotated, as YaRN's attention factor does.
        layout: "pairs" or "halves", as in `rotate`.
        head_dim: Dh, of which the first R numbers are rotated and the others stay
            (`partial_rotary_factor`); R if not given.
    """

    def __init__(
        self,
        frequencies: Tensor,
        *,
        factor: float = 1.0,
        layout: str = "pairs",
        head_dim: int | None = None,
    ) -> None:
        super().__init__()
        check_layout(layout)
        self.head_dim = 2 * frequencies.numel() if head_dim is None else head_dim
        self.frequencies, self.factor, self.layout = frequencies, factor, layout

    @property
    def frequencies(self) -> Tensor:
        """A copy of θ, float64 (R/2,) on the CPU."""
        return self._frequencies.clone()

    @frequencies.setter
    def frequencies(self, frequencies: Tensor) -> None:
        check_frequencies(frequencies, self.head_dim)
        self._frequencies = frequencies.detach().clone().to("cpu", torch.float64)
        self._table = torch.empty(2, 0, len(frequencies), device="cpu")

    @property
    def factor(self) -> float:
        """What is rotated is multiplied by it."""
        return self._factor

    @factor.setter
    def factor(self, factor: float) -> None:
        check_above_0(factor=factor)
        self._factor = factor
        self._table = self._table[:, :0]

    def angles(self, positions: Tensor) -> Tensor:
        """Return cosines and sines of positions (...) on the CPU: (2, ..., R/2)."""
        angle = positions.double()[..., None] * self._frequencies  # (..., R/2)
        return self._factor * torch.stack((angle.cos(), angle.sin()))

    def table(self, end: int, like: Tensor) -> Tensor:
        """Return the cosines and the sines of positions 0 to end − 1, or more.

        (2, end or more, R/2), where `like` is, and in float32 at least.
        """
        dtype = torch.promote_types(like.dtype, torch.float32)
        if torch.compiler.is_exporting():  # the graph makes it, for any length
            return self.angles(torch.arange(end, device="cpu")).to(like.device, dtype)
        table = self._table  # as it is now: another thread may put one in its place
        if table.shape[1] < end or (table.dtype, table.device) != (dtype, like.device):
            held = table.shape[1]  # another dtype or device alone needs no more rows
            length = held if end <= held else max(end, 2 * held)
            rows = torch.arange(length, device="cpu")
            table = self._table = self.angles(rows).to(like.device, dtype)
        return table

    def forward(
        self, x: Tensor, start: int = 0, *, positions: Tensor | None = None
    ) -> Tensor:
        """Rotate x (B, H, T, Dh) at positions start, start + 1, …; the same shape.

        Or at `positions`, (T,) or (B, T), which need not be whole numbers.
        """
        check_rotated(x, self.head_dim, start, positions)
        T, Dh = x.shape[2:]
        if positions is None:
            cosine, sine = self.table(start + T, x)[:, start : start + T]  # (T, R/2)
        else:
            dtype = torch.promote_types(x.dtype, torch.float32)
            both = self.angles(positions.cpu()).to(x.device, dtype)
            cosine, sine = both if positions.ndim == 1 else both[:, :, None]
        R = 2 * len(self._frequencies)
        rotated = rotate(x[..., :R], cosine, sine, layout=self.layout)
        return rotated if Dh == R else torch.cat((rotated, x[..., R:]), dim=-1)


class LongRotaryEmbedding(nn.Module):
    """Rotate by other frequencies as soon as a text is longer than L: LongRoPE.

    Ding et al. 2024 (arXiv:2402.13753), and Phi-3 (arXiv:2404.14219): each pair has a
    divisor of its own for short texts and one for long ones, found by a search.

    Args:
        short: rotates texts of at most L tokens.
        long: rotates longer ones, from their first token on.
        trained_len: L.
    """

    def __init__(
        self, short: RotaryEmbedding, long: RotaryEmbedding, trained_len: int
    ) -> None:
        super().__init__()
        check_positive(trained_len=trained_len)
        self.short, self.long, self.trained_len = short, long, trained_len

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Rotate x (B, H, T, Dh) at positions start, start + 1, …; the same shape.

        Raises:
            ValueError: `start` says that a cache holds keys which are rotated for short
                texts, and x is of a long one, which has to be read anew as a whole.
        """
        L, end = self.trained_len, start + x.shape[2]
        if torch.compiler.is_exporting():  # the graph chooses, for any length
            beyond = torch.arange(end, device=x.device)[-1] >= L
            return torch.where(beyond, self.long(x, start), self.short(x, start))
        if 0 < start <= L < end:
            rule = f"must be 0 as the text grows beyond trained_len ({L}): read it anew"
            raise ValueError(f"start ({start}) {rule}")
        return self.long(x, start) if end > L else self.short(x, start)
