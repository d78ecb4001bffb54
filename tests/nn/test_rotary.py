import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tformer import RotaryEmbedding, attention_weights
from tformer.nn import halves_to_pairs, pairs_to_halves, rotary_frequencies, rotate

B, H, T, Dh, D = 2, 3, 5, 14, 11
LAYOUTS = ["pairs", "halves"]
sizes = st.integers(1, 5)


def make(width=Dh, **options):
    return RotaryEmbedding(rotary_frequencies(width), **options)


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


def formula(x, cosine, sine, layout):
    """Equation 34, number by number."""
    half, y = x.shape[-1] // 2, torch.empty_like(x)
    for i in range(half):
        j, k = (2 * i, 2 * i + 1) if layout == "pairs" else (i, i + half)
        y[..., j] = x[..., j] * cosine[:, i] - x[..., k] * sine[:, i]
        y[..., k] = x[..., j] * sine[:, i] + x[..., k] * cosine[:, i]
    return y


class TestFrequencies:
    @given(half=st.integers(1, 40), base=st.floats(1.5, 1e7))
    def test_are_the_formula(self, half, base):
        theta = rotary_frequencies(2 * half, base=base)
        assert theta.shape == (half,)
        assert theta.dtype == torch.float64
        wanted = [base ** (-2 * i / (2 * half)) for i in range(half)]
        assert theta.tolist() == pytest.approx(wanted, rel=1e-12)

    def test_errors(self, raises):
        with raises(ValueError, "head_dim (7) must be even: two numbers make a pair"):
            rotary_frequencies(7)
        with raises(ValueError, "head_dim (0) must be at least 1"):
            rotary_frequencies(0)
        with raises(ValueError, "base (1.0) must be above 1"):
            rotary_frequencies(4, base=1.0)


class TestForms:
    @pytest.mark.parametrize("layout", LAYOUTS)
    @given(sizes, sizes, sizes, sizes, st.booleans(), st.integers(0, 3))
    def test_the_formula(self, layout, batch, heads, length, pairs, split, before):
        """Also of heads that were split off, and of a part of a wider tensor."""
        width = 2 * pairs
        if split:
            x = draw(batch, length, heads * width + before)[..., before:]
            x = x.unflatten(-1, (heads, width)).transpose(1, 2)
        else:
            x = draw(batch, heads, length, width + before)[..., before:]
        x.requires_grad_()
        angle = draw(length, pairs)
        ours = rotate(x, angle.cos(), angle.sin(), layout=layout)
        wanted = formula(x, angle.cos(), angle.sin(), layout)
        assert_close(ours, wanted, atol=1e-14, rtol=0)
        seed = draw(batch, heads, length, width)
        gradients = [torch.autograd.grad(y, x, seed)[0] for y in (ours, wanted)]
        assert_close(*gradients, atol=1e-14, rtol=0)

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_the_second_gradient(self, layout):
        x, angle = draw(1, 1, 2, 4).requires_grad_(), draw(2, 2)
        assert torch.autograd.gradgradcheck(
            lambda x: rotate(x, angle.cos(), angle.sin(), layout=layout).pow(2), x
        )

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_compiled(self, layout):
        """One graph without complex numbers, which no compiler fuses."""
        x, rotary = draw(B, H, T, Dh), make(layout=layout)
        torch.compiler.reset()
        kinds = []

        def look(graph, _):
            kinds.extend(str(node.target) for node in graph.graph.nodes)
            return graph.forward

        fast = torch.compile(rotary, fullgraph=True, backend=look)
        assert_close(fast(x), rotary(x))
        assert kinds
        assert not any("complex" in kind for kind in kinds)


class TestLayouts:
    @pytest.mark.parametrize("num_kv_heads", [1, 3])
    def test_with_the_weights_reordered_the_scores_are_the_same(self, num_kv_heads):
        x, w_q, w_k = draw(B, T, D), draw(H * Dh, D), draw(num_kv_heads * Dh, D)
        theta = rotary_frequencies(Dh)

        def weights(w_q, w_k, layout):
            rotary = RotaryEmbedding(theta, layout=layout)
            q, k = (
                (x @ w.T).unflatten(-1, (-1, Dh)).transpose(1, 2) for w in (w_q, w_k)
            )
            return attention_weights(rotary(q), rotary(k))

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
        rotary = make(4)
        rotated = rotary(torch.tensor([[[[1.0, 0.0, 1.0, 0.0]]]]), start=100_000)
        wanted = [f(100_000 * s) for s in (1, 0.01) for f in (math.cos, math.sin)]
        assert rotated.flatten().tolist() == pytest.approx(wanted, abs=1e-6)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_a_model_in_half_precision_rotates_in_float32(self, dtype):
        rotary = make().to(dtype)
        x = draw(B, H, T, Dh).to(dtype)
        rotated = rotary(x, start=3001)
        assert rotated.dtype == dtype
        position = torch.arange(3001, 3001 + T).double()[:, None]
        angle = position * rotary_frequencies(Dh)
        exactly = rotate(x.double(), angle.cos(), angle.sin())
        step = torch.finfo(dtype).eps
        assert ((rotated.double() - exactly).abs() <= step * exactly.abs() + 1e-6).all()

    def test_each_dtype_gets_its_own_table(self):
        rotary = make()
        x = draw(B, H, T, Dh)
        first = rotary(x)
        assert rotary(x.float()).dtype == torch.float32
        assert torch.equal(rotary(x), first)

    def test_growing_changes_nothing(self):
        rotary, new = make(), make()
        x = draw(B, H, 7 * T, Dh)
        parts = [rotary(x[:, :, i : i + T], start=i) for i in range(0, 7 * T, T)]
        assert_close(torch.cat(parts, dim=2), new(x), atol=1e-14, rtol=0)
        tables = [each.table(7 * T, x)[:, : 7 * T] for each in (rotary, new)]
        assert torch.equal(*tables)

    def test_growing_doubles_the_table(self):
        rotary, like = make(), draw(1)
        lengths = [rotary.table(end, like).shape[1] for end in (5, 6, 3)]
        assert lengths == [5, 10, 10]

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_what_is_set_is_used(self, dtype):
        """No row of a table from before, however the numbers came to change."""
        x, given = draw(B, H, T, Dh).to(dtype), rotary_frequencies(Dh)
        rotary = RotaryEmbedding(given)
        first = rotary(x)
        given.mul_(3)  # the caller's own
        rotary.frequencies.mul_(3)  # a copy
        assert torch.equal(rotary(x), first)
        rotary.frequencies = given
        assert torch.equal(rotary(x), RotaryEmbedding(given)(x))
        rotary.factor = 1.25
        assert torch.equal(rotary(x), RotaryEmbedding(given, factor=1.25)(x))
        rotary.frequencies = given[:-2]
        partly = RotaryEmbedding(given[:-2], factor=1.25, head_dim=Dh)
        assert torch.equal(rotary(x), partly(x))


