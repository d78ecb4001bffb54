import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tformer import (
    KeyValueCache,
    RotaryPositions,
    attention_weights,
    halves_to_pairs,
    pairs_to_halves,
    rotary_frequencies,
    scaled_dot_product_attention,
)
from tformer.nn.rotary import rotate

B, H, T, Dh, D = 2, 3, 5, 14, 11
LAYOUTS = ["pairs", "halves"]


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


def as_complex(x, start=0, base=10_000.0):
    """The other form of the same: a + ib times e^(i p θ), in the layout "pairs"."""
    position = torch.arange(start, start + x.shape[-2], dtype=torch.float64)
    theta = base ** (-torch.arange(x.shape[-1] // 2).double() * 2 / x.shape[-1])
    turn = torch.polar(torch.ones(1).double(), position[:, None] * theta)
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turn)


def hugging_face(x, start=0, base=10_000.0):
    """The formula of its Llama, written anew: x · cos + rotate_half(x) · sin."""
    inverse = 1.0 / base ** (torch.arange(0, x.shape[-1], 2).double() / x.shape[-1])
    angle = torch.outer(torch.arange(start, start + x.shape[-2]).double(), inverse)
    angle = torch.cat((angle, angle), dim=-1)
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * angle.cos() + turned * angle.sin()


class TestFrequencies:
    @given(half=st.integers(1, 40), base=st.floats(1.5, 1e7))
    def test_are_the_formula(self, half, base):
        theta = rotary_frequencies(2 * half, base=base)
        assert theta.shape == (half,)
        assert theta.dtype == torch.float64
        wanted = [base ** (-2 * i / (2 * half)) for i in range(half)]
        assert theta.tolist() == pytest.approx(wanted, rel=1e-12)

    def test_known_numbers(self):
        assert rotary_frequencies(4).tolist() == pytest.approx([1, 0.01])
        theta = rotary_frequencies(128, base=500_000.0)
        assert theta[-1].item() == pytest.approx(500_000 ** (-126 / 128))

    def test_errors(self, raises):
        with raises(ValueError, "head_dim (7) must be even: two numbers make a pair"):
            rotary_frequencies(7)
        with raises(ValueError, "head_dim (0) must be at least 1"):
            rotary_frequencies(0)
        with raises(ValueError, "base (1.0) must be above 1"):
            rotary_frequencies(4, base=1.0)


class TestForms:
    @pytest.mark.parametrize("start", [0, 1, 12_345])
    def test_pairs_are_complex_numbers(self, start):
        x = draw(B, H, T, Dh)
        turned = RotaryPositions(rotary_frequencies(Dh))(x, start=start)
        assert turned.shape == (B, H, T, Dh)
        wanted = as_complex(x, start).flatten(-2)
        assert_close(turned, wanted, atol=1e-11 if start > 9 else 1e-14, rtol=0)

    @pytest.mark.parametrize("start", [0, 7])
    @pytest.mark.parametrize("base", [10_000.0, 500_000.0])
    def test_halves_are_hugging_faces(self, start, base):
        x = draw(B, H, T, Dh)
        turn = RotaryPositions(rotary_frequencies(Dh, base=base), layout="halves")
        wanted = hugging_face(x, start, base)
        assert_close(turn(x, start=start), wanted, atol=1e-14, rtol=0)

    def test_a_quarter_of_a_turn(self):
        x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
        cosine, sine = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]])
        assert rotate(x, cosine, sine).tolist() == [[-2, 1, 3, 4]]
        assert rotate(x, cosine, sine, layout="halves").tolist() == [[-3, 2, 1, 4]]

    def test_the_first_position_stays(self):
        x = draw(B, H, 1, Dh)
        turn = RotaryPositions(rotary_frequencies(Dh))
        assert torch.equal(turn(x), x)
        assert not torch.allclose(turn(x, start=1), x)


