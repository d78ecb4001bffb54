"""Rotary positions in NumPy: queries and keys are rotated by their position's angle.

B batch · H heads · T length · Dh head_dim
"""

import math
from dataclasses import dataclass

import numpy as np

from tformer.checks import check_at_least_0, check_divisible, check_positive

LAYOUTS = ("pairs", "halves")


def rotary_frequencies(head_dim: int, *, base: float = 10_000.0) -> np.ndarray:
    """Compute θᵢ = base^(−2i/Dh), by how many radians a position rotates pair i.

    Su et al. 2021, section 3.2.2 (arXiv:2104.09864). Returns float64 (Dh/2,).
    """
    check_positive(head_dim=head_dim)
    if head_dim % 2:
        raise ValueError(f"head_dim ({head_dim}) must be even: two numbers make a pair")
    if not base > 1:
        raise ValueError(f"base ({base}) must be above 1")
    return base ** -(np.arange(0, head_dim, 2) / head_dim)


def rotate(
    x: np.ndarray, cosine: np.ndarray, sine: np.ndarray, *, layout: str = "pairs"
) -> np.ndarray:
    """Rotate each pair of numbers: (a, b) to (a cos − b sin, a sin + b cos).

    Of x (..., T, Dh), by angles (T, Dh/2). Pair i has the columns 2i and 2i + 1
    ("pairs"), or i and i + Dh/2 ("halves").
    """
    check_layout(layout)
    half = x.shape[-1] // 2
    of_pair = {
        "pairs": (np.s_[..., 0::2], np.s_[..., 1::2]),
        "halves": (np.s_[..., :half], np.s_[..., half:]),
    }
    first, second = of_pair[layout]
    a, b = x[first], x[second]  # (..., T, Dh/2)
    rotated = np.empty_like(x)  # (..., T, Dh)
    rotated[first] = a * cosine - b * sine
    rotated[second] = a * sine + b * cosine
    return rotated


@dataclass(eq=False)
class RotaryEmbedding:
    """Rotate the query or the key at position p by the angles p · θᵢ."""

    frequencies: np.ndarray  # θ (R/2,)
    factor: float = 1.0  # of what is rotated
    layout: str = "pairs"  # as in `rotate`
    head_dim: int | None = None  # Dh, of which R are rotated; R if None

    def __post_init__(self) -> None:
        check_layout(self.layout)
        count = self.frequencies.size
        self.head_dim = 2 * count if self.head_dim is None else self.head_dim
        if self.frequencies.ndim != 1 or count == 0:
            raise ValueError(
                f"frequencies must be (head_dim / 2,), not {self.frequencies.shape}"
            )
        if 2 * count > self.head_dim:
            raise ValueError(
                f"frequencies ({count}) must be at most half of head_dim "
                f"({self.head_dim})"
            )
        if not self.factor > 0:
            raise ValueError(f"factor ({self.factor}) must be above 0")

    def __call__(
        self, x: np.ndarray, start: int = 0, *, positions: np.ndarray | None = None
    ) -> np.ndarray:
        """Rotate x (B, H, T, Dh) at positions start, start + 1, …, or at `positions`.

        These are (T,) or (B, T).
        """
        if x.ndim != 4 or x.shape[-1] != self.head_dim:
            raise ValueError(
                f"x must be (batch, heads, length, head_dim = {self.head_dim}), "
                f"not {x.shape}"
            )
        check_at_least_0(start=start)
        B, T = x.shape[0], x.shape[2]
        if positions is None:
            positions = np.arange(start, start + T)
        elif start or positions.shape not in ((T,), (B, T)):
            raise ValueError(
                f"positions must be ({T},) or ({B}, {T}), and start 0, not "
                f"{positions.shape} and {start}"
            )
        angle = positions.reshape(-1, 1, T, 1) * self.frequencies  # (B or 1, 1, T, R/2)
        cosine, sine = self.factor * np.cos(angle), self.factor * np.sin(angle)
        R = 2 * len(self.frequencies)
        rotated = rotate(x[..., :R], cosine, sine, layout=self.layout)
        return np.concatenate((rotated, x[..., R:]), axis=-1)  # (B, H, T, Dh)


