"""Rotary positions, what is alike in torch and NumPy: longer texts, layouts of weights.

An array is of either kind. A model was trained on texts of L tokens and shall read
s · L: each `scale_…` makes frequencies (Dh/2,) of frequencies (Dh/2,).
"""

import math

from tformer.checks import (
    Array,
    check_at_least_0,
    check_divisible,
    check_one_of,
    check_positive,
)

LAYOUTS = ("pairs", "halves")


def scale_linear(frequencies: Array, scale: float) -> Array:
    """Compute θᵢ / s: every pair turns s times as slowly, positions move together.

    Chen et al. 2023 (arXiv:2306.15595): position interpolation. s is at least 1.
    """
    check_scaling(scale)
    return frequencies / scale


def scale_ntk(frequencies: Array, scale: float) -> Array:
    """Compute θᵢ / s^(i / (Dh/2 − 1)): the fastest pair stays, the slowest is θ / s.

    "NTK-aware" scaling, first in a post by bloc97; in Peng et al. 2023 (YaRN,
    arXiv:2309.00071), section 3.1, as the base b · s^(Dh / (Dh − 2)), which is the
    same. There must be two frequencies at least.
    """
    check_scaling(scale)
    step = pair_numbers(frequencies) / (len(frequencies) - 1)
    return frequencies / scale**step  # step: 0 for the fastest pair, 1 for the slowest


def scale_llama3(
    frequencies: Array,
    scale: float,
    *,
    trained_len: int,
    low: float = 1.0,
    high: float = 4.0,
) -> Array:
    """Slow down the pairs with few turns in L tokens, and keep those with many.

    A pair turns L θᵢ / 2π times. With `low` turns or fewer it becomes θᵢ / s, with
    `high` or more it stays, and between the two it is mixed. As Llama 3.1 has it
    (arXiv:2407.21783; `rope_type: llama3`): s is 8, in the small models of 3.2 32, and
    `trained_len` is L, 8,192: `original_max_position_embeddings`. `low` and `high` are
    its `low_freq_factor` and `high_freq_factor`.
    """
    check_scaling(scale, trained_len, low, high)
    turns = trained_len * frequencies / (2 * math.pi)
    keep = ((turns - low) / (high - low)).clip(0, 1)
    return frequencies * (keep + (1 - keep) / scale)


def scale_yarn(
    frequencies: Array,
    scale: float,
    *,
    trained_len: int,
    low: float = 1.0,
    high: float = 32.0,
    truncate: bool = True,
) -> Array:
    """Keep the pairs with many turns in L tokens, slow down the others, by a ramp.

    Peng et al. 2023 (arXiv:2309.00071), section 3.2, as their code has it: the ramp is
    straight over the number i of the pair; in the paper it is straight over its turns,
    as in `scale_llama3`. Goes with `yarn_factor`. From `high` turns on (`beta_fast`) a
    pair stays as it is, at `low` turns (`beta_slow`) the ramp ends; with `truncate`
    both at whole numbers of i, as gpt-oss has not. There must be two frequencies.
    """
    check_scaling(scale, trained_len, low, high)
    pair = pair_numbers(frequencies)
    fastest, second = float(frequencies[0]), float(frequencies[1])

    def pair_with(turns: float) -> float:  # L θᵢ = 2π · turns, solved for i
        wanted = 2 * math.pi * turns / trained_len
        return math.log(wanted / fastest) / math.log(second / fastest)

    first, last = pair_with(high), pair_with(low)
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * len(frequencies) - 1)
    if first == last:
        last += 0.001  # no division by zero
    keep = 1 - ((pair - first) / (last - first)).clip(0, 1)
    return frequencies * (keep + (1 - keep) / scale)


def keep_fastest(frequencies: Array, part: float) -> Array:
    """Keep the first r · Dh/2 frequencies, and let the other pairs stand still: θ = 0.

    Barbero et al. 2024 (arXiv:2410.06205), section 6, as p-RoPE; the layers of Gemma 4
    that see all tokens have r = 1/4 (`rope_type: proportional`). The slowest pairs then
    compare content alone, at any distance. Where a part of a head is rotated instead,
    it gets all frequencies from 1 to nearly 1 / base; here it keeps the fast ones.

    Args:
        frequencies: (Dh/2,), the fastest first.
        part: r, above 0 and at most 1, of which the whole pairs count.
    """
    kept = int(part * len(frequencies)) if 0 < part <= 1 else 0
    if not kept:
        rule = f"must be at most 1 and keep one of {len(frequencies)} frequencies"
        raise ValueError(f"part ({part}) {rule}")
    return frequencies * (pair_numbers(frequencies) < kept)