@pytest.mark.parametrize("layout", LAYOUTS)
class TestWhatItIsFor:
    @given(
        seed=st.integers(0, 99), shift=st.integers(0, 5000), gap=st.integers(-40, 40)
    )
    def test_distance_alone_decides(self, layout, seed, shift, gap):
        torch.manual_seed(seed)
        query, key = draw(2, 1, 1, 1, Dh)
        turn = RotaryPositions(rotary_frequencies(Dh), layout=layout)

        def score(p, q):
            return (turn(query, start=p) * turn(key, start=q)).sum().item()

        here = score(40, 40 + gap)
        assert score(40 + shift, 40 + gap + shift) == pytest.approx(here, abs=1e-10)

    def test_another_distance_another_score(self, layout):
        query, key = draw(2, 1, 1, 1, Dh)
        turn = RotaryPositions(rotary_frequencies(Dh), layout=layout)
        scores = [(turn(query, start=p) * turn(key)).sum().item() for p in range(50)]
        assert len({round(score, 6) for score in scores}) == 50

    def test_keeps_lengths_and_multiplies_them_by_the_factor(self, layout):
        x = draw(B, H, T, Dh)
        for factor in (1.0, 1.25):
            turn = RotaryPositions(rotary_frequencies(Dh), factor=factor, layout=layout)
            assert_close(turn(x, start=9).norm(dim=-1), factor * x.norm(dim=-1))

    def test_gradient_is_turned_back(self, layout):
        x = draw(B, H, T, Dh).requires_grad_()
        turn = RotaryPositions(rotary_frequencies(Dh), layout=layout)
        gradient = draw(B, H, T, Dh)
        (got,) = torch.autograd.grad(turn(x, start=3), x, gradient)
        assert_close(turn(got, start=3), gradient, atol=1e-13, rtol=0)

    def test_cached_in_every_split(self, layout):
        """Keys are kept turned; each part starts where the cache ends."""
        q, k, v = draw(3, B, H, T, Dh)
        turn = RotaryPositions(rotary_frequencies(Dh), layout=layout)
        whole = scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True)
        for split in range(2 ** (T - 1)):
            cuts = [i for i in range(1, T) if split >> (i - 1) & 1]
            cache, outputs = KeyValueCache(T), []
            for low, high in zip([0, *cuts], [*cuts, T], strict=True):
                start, part = cache.length, slice(low, high)
                keys, values = cache.append(
                    turn(k[:, :, part], start=start), v[:, :, part]
                )
                query = turn(q[:, :, part], start=start)
                outputs.append(
                    scaled_dot_product_attention(query, keys, values, is_causal=True)
                )
            assert_close(torch.cat(outputs, dim=2), whole, atol=1e-13, rtol=0)


class TestLayouts:
    def test_are_two_things(self):
        x = draw(B, H, T, Dh)
        theta = rotary_frequencies(Dh)
        pairs, halves = (RotaryPositions(theta, layout=name)(x) for name in LAYOUTS)
        assert not torch.allclose(pairs[:, :, 1:], halves[:, :, 1:])
        assert torch.equal(pairs[:, :, 0], halves[:, :, 0])

    @pytest.mark.parametrize("num_kv_heads", [1, 3])
    def test_with_the_weights_reordered_the_scores_are_the_same(self, num_kv_heads):
        x, w_q, w_k = draw(B, T, D), draw(H * Dh, D), draw(num_kv_heads * Dh, D)
        theta = rotary_frequencies(Dh)

        def weights(w_q, w_k, layout):
            turn = RotaryPositions(theta, layout=layout)
            q, k = (
                (x @ w.T).unflatten(-1, (-1, Dh)).transpose(1, 2) for w in (w_q, w_k)
            )
            return attention_weights(turn(q), turn(k))

        wanted = weights(w_q, w_k, "pairs")
        moved = pairs_to_halves(w_q, H), pairs_to_halves(w_k, num_kv_heads)
        assert_close(weights(*moved, "halves"), wanted, atol=1e-13, rtol=0)
        assert not torch.allclose(weights(w_q, w_k, "halves"), wanted)

    @pytest.mark.parametrize("shape", [(), (D,), (D, 2)])
    def test_reordering_is_undone(self, shape):
        weight = draw(H * Dh, *shape)
        moved = pairs_to_halves(weight, H)
        assert moved.shape == weight.shape
        assert torch.equal(halves_to_pairs(moved, H), weight)
        assert torch.equal(pairs_to_halves(halves_to_pairs(weight, H), H), weight)
        assert moved.data_ptr() != weight.data_ptr()

    def test_where_each_row_goes(self):
        assert pairs_to_halves(torch.arange(12), 2).tolist() == [
            *(0, 2, 4, 1, 3, 5),
            *(6, 8, 10, 7, 9, 11),
        ]

    def test_errors(self, raises):
        for change in (pairs_to_halves, halves_to_pairs):
            message = "rows (12) must be divisible by 2 · num_heads (8)"
            with raises(ValueError, message):
                change(torch.zeros(12, 3), 4)


