"""Positions beyond their specs (`tformer.check`): the table, its end, bad input."""

import math

import pytest
import torch

from tformer import LearnedPositionalEmbedding, SinusoidalPositionalEncoding
from tformer.nn.positions import sinusoidal_positions

B, T, D = 2, 5, 14
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
BOTH = pytest.mark.parametrize(
    "make",
    [lambda: SinusoidalPositionalEncoding(D), lambda: LearnedPositionalEmbedding(9, D)],
    ids=["sinusoidal", "learned"],
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("start", [0, 11])
def test_the_table_grows_and_changes_nothing(dtype, start):
    positions = SinusoidalPositionalEncoding(D, max_len=T)
    for length in (T, 9 * T, T):
        x = torch.randn(B, length, D).to(dtype)
        rows = sinusoidal_positions(start + length, D)[start:].to(dtype)
        output = positions(x, start=start)
        assert output.dtype == dtype
        assert torch.equal(output, x + rows)


def test_a_text_that_grows_by_one_token_does_not_make_the_table_each_time():
    positions, tables = SinusoidalPositionalEncoding(D, max_len=T), set()
    for length in range(1, 4 * T):
        positions(torch.randn(1, 1, D), start=length)
        tables.add(id(positions._table))
    assert len(tables) <= 3


def test_another_thread_may_grow_the_table_less():
    class Shared(SinusoidalPositionalEncoding):
        def __setattr__(self, name, value):
            super().__setattr__(name, value[:T] if name == "_table" else value)

    x = torch.randn(B, 3 * T, D)
    assert torch.equal(Shared(D)(x), SinusoidalPositionalEncoding(D)(x))


def test_far_positions_are_exact():
    """In float32 the angle itself would be off by 1/128 at position 100,000."""
    output = SinusoidalPositionalEncoding(2)(torch.zeros(1, 1, 2), start=100_000)
    wanted = [math.sin(100_000), math.cos(100_000)]
    assert output.flatten().tolist() == pytest.approx(wanted, abs=1e-6)


def test_sinusoids_have_no_weights_and_no_place():
    """From the meta device, and in bfloat16, they are as they were."""
    with torch.device("meta"):
        positions = SinusoidalPositionalEncoding(D)
    assert not positions.state_dict()
    x = torch.randn(B, T, D)
    moved = positions.to_empty(device="cpu").bfloat16()
    assert torch.equal(moved(x), SinusoidalPositionalEncoding(D)(x))


def test_learned_vectors_begin_small_and_learn_where_they_are_used():
    positions = LearnedPositionalEmbedding(101, 64)
    assert positions.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert abs(positions.weight.mean().item()) < 1e-3
    positions(torch.randn(B, T, 64), start=2).sum().backward()
    assert positions.weight.grad[:, 0].tolist() == 2 * [0] + T * [B] + 94 * [0]


def test_learned_vectors_end(raises):
    message = "x needs positions up to 10 but max_len is 9: x is (2, 5, 14), start is 5"
    with raises(ValueError, message):
        LearnedPositionalEmbedding(9, D)(torch.randn(B, T, D), start=5)


@BOTH
@pytest.mark.parametrize("shape", [(T, D), (B, T, 12), (1, B, T, D)])
def test_shape(raises, make, shape):
    message = f"x must be (batch, length, d_model = 14), not {shape}"
    with raises(ValueError, message):
        make()(torch.randn(shape))


@BOTH
def test_empty_sequence_and_start(raises, make):
    with raises(ValueError, "x is an empty sequence: its shape is (2, 0, 14)"):
        make()(torch.randn(B, 0, D))
    with raises(ValueError, "start (-3) must be at least 0"):
        make()(torch.randn(B, T, D), start=-3)


def test_sizes(raises):
    odd = "d_model (5) must be even: a cosine for each sine"
    for make, message in (
        (lambda: SinusoidalPositionalEncoding(5), odd),
        (lambda: sinusoidal_positions(3, 5), odd),
        (lambda: sinusoidal_positions(0, 4), "length (0) must be at least 1"),
        (lambda: SinusoidalPositionalEncoding(0), "d_model (0) must be at least 1"),
        (
            lambda: SinusoidalPositionalEncoding(4, max_len=0),
            "max_len (0) must be at least 1",
        ),
        (lambda: LearnedPositionalEmbedding(0, 4), "max_len (0) must be at least 1"),
        (lambda: LearnedPositionalEmbedding(4, -2), "d_model (-2) must be at least 1"),
    ):
        with raises(ValueError, message):
            make()


def test_the_table_does_not_grow_where_dtypes_take_turns():
    positions = SinusoidalPositionalEncoding(D, max_len=T - 1)
    for _ in range(5):
        for dtype in (torch.float32, torch.float64):
            positions(torch.zeros(1, T, D, dtype=dtype))
            assert len(positions._table) == 2 * T