def yarn_factor(scale: float, mscale: float = 1.0) -> float:
    """Compute 0.1 · mscale · ln s + 1, by which YaRN multiplies queries and keys.

    Peng et al. 2023, section 3.4. Both are multiplied, so the scores get its square,
    and the weights become sharper; the number was found by trying. It is the `factor`
    of `RotaryEmbedding`. DeepSeek-V2 divides yarn_factor(s, mscale) by
    yarn_factor(s, mscale_all_dim), and multiplies the scores by the square of the
    latter.
    """
    check_scaling(scale)
    return 0.1 * mscale * math.log(scale) + 1


def longrope_factor(scale: float, trained_len: int) -> float:
    """Compute √(1 + ln s / ln L): what LongRoPE multiplies queries and keys by.

    Ding et al. 2024 (arXiv:2402.13753), as Phi-3's code has it. It is the `factor` of
    `RotaryEmbedding`; 1 where s is at most 1.
    """
    if trained_len < 2:
        raise ValueError(f"trained_len ({trained_len}) must be at least 2")
    return math.sqrt(1 + max(0.0, math.log(scale)) / math.log(trained_len))


def pairs_to_halves(weight: Array, num_heads: int) -> Array:
    """Reorder the rows of W_q or W_k of a model with "pairs" for one with "halves".

    Row 2i of each head becomes row i, and row 2i + 1 becomes row i + Dh/2.

    Args:
        weight: (H · Dh, ...): a matrix, its bias, or with one head a gain (Dh,).
        num_heads: how many heads lie in it: for W_k the key/value heads.
    """
    check_divisible(rows=weight.shape[0], **{"2 · num_heads": 2 * num_heads})
    by_pair = weight.reshape(num_heads, -1, 2, *weight.shape[1:])  # (H, Dh/2, 2, ...)
    return by_pair.swapaxes(1, 2).reshape(weight.shape)


def halves_to_pairs(weight: Array, num_heads: int) -> Array:
    """Undo `pairs_to_halves`: row i of each head becomes row 2i again."""
    check_divisible(rows=weight.shape[0], **{"2 · num_heads": 2 * num_heads})
    by_half = weight.reshape(num_heads, 2, -1, *weight.shape[1:])  # (H, 2, Dh/2, ...)
    return by_half.swapaxes(1, 2).reshape(weight.shape)


def pair_numbers(frequencies: Array) -> Array:
    """Count the pairs, 0, 1, 2, …, in their dtype and where they are."""
    if len(frequencies) < 2:
        raise ValueError("frequencies must be at least 2: one alone has no slowest")
    return (0 * frequencies + 1).cumsum(0) - 1


def check_scaling(
    scale: float, trained_len: int = 1, low: float = 1, high: float = 2
) -> None:
    """Raise unless it stretches positions, and a ramp has two ends."""
    if not 1 <= scale < math.inf:
        raise ValueError(f"scale ({scale}) must be at least 1 and finite")
    if trained_len < 1:
        raise ValueError(f"trained_len ({trained_len}) must be at least 1")
    if not 0 < low < high:
        raise ValueError(f"high ({high}) must be above low ({low}), and low above 0")


def check_pairs(head_dim: int, base: float) -> None:
    """Raise unless there are frequencies of these: two numbers make a pair."""
    check_positive(head_dim=head_dim)
    if head_dim % 2:
        raise ValueError(f"head_dim ({head_dim}) must be even: two numbers make a pair")
    if not base > 1:
        raise ValueError(f"base ({base}) must be above 1")


def check_layout(layout: str) -> None:
    """Raise unless it is one of the two."""
    check_one_of("layout", layout, LAYOUTS)


def check_frequencies(frequencies: Array, head_dim: int) -> None:
    """Raise unless frequencies are (R/2,), and R at most Dh."""
    if frequencies.ndim != 1 or len(frequencies) == 0:
        shape = tuple(frequencies.shape)
        raise ValueError(f"frequencies must be (head_dim / 2,), not {shape}")
    if 2 * len(frequencies) > head_dim:
        rule = f"must be at most half of head_dim ({head_dim})"
        raise ValueError(f"frequencies ({len(frequencies)}) {rule}")


def check_rotated(
    x: Array, head_dim: int | None, start: int, positions: Array | None
) -> None:
    """Raise unless x is (B, H, T, Dh), and `positions`, if given, (T,) or (B, T)."""
    if x.ndim != 4 or x.shape[-1] != head_dim:
        wanted = f"(batch, heads, length, head_dim = {head_dim})"
        raise ValueError(f"x must be {wanted}, not {tuple(x.shape)}")
    check_at_least_0(start=start)
    B, _, T, _ = x.shape
    if positions is not None and (start or positions.shape not in ((T,), (B, T))):
        rule = f"must be ({T},) or ({B}, {T}), and start 0"
        given = f"{tuple(positions.shape)} and {start}"
        raise ValueError(f"positions {rule}, not {given}")
