import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tformer.nn import (
    rotary_frequencies,
    scale_linear,
    scale_llama3,
    scale_ntk,
    scale_yarn,
    yarn_factor,
)

drawn = given(
    half=st.integers(2, 64),
    base=st.sampled_from([10_000.0, 150_000.0, 500_000.0]),
    scale=st.floats(1, 64),
    trained_len=st.sampled_from([64, 2048, 8192]),
)


def llama3_as_released(theta, s, low, high, L):
    """Three cases, as in the code that came with Llama 3.1, written anew."""
    new = []
    for frequency in theta.tolist():
        wavelength = 2 * math.pi / frequency
        if wavelength < L / high:
            new.append(frequency)
        elif wavelength > L / low:
            new.append(frequency / s)
        else:
            smooth = (L / wavelength - low) / (high - low)
            new.append((1 - smooth) * frequency / s + smooth * frequency)
    return torch.tensor(new, dtype=torch.float64)


def yarn_as_released(d, base, s, L, beta_fast, beta_slow, truncate):
    """As in Hugging Face's modeling_rope_utils, written anew: from base and d."""

    def dim_of(turns):
        return d * math.log(L / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = dim_of(beta_fast), dim_of(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    if low == high:
        high += 0.001
    power = base ** (torch.arange(0, d, 2).double() / d)
    ramp = ((torch.arange(d // 2).double() - low) / (high - low)).clamp(0, 1)
    return 1 / (s * power) * ramp + 1 / power * (1 - ramp)


@drawn
def test_ntk_is_another_base(half, base, scale, trained_len):
    d = 2 * half
    if d == 2:
        return
    wanted = rotary_frequencies(d, base=base * scale ** (d / (d - 2)))
    assert_close(scale_ntk(rotary_frequencies(d, base=base), scale), wanted)


@drawn
def test_llama3_is_what_was_released(half, base, scale, trained_len):
    theta = rotary_frequencies(2 * half, base=base)
    wanted = llama3_as_released(theta, scale, 1.0, 4.0, trained_len)
    assert_close(scale_llama3(theta, scale, trained_len=trained_len), wanted)
    wanted = llama3_as_released(theta, scale, 2.0, 7.0, trained_len)
    got = scale_llama3(theta, scale, trained_len=trained_len, low=2.0, high=7.0)
    assert_close(got, wanted)


@drawn
@pytest.mark.parametrize("truncate", [True, False])
def test_yarn_is_what_was_released(truncate, half, base, scale, trained_len):
    theta = rotary_frequencies(2 * half, base=base)
    for fast, slow in ((32.0, 1.0), (16.0, 3.0)):
        options = {"trained_len": trained_len, "truncate": truncate}
        got = scale_yarn(theta, scale, low=slow, high=fast, **options)
        wanted = yarn_as_released(
            2 * half, base, scale, trained_len, fast, slow, truncate
        )
        # Where the ramp begins is a logarithm: a whole number may come out on
        # either side of itself, so a width at which it does is left to the next test.
        if truncate and not torch.allclose(got, wanted, atol=0, rtol=1e-9):
            turns = [math.log(2 * math.pi * t / trained_len) for t in (fast, slow)]
            index = [-turn / math.log(base) * half for turn in turns]
            assert any(abs(i - round(i)) < 1e-9 for i in index)
        else:
            assert_close(got, wanted, atol=0, rtol=1e-9)


def test_known_numbers():
    theta = rotary_frequencies(4)
    assert scale_linear(theta, 4).tolist() == pytest.approx([0.25, 0.0025])
    assert scale_ntk(theta, 4).tolist() == pytest.approx([1, 0.0025])
    # Turns in 60 tokens: 60 / 2π = 9.5, above 4, and 0.095, below 1.
    got = scale_llama3(theta, 4, trained_len=60)
    assert got.tolist() == pytest.approx([1, 0.0025])
    assert yarn_factor(40) == pytest.approx(1.3688879)
    assert yarn_factor(40, 0.707) == pytest.approx(1.2608038)
    assert yarn_factor(1) == 1
