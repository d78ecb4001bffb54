import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tformer import LearnedPositionalEmbedding, SinusoidalPositionalEncoding
from tformer.nn.positions import sinusoidal_positions

B, T, D = 2, 5, 14


def by_the_formula(position, column, d_model):
    wave = math.sin if column % 2 == 0 else math.cos
    return wave(position / 10000 ** (2 * (column // 2) / d_model))


@given(length=st.integers(1, 7), half=st.integers(1, 7), start=st.integers(0, 10**6))
def test_sinusoids_are_the_formula(length, half, start):
    table = sinusoidal_positions(length, 2 * half, start=start)
    assert table.shape == (length, 2 * half)
    assert table.dtype == torch.float64
    for p in range(length):
        for column in range(2 * half):
            wanted = by_the_formula(start + p, column, 2 * half)
            assert table[p, column].item() == pytest.approx(wanted, abs=1e-8)


def test_known_numbers():
    """Position 1, width 512, from the Annotated Transformer and elsewhere."""
    first = sinusoidal_positions(2, 512)[1, :4]
    wanted = [0.841471, 0.540302, 0.821856, 0.569695]
    assert first.tolist() == pytest.approx(wanted, abs=5e-7)
    assert sinusoidal_positions(1, 4).tolist() == [[0, 1, 0, 1]]


def test_distance_alone_decides_the_product_of_two_positions():
    table = sinusoidal_positions(50, D)
    products = table @ table.T
    for distance in (1, 7, 30):
        diagonal = products.diagonal(distance)
        assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    assert (products.diagonal(1) < D / 2 - 0.1).all()


def test_device_of_the_table():
    assert sinusoidal_positions(3, 4, device="meta").is_meta


class TestSinusoidalPositionalEncoding:
    @pytest.mark.parametrize("max_len", [1, T, 3 * T])
    @pytest.mark.parametrize("start", [0, 11])
    def test_adds_the_sinusoids(self, max_len, start):
        x = torch.randn(B, T, D)
        positions = SinusoidalPositionalEncoding(D, max_len=max_len)
        output = positions(x, start=start)
        assert output.shape == (B, T, D)
        wanted = x + sinusoidal_positions(T, D, start=start).float()
        assert_close(output, wanted, atol=1e-6, rtol=0)

    @pytest.mark.parametrize(
        "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16]
    )
    def test_growing_changes_nothing(self, dtype):
        positions = SinusoidalPositionalEncoding(D, max_len=T).to(dtype)
        x = torch.randn(B, T, D).to(dtype)
        before = positions(x)
        assert before.dtype == dtype
        longer = positions(torch.randn(B, 9 * T, D).to(dtype))
        assert longer.shape == (B, 9 * T, D)
        assert len(positions.table) >= 9 * T
        assert torch.equal(positions(x), before)

    def test_growing_doubles_the_table(self):
        """So that a sequence that grows by one each time does not make it each time."""
        positions = SinusoidalPositionalEncoding(D, max_len=T)
        positions(torch.randn(B, T, D))
        assert len(positions.table) == T
        positions(torch.randn(B, T + 1, D))
        assert len(positions.table) == 2 * T

    def test_another_thread_may_grow_the_table_less(self):
        class Shared(SinusoidalPositionalEncoding):
            def __setattr__(self, name, value):
                shorter = name == "table" and len(value) > 2 * T
                super().__setattr__(name, value[: T + 1] if shorter else value)

        x = torch.randn(B, 3 * T, D)
        wanted = SinusoidalPositionalEncoding(D)(x)
        assert torch.equal(Shared(D, max_len=T)(x), wanted)

    def test_far_positions_are_exact(self):
        """In float32 the angle itself would be off by 1/128 at position 100,000."""
        positions = SinusoidalPositionalEncoding(4, max_len=1)
        output = positions(torch.zeros(1, 1, 4), start=100_000)
        wanted = [by_the_formula(100_000, column, 4) for column in range(4)]
        assert output.flatten().tolist() == pytest.approx(wanted, abs=1e-6)

    def test_has_no_weights(self):
        positions = SinusoidalPositionalEncoding(D)
        assert not list(positions.parameters())
        assert not positions.state_dict()

    def test_half_precision_input_keeps_its_dtype(self):
        x = torch.randn(B, T, D).bfloat16()
        assert SinusoidalPositionalEncoding(D)(x).dtype == torch.bfloat16

    def test_from_the_meta_device(self):
        with torch.device("meta"):
            positions = SinusoidalPositionalEncoding(D, max_len=7)
        positions = positions.to_empty(device="cpu")
        torch.nn.init.constant_(positions.table, 7.0)
        positions.reset_parameters()
        x = torch.randn(B, T, D)
        assert torch.equal(positions(x), SinusoidalPositionalEncoding(D)(x))

    @pytest.mark.parametrize("d_model", [1, 5, 511])
    def test_odd_width(self, raises, d_model):
        message = f"d_model ({d_model}) must be even: a cosine for each sine"
        with raises(ValueError, message):
            SinusoidalPositionalEncoding(d_model)
        with raises(ValueError, message):
            sinusoidal_positions(3, d_model)

    def test_sizes(self, raises):
        with raises(ValueError, "d_model (0) must be at least 1"):
            SinusoidalPositionalEncoding(0)
        with raises(ValueError, "max_len (0) must be at least 1"):
            SinusoidalPositionalEncoding(4, max_len=0)
        with raises(ValueError, "length (0) must be at least 1"):
            sinusoidal_positions(0, 4)
        with raises(ValueError, "start (-1) must be at least 0"):
            sinusoidal_positions(3, 4, start=-1)


class TestLearnedPositionalEmbedding:
    @pytest.mark.parametrize("start", [0, 2])
    def test_adds_its_rows(self, start):
        x = torch.randn(B, T, D, requires_grad=True)
        positions = LearnedPositionalEmbedding(T + 2, D)
        output = positions(x, start=start)
        assert output.shape == (B, T, D)
        assert_close(output, x + positions.weight[start : start + T])
        output.sum().backward()
        rows = torch.zeros(T + 2)
        rows[start : start + T] = B
        assert torch.equal(positions.weight.grad, rows[:, None].expand(-1, D))
        assert torch.equal(x.grad, torch.ones_like(x))

    def test_first_weights_are_small(self):
        weight = LearnedPositionalEmbedding(101, 64).weight
        assert weight.std().item() == pytest.approx(0.02, rel=0.05)
        assert abs(weight.mean().item()) < 1e-3

    def test_copies(self):
        positions = LearnedPositionalEmbedding(T, D)
        x = torch.randn(B, T, D)
        other = LearnedPositionalEmbedding(T, D)
        assert not torch.equal(other(x), positions(x))
        other.load_state_dict(positions.state_dict())
        assert torch.equal(other(x), positions(x))
        assert torch.equal(copy.deepcopy(positions)(x), positions(x))

    def test_a_sequence_longer_than_the_table(self, raises):
        positions = LearnedPositionalEmbedding(6, D)
        message = (
            "x needs positions up to 7 but max_len is 6: x is (2, 5, 14), start is 2"
        )
        with raises(ValueError, message):
            positions(torch.randn(B, T, D), start=2)

    def test_sizes(self, raises):
        with raises(ValueError, "max_len (0) must be at least 1"):
            LearnedPositionalEmbedding(0, 4)
        with raises(ValueError, "d_model (-2) must be at least 1"):
            LearnedPositionalEmbedding(4, -2)


@pytest.mark.parametrize(
    "positions", [SinusoidalPositionalEncoding(D), LearnedPositionalEmbedding(11, D)]
)
class TestBoth:
    def test_the_first_position_is_the_first(self, positions):
        x = torch.randn(B, T, D)
        assert torch.equal(positions(x), positions(x, start=0))
        assert not torch.allclose(positions(x), positions(x, start=1))
        later = positions(torch.cat([x, x], dim=1))[:, T:]
        assert torch.equal(positions(x, start=T), later)

    @pytest.mark.parametrize("shape", [(T, D), (B, T, 12), (1, B, T, D)])
    def test_shape(self, raises, positions, shape):
        message = f"x must be (batch, length, d_model = 14), not {shape}"
        with raises(ValueError, message):
            positions(torch.randn(shape))

    def test_empty_sequence(self, raises, positions):
        with raises(ValueError, "x is an empty sequence: its shape is (2, 0, 14)"):
            positions(torch.randn(B, 0, D))

    def test_start(self, raises, positions):
        with raises(ValueError, "start (-3) must be at least 0"):
            positions(torch.randn(B, T, D), start=-3)
