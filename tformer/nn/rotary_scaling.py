"""Rotary positions for longer texts: each function makes frequencies of frequencies.

The model was trained on texts of L tokens and shall read s · L.
"""

import math

import torch
from torch import Tensor


def scale_linear(frequencies: Tensor, scale: float) -> Tensor:
    """Compute θᵢ / s: every pair turns s times as slowly, positions move together.

    Chen et al. 2023 (arXiv:2306.15595): position interpolation. Of frequencies (Dh/2,)
    it makes (Dh/2,), as all four do; s is at least 1.
    """
    _check(scale)
    return frequencies / scale


def scale_ntk(frequencies: Tensor, scale: float) -> Tensor:
    """Compute θᵢ / s^(i / (Dh/2 − 1)): the fastest pair stays, the slowest is θ / s.

    "NTK-aware" scaling, first in a post by bloc97; in Peng et al. 2023 (YaRN,
    arXiv:2309.00071), section 3.1, as the base b · s^(Dh / (Dh − 2)), which is the
    same. There must be two frequencies at least.
    """
    _check(scale)
    step = _numbers(frequencies) / (len(frequencies) - 1)
    return frequencies / scale**step  # step: 0 for the fastest pair, 1 for the slowest


def scale_llama3(
    frequencies: Tensor,
    scale: float,
    *,
    trained_len: int,
    low: float = 1.0,
    high: float = 4.0,
) -> Tensor:
    """Slow down the pairs with few turns in L tokens, and keep those with many.

    A pair turns L θᵢ / 2π times. With `low` turns or fewer it becomes θᵢ / s, with
    `high` or more it stays, and between the two it is mixed. As Llama 3.1 has it
    (arXiv:2407.21783; `rope_type: llama3`).

    Args:
        frequencies: (Dh/2,).
        scale: s, at least 1. 8 in Llama 3.1, 32 in the small models of 3.2.
        trained_len: L, 8,192 in Llama 3: `original_max_position_embeddings`.
        low: turns, `low_freq_factor`.
        high: turns, above `low`, `high_freq_factor`.
    """
    _check(scale, trained_len, low, high)
    turns = trained_len * frequencies / (2 * math.pi)
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (keep + (1 - keep) / scale)


def scale_yarn(
    frequencies: Tensor,
    scale: float,
    *,
    trained_len: int,
    low: float = 1.0,
    high: float = 32.0,
    truncate: bool = True,
) -> Tensor:
    """Keep the pairs with many turns in L tokens, slow down the others, by a ramp.

    Peng et al. 2023 (arXiv:2309.00071), section 3.2, as their code has it: the ramp is
    straight over the number i of the pair; in the paper it is straight over its turns,
    as in `scale_llama3`. Goes with `yarn_factor`.

    Args:
        frequencies: (Dh/2,), of `rotary_frequencies`, two at least.
        scale: s, at least 1.
        trained_len: L, `original_max_position_embeddings`.
        low: turns in L at which the ramp ends: `beta_slow`.
        high: turns in L up to which a pair stays as it is: `beta_fast`.
        truncate: begin and end the ramp at whole numbers of i; gpt-oss does not.
    """
    _check(scale, trained_len, low, high)
    pair = _numbers(frequencies)

    def pair_with(turns: float) -> float:  # L θᵢ = 2π · turns, solved for i
        log_of_step = math.log(frequencies[1].item() / frequencies[0].item())
        wanted = 2 * math.pi * turns / trained_len
        return math.log(wanted / frequencies[0].item()) / log_of_step

    first, last = pair_with(high), pair_with(low)
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * len(frequencies) - 1)
    if first == last:
        last += 0.001  # no division by zero
    keep = 1 - ((pair - first) / (last - first)).clamp(0, 1)
    return frequencies * (keep + (1 - keep) / scale)


def yarn_factor(scale: float, mscale: float = 1.0) -> float:
    """Compute 0.1 · mscale · ln s + 1, by which YaRN multiplies queries and keys.

    Peng et al. 2023, section 3.4. Both are multiplied, so the scores get its square,
    and the weights become sharper; the number was found by trying. It is the `factor`
    of `RotaryEmbedding`. DeepSeek-V2 divides yarn_factor(s, mscale) by
    yarn_factor(s, mscale_all_dim), and multiplies the scores by the square of the
    latter.
    """
    _check(scale)
    return 0.1 * mscale * math.log(scale) + 1


def _numbers(frequencies: Tensor) -> Tensor:
    """Count 0, 1, 2, … where the frequencies are: also where torch's device is meta."""
    if len(frequencies) < 2:
        raise ValueError("frequencies must be at least 2: one alone has no slowest")
    return torch.arange(len(frequencies), device=frequencies.device).to(frequencies)


def _check(
    scale: float, trained_len: int = 1, low: float = 1.0, high: float = 2.0
) -> None:
    if not 1 <= scale < math.inf:
        raise ValueError(f"scale ({scale}) must be at least 1 and finite")
    if trained_len < 1:
        raise ValueError(f"trained_len ({trained_len}) must be at least 1")
    if not 0 < low < high:
        raise ValueError(f"high ({high}) must be above low ({low}), and low above 0")