def pairs_to_halves(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """Reorder the rows of W_q or W_k of a model with "pairs" for one with "halves".

    `weight` is (H · Dh, ...): a matrix, its bias, or with one head a gain (Dh,). For
    W_k `num_heads` counts the key/value heads. Returns a copy of the same shape.
    """
    check_divisible(rows=weight.shape[0], **{"2 · num_heads": 2 * num_heads})
    by_pair = weight.reshape(num_heads, -1, 2, *weight.shape[1:])  # (H, Dh/2, 2, ...)
    return by_pair.swapaxes(1, 2).reshape(weight.shape)


def halves_to_pairs(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """Undo `pairs_to_halves`: row i of each head becomes row 2i again."""
    check_divisible(rows=weight.shape[0], **{"2 · num_heads": 2 * num_heads})
    by_half = weight.reshape(num_heads, 2, -1, *weight.shape[1:])  # (H, 2, Dh/2, ...)
    return by_half.swapaxes(1, 2).reshape(weight.shape)


def check_layout(layout: str) -> None:
    """Raise unless `layout` is one of the two."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout ({layout!r}) must be one of {', '.join(LAYOUTS)}")


def scale_linear(frequencies: np.ndarray, scale: float) -> np.ndarray:
    """Compute θᵢ / s, where sequences become s times as long as in training.

    Chen et al. 2023 (arXiv:2306.15595): position interpolation. Here and in what
    follows `frequencies` and what is returned are (Dh/2,), and `scale` is s.
    """
    _check(scale)
    return frequencies / scale


def scale_ntk(frequencies: np.ndarray, scale: float) -> np.ndarray:
    """Compute θᵢ / s^(i / (Dh/2 − 1)): the fastest pair stays, the slowest is θ / s.

    "NTK-aware" scaling; in Peng et al. 2023 (YaRN, arXiv:2309.00071), section 3.1, as
    the base b · s^(Dh / (Dh − 2)), which is the same. At least two frequencies.
    """
    _check(scale, frequencies)
    step = np.arange(len(frequencies)) / (len(frequencies) - 1)
    return frequencies / scale**step  # step: 0 for the fastest pair, 1 for the slowest


def scale_llama3(
    frequencies: np.ndarray,
    scale: float,
    *,
    trained_len: int,
    low: float = 1.0,
    high: float = 4.0,
) -> np.ndarray:
    """Divide by s the pairs that rotate at most `low` times in L tokens.

    Pair i rotates L θᵢ / 2π times. With `high` times or more it stays, and between the
    two it is mixed. As in Llama 3.1 (arXiv:2407.21783; `rope_type: llama3`), with
    L = `trained_len` = 8,192.
    """
    _check(scale, None, trained_len, low, high)
    times = trained_len * frequencies / (2 * math.pi)
    keep = np.clip((times - low) / (high - low), 0, 1)
    return frequencies * (keep + (1 - keep) / scale)


def scale_yarn(
    frequencies: np.ndarray,
    scale: float,
    *,
    trained_len: int,
    low: float = 1.0,
    high: float = 32.0,
    truncate: bool = True,
) -> np.ndarray:
    """Divide by s the pairs that rotate few times in L tokens, by a ramp over i.

    Peng et al. 2023 (arXiv:2309.00071), section 3.2, as their code has it: the ramp is
    linear in the number i of the pair, from the pair that rotates `high` times in
    L = `trained_len` tokens to the one that rotates `low` times; with `truncate` from
    and to whole numbers (gpt-oss: without). At least two frequencies.
    """
    _check(scale, frequencies, trained_len, low, high)

    def pair_with(times: float) -> float:  # L θᵢ = 2π · times, solved for i
        log_of_step = math.log(frequencies[1] / frequencies[0])
        wanted = 2 * math.pi * times / trained_len
        return math.log(wanted / frequencies[0]) / log_of_step

    first, last = pair_with(high), pair_with(low)
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * len(frequencies) - 1)
    if first == last:
        last += 0.001  # no division by zero
    pair = np.arange(len(frequencies))
    keep = 1 - np.clip((pair - first) / (last - first), 0, 1)
    return frequencies * (keep + (1 - keep) / scale)


def yarn_factor(scale: float, mscale: float = 1.0) -> float:
    """Compute 0.1 · mscale · ln s + 1, the `factor` of `RotaryEmbedding` in YaRN.

    Peng et al. 2023, section 3.4: it multiplies queries and keys, so twice the scores.
    """
    _check(scale)
    return 0.1 * mscale * math.log(scale) + 1


def _check(
    scale: float,
    frequencies: np.ndarray | None = None,
    trained_len: int = 1,
    low: float = 1,
    high: float = 2,
) -> None:
    if not 1 <= scale < math.inf:
        raise ValueError(f"scale ({scale}) must be at least 1 and finite")
    if frequencies is not None and len(frequencies) < 2:
        raise ValueError("frequencies must be at least 2: one alone has no slowest")
    if trained_len < 1:
        raise ValueError(f"trained_len ({trained_len}) must be at least 1")
    if not 0 < low < high:
        raise ValueError(f"high ({high}) must be above low ({low}), and low above 0")