class TestPrecision:
    def test_far_positions_are_exact(self):
        """In float32 the angle itself would be off by 1/128 at position 100,000."""
        turn = RotaryPositions(rotary_frequencies(4))
        turned = turn(torch.tensor([[[[1.0, 0.0, 1.0, 0.0]]]]), start=100_000)
        wanted = [f(100_000 * s) for s in (1, 0.01) for f in (math.cos, math.sin)]
        assert turned.flatten().tolist() == pytest.approx(wanted, abs=1e-6)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_a_model_in_half_precision_turns_in_float32(self, dtype):
        turn = RotaryPositions(rotary_frequencies(Dh)).to(dtype)
        x = draw(B, H, T, Dh).to(dtype)
        turned = turn(x, start=3001)
        assert turned.dtype == dtype
        position = torch.arange(3001, 3001 + T).double()[:, None]
        angle = position * rotary_frequencies(Dh)
        exactly = rotate(x.double(), angle.cos(), angle.sin())
        step = torch.finfo(dtype).eps
        assert ((turned.double() - exactly).abs() <= step * exactly.abs() + 1e-6).all()

    def test_each_dtype_gets_its_own_table(self):
        turn = RotaryPositions(rotary_frequencies(Dh))
        x = draw(B, H, T, Dh)
        first = turn(x)
        assert turn(x.float()).dtype == torch.float32
        assert torch.equal(turn(x), first)

    def test_growing_changes_nothing(self):
        turn = RotaryPositions(rotary_frequencies(Dh))
        x = draw(B, H, 7 * T, Dh)
        parts = [turn(x[:, :, i : i + T], start=i) for i in range(0, 7 * T, T)]
        new = RotaryPositions(rotary_frequencies(Dh))
        whole = new(x)
        tables = [each.table(7 * T, x)[:, : 7 * T] for each in (turn, new)]
        assert torch.equal(*tables)
        assert_close(torch.cat(parts, dim=2), whole, atol=1e-14, rtol=0)

    def test_growing_doubles_the_table(self):
        turn = RotaryPositions(rotary_frequencies(Dh))
        like = draw(1)
        assert turn.table(5, like).shape == (2, 5, Dh // 2)
        assert turn.table(6, like).shape == (2, 10, Dh // 2)
        assert turn.table(3, like).shape == (2, 10, Dh // 2)


class TestModule:
    def test_has_no_weights(self):
        turn = RotaryPositions(rotary_frequencies(Dh))
        turn(draw(B, H, T, Dh))
        assert not list(turn.parameters())
        assert not turn.state_dict()

    def test_made_on_the_meta_device(self):
        with torch.device("meta"):
            turn = RotaryPositions(rotary_frequencies(Dh))
        turn = turn.to_empty(device="cpu")
        x = draw(B, H, T, Dh)
        assert torch.equal(turn(x), RotaryPositions(rotary_frequencies(Dh))(x))

    def test_copies(self):
        turn = RotaryPositions(rotary_frequencies(Dh), factor=1.5, layout="halves")
        x = draw(B, H, T, Dh)
        assert torch.equal(copy.deepcopy(turn)(x), turn(x))
        assert repr(turn) == (
            "RotaryPositions(head_dim=14, factor=1.5, layout='halves')"
        )

    def test_errors(self, raises):
        theta = rotary_frequencies(Dh)
        turn = RotaryPositions(theta)
        with raises(ValueError, "frequencies must be (head_dim / 2,), not (2, 7)"):
            RotaryPositions(theta.expand(2, 7))
        with raises(ValueError, "frequencies must be (head_dim / 2,), not (0,)"):
            RotaryPositions(theta[:0])
        with raises(ValueError, "factor (0) must be above 0"):
            RotaryPositions(theta, factor=0)
        message = "layout ('half') must be one of pairs, halves"
        with raises(ValueError, message):
            RotaryPositions(theta, layout="half")
        with raises(ValueError, message):
            rotate(
                torch.zeros(1, 2), torch.zeros(1, 1), torch.zeros(1, 1), layout="half"
            )
        shape = "x must be (batch, heads, length, head_dim = 14), not "
        with raises(ValueError, shape + "(2, 3, 5, 12)"):
            turn(torch.zeros(B, H, T, 12))
        with raises(ValueError, shape + "(3, 5, 14)"):
            turn(torch.zeros(H, T, Dh))
        with raises(ValueError, "start (-1) must be at least 0"):
            turn(torch.zeros(B, H, T, Dh), start=-1)