@pytest.mark.parametrize("layout", LAYOUTS)
class TestPositions:
    def test_are_those_from_start_on(self, layout):
        x, rotary = draw(B, H, T, Dh), make(layout=layout, factor=1.25)
        for places in (torch.arange(3, 3 + T), torch.arange(3, 3 + T).expand(B, T)):
            wanted = rotary(x, start=3)
            assert_close(rotary(x, positions=places), wanted, atol=1e-14, rtol=0)
            half = x.bfloat16()
            assert torch.equal(rotary(half, positions=places), rotary(half, start=3))

    def test_of_each_row(self, layout):
        x, rotary = draw(B, H, T, Dh), make(layout=layout)
        positions = torch.stack((torch.arange(T) * 7, torch.arange(T) / 2 - 1))
        whole = rotary(x, positions=positions)
        for row in range(B):
            for t in range(T):
                one = x[row, None, :, t, None]
                angle = positions[row, t].double() * rotary_frequencies(Dh)[None]
                wanted = formula(one, angle.cos(), angle.sin(), layout)
                assert_close(whole[row, None, :, t, None], wanted, atol=1e-13, rtol=0)

    def test_a_part_of_the_head(self, layout):
        x, width = draw(B, H, T, Dh), Dh - 4
        rotary = make(width, layout=layout, head_dim=Dh)
        wanted = make(width, layout=layout)(x[..., :width], start=2)
        assert torch.equal(rotary(x, start=2)[..., :width], wanted)
        assert torch.equal(rotary(x, start=2)[..., width:], x[..., width:])


class TestModule:
    def test_has_no_weights(self):
        rotary = make()
        rotary(draw(B, H, T, Dh))
        assert not list(rotary.parameters())
        assert not rotary.state_dict()

    def test_made_on_the_meta_device(self):
        with torch.device("meta"):
            rotary = make()
        rotary = rotary.to_empty(device="cpu")
        x = draw(B, H, T, Dh)
        assert torch.equal(rotary(x), make()(x))

    def test_copies(self):
        rotary = make(factor=1.5, layout="halves")
        x = draw(B, H, T, Dh)
        assert torch.equal(copy.deepcopy(rotary)(x), rotary(x))
        assert repr(rotary) == (
            "RotaryEmbedding(rotary_dim=14, head_dim=14, factor=1.5, layout='halves')"
        )

    def test_errors(self, raises):
        theta = rotary_frequencies(Dh)
        rotary = RotaryEmbedding(theta)
        with raises(ValueError, "frequencies must be (head_dim / 2,), not (2, 7)"):
            RotaryEmbedding(theta.expand(2, 7))
        with raises(ValueError, "frequencies must be (head_dim / 2,), not (0,)"):
            RotaryEmbedding(theta[:0])
        with raises(
            ValueError, "frequencies (7) must be at most half of head_dim (12)"
        ):
            RotaryEmbedding(theta, head_dim=12)
        with raises(ValueError, "factor (-1) must be above 0"):
            rotary.factor = -1
        with raises(ValueError, "factor (0) must be above 0"):
            RotaryEmbedding(theta, factor=0)
        message = "layout ('half') must be one of pairs, halves"
        with raises(ValueError, message):
            RotaryEmbedding(theta, layout="half")
        with raises(ValueError, message):
            rotate(
                torch.zeros(1, 2), torch.zeros(1, 1), torch.zeros(1, 1), layout="half"
            )
        shape = "x must be (batch, heads, length, head_dim = 14), not "
        with raises(ValueError, shape + "(2, 3, 5, 12)"):
            rotary(torch.zeros(B, H, T, 12))
        with raises(ValueError, shape + "(3, 5, 14)"):
            rotary(torch.zeros(H, T, Dh))
        with raises(ValueError, "start (-1) must be at least 0"):
            rotary(torch.zeros(B, H, T, Dh), start=-1)
        message = "positions must be (5,) or (2, 5), and start 0, not (3,) and 0"
        with raises(ValueError, message):
            rotary(torch.zeros(B, H, T, Dh), positions=torch.arange(3))
        with raises(ValueError, message.replace("(3,) and 0", "(5,) and 1")):
            rotary(torch.zeros(B, H, T, Dh), 1, positions=torch.arange(T))


def test_the_table_does_not_grow_where_dtypes_or_devices_take_turns():
    rotary = make()
    for _ in range(5):
        for kind in ({"dtype": torch.float32}, {"dtype": torch.float64}):
            rotary(torch.zeros(1, 1, T, Dh, **kind))
            assert rotary._table.shape[1] == T
