import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tformer
from tformer.nn.positions import sinusoidal_positions
from tformer.reference import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
    from_torch,
    sinusoidal_positional_encoding,
)

B, T, D = 2, 5, 14


def test_known_numbers():
    table = sinusoidal_positional_encoding(2, 512)
    assert table.shape == (2, 512)
    np.testing.assert_array_equal(table[0], [0.0, 1.0] * 256)
    known = [0.841471, 0.540302, 0.821856, 0.569695]
    np.testing.assert_allclose(table[1, :4], known, rtol=0, atol=5e-7)


def test_every_number_by_hand():
    table = sinusoidal_positional_encoding(7, D, start=3)
    for position in range(7):
        for pair in range(D // 2):
            angle = (position + 3) / 10000 ** (2 * pair / D)
            here = table[position, 2 * pair : 2 * pair + 2]
            np.testing.assert_allclose(here, [np.sin(angle), np.cos(angle)], rtol=1e-12)


@settings(max_examples=50, deadline=None)
@given(
    length=st.integers(1, 50), pairs=st.integers(1, 20), start=st.integers(0, 10_000)
)
def test_the_table_is_that_of_the_original(new_parity, length, pairs, start):
    table = sinusoidal_positional_encoding(length, 2 * pairs, start=start)
    expected = sinusoidal_positions(length, 2 * pairs, start=start)
    new_parity().same(table, expected, 1e-11)  # an ulp of position 10,000


@pytest.mark.parametrize("start", [0, 3])
def test_sinusoids_are_added(parity, start):
    array, tensor = parity.numbers(B, T, D)
    module = tformer.SinusoidalPositionalEncoding(D, max_len=2)
    expected = module(tensor, start=start)
    twin = from_torch(module)
    assert isinstance(twin, SinusoidalPositionalEncoding)
    # The module keeps its table in float32, whatever x is.
    parity.same(twin(array, start=start), expected, 5e-7)
    table = sinusoidal_positional_encoding(T, D, start=start)
    exact = torch.tensor(array + table.astype(array.dtype))
    parity.same(twin(array, start=start), exact, 0)
    parity.same(twin(array), module(tensor), 5e-7)


@pytest.mark.parametrize("start", [0, 3])
def test_learned_positions_are_added(parity, start):
    array, tensor = parity.numbers(B, T, D)
    module = parity.module(tformer.LearnedPositionalEmbedding(11, D))
    twin = from_torch(module)
    assert isinstance(twin, LearnedPositionalEmbedding)
    parity.same(twin(array, start=start), module(tensor, start=start))
    parity.same(twin(array), module(tensor))
    parity.same(twin(array, start=6), module(tensor, start=6))  # to the last one
    assert np.abs(twin(array, start=start) - array).min() > 0


@pytest.mark.parametrize(
    ("length", "d_model", "start", "kind", "message"),
    [
        (3, 5, 0, ValueError, "d_model (5) must be even"),
        (3, 4, -1, ValueError, "start (-1) must be at least 0"),
    ],
)
def test_bad_table(same_error, length, d_model, start, kind, message):
    same_error(
        lambda: sinusoidal_positional_encoding(length, d_model, start=start),
        lambda: sinusoidal_positions(length, d_model, start=start),
        kind,
        message,
    )


def test_odd_width(same_error):
    same_error(
        lambda: SinusoidalPositionalEncoding(7)(np.zeros((B, T, 7))),
        lambda: tformer.SinusoidalPositionalEncoding(7),
        ValueError,
        "d_model (7) must be even",
    )


@pytest.mark.parametrize(
    "module",
    [
        tformer.SinusoidalPositionalEncoding(D),
        tformer.LearnedPositionalEmbedding(11, D),
    ],
)
@pytest.mark.parametrize(
    ("shape", "start", "message"),
    [
        ((B, T, 13), 0, "x must be (batch, length, d_model = 14), not (2, 5, 13)"),
        ((T, D), 0, "x must be (batch, length, d_model = 14), not (5, 14)"),
        ((B, T, 1), 0, "x must be (batch, length, d_model = 14), not (2, 5, 1)"),
        ((B, T, D), -1, "start (-1) must be at least 0"),
    ],
)
def test_bad_input(same_error, module, shape, start, message):
    twin = from_torch(module)
    same_error(
        lambda: twin(np.zeros(shape), start=start),
        lambda: module(torch.zeros(shape), start=start),
        ValueError,
        message,
    )


def test_longer_than_what_was_learned(same_error):
    module = tformer.LearnedPositionalEmbedding(7, D)
    twin = from_torch(module)
    same_error(
        lambda: twin(np.zeros((B, T, D)), start=3),
        lambda: module(torch.zeros(B, T, D), start=3),
        ValueError,
        "x needs positions up to 8 but max_len is 7: x is (2, 5, 14), start is 3",
    )
