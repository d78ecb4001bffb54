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

    def test_where_each_row_goes(self, raises):
        for change in (pairs_to_halves, halves_to_pairs):
            message = "rows (12) must be divisible by 2 · num_heads (8)"
            with raises(ValueError, message):
                change(torch.zeros(12, 3), 4)
        assert pairs_to_halves(torch.arange(12), 2).tolist() == [
            *(0, 2, 4, 1, 3, 5),
            *(6, 8, 10, 7, 9, 11),
        ]


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

    def test_growing_changes_nothing(self):
        rotary, new = make(), make()
        x = draw(B, H, 7 * T, Dh)
        parts = [rotary(x[:, :, i : i + T], start=i) for i in range(0, 7 * T, T)]
        assert_close(torch.cat(parts, dim=2), new(x), atol=1e-14, rtol=0)
        assert rotary.table(1, x).shape[1] == 8 * T  # it doubles
        tables = [each.table(7 * T, x)[:, : 7 * T] for each in (rotary, new)]
        assert torch.equal(*tables)

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
        x, rotary = draw(B, H, T, Dh), make(layout=layout, factor=1.25)
        positions = torch.stack((torch.arange(T) * 7, torch.arange(T) / 2 - 1))
        whole = rotary(x, positions=positions)
        for row in range(B):
            for t in range(T):
                one = x[row, None, :, t, None]
                angle = positions[row, t].double() * rotary_frequencies(Dh)[None]
                wanted = 1.25 * formula(one, angle.cos(), angle.sin(), layout)
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

    def test_copies_and_the_meta_device(self):
        with torch.device("meta"):
            rotary = make(factor=1.5, layout="halves")
        moved, x = rotary.to_empty(device="cpu"), draw(B, H, T, Dh)
        wanted = make(factor=1.5, layout="halves")(x)
        assert torch.equal(copy.deepcopy(moved)(x), wanted)
        assert torch.equal(moved(x), wanted)
        assert repr(rotary) == (
            "RotaryEmbedding(rotary_dim=14, head_dim=14, factor=1.5, layout='halves')"
        )

    def test_errors(self, raises):
        theta, zeros = rotary_frequencies(Dh), torch.zeros
        rotary, x = RotaryEmbedding(theta), zeros(B, H, T, Dh)
        shape = "x must be (batch, heads, length, head_dim = 14), not "
        places = "positions must be (5,) or (2, 5), and start 0, not "
        layout = "layout ('half') must be one of pairs, halves"
        wide = "frequencies (7) must be at most half of head_dim (12)"
        even = "head_dim (7) must be even: two numbers make a pair"
        for attempt, message in (
            (lambda: rotary_frequencies(7), even),
            (lambda: rotary_frequencies(0), "head_dim (0) must be at least 1"),
            (lambda: rotary_frequencies(4, base=1.0), "base (1.0) must be above 1"),
            (
                lambda: RotaryEmbedding(theta.expand(2, 7)),
                "frequencies must be (head_dim / 2,), not (2, 7)",
            ),
            (lambda: RotaryEmbedding(theta, head_dim=12), wide),
            (lambda: RotaryEmbedding(theta, factor=0), "factor (0) must be above 0"),
            (lambda: setattr(rotary, "factor", -1), "factor (-1) must be above 0"),
            (lambda: RotaryEmbedding(theta, layout="half"), layout),
            (lambda: rotate(*(zeros(2, 2),) * 3, layout="half"), layout),
            (lambda: rotary(x[..., :12]), shape + "(2, 3, 5, 12)"),
            (lambda: rotary(x[0]), shape + "(3, 5, 14)"),
            (lambda: rotary(x, start=-1), "start (-1) must be at least 0"),
            (lambda: rotary(x, positions=zeros(3)), places + "(3,) and 0"),
            (lambda: rotary(x, 1, positions=zeros(T)), places + "(5,) and 1"),
        ):
            with raises(ValueError, message):
                attempt()


def test_the_table_does_not_grow_where_dtypes_or_devices_take_turns():
    rotary, x = make(), draw(B, H, T, Dh)
    for _ in range(5):
        for dtype in (torch.float32, torch.float64):
            assert torch.equal(rotary(x.to(dtype)), make()(x.to(dtype)))
            assert rotary._table.shape[1] == T
