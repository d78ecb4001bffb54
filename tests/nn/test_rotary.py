"""Rotary embedding beyond its spec: how numbers lie, layouts, and what may be set."""

from itertools import product

import pytest
import torch
from torch.testing import assert_close

from tformer import RotaryEmbedding, attention_weights
from tformer.nn import (
    LongRotaryEmbedding,
    halves_to_pairs,
    longrope_factor,
    pairs_to_halves,
    rotary_frequencies,
    rotate,
)
from tformer.reference import from_torch

B, H, T, Dh, D = 2, 3, 5, 14, 11
LAYOUTS = pytest.mark.parametrize("layout", ["pairs", "halves"])


def make(width=Dh, **options):
    return RotaryEmbedding(rotary_frequencies(width), **options)


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


@LAYOUTS
def test_numbers_may_lie_anywhere(layout):
    """Also of heads that were split off, and of a part of a wider tensor."""
    angle, seed = draw(T, Dh // 2), draw(B, H, T, Dh)
    for split, before in product((False, True), range(4)):
        if split:
            x = draw(B, T, H * Dh + before)[..., before:]
            x = x.unflatten(-1, (H, Dh)).transpose(1, 2)
        else:
            x = draw(B, H, T, Dh + before)[..., before:]
        both = []
        for leaf in (x.requires_grad_(), x.detach().clone().requires_grad_()):
            output = rotate(leaf, angle.cos(), angle.sin(), layout=layout)
            both.append((output, *torch.autograd.grad(output, leaf, seed)))
        assert_close(*both, atol=1e-14, rtol=0)


@LAYOUTS
def test_compiled_without_complex_numbers_which_no_compiler_fuses(layout):
    x, rotary, kinds = draw(B, H, T, Dh), make(layout=layout), []
    torch.compiler.reset()

    def look(graph, _):
        kinds.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    fast = torch.compile(rotary, fullgraph=True, backend=look)
    assert_close(fast(x), rotary(x))
    assert kinds
    assert not any("complex" in kind for kind in kinds)


@pytest.mark.parametrize("num_kv_heads", [1, 3])
def test_with_the_weights_reordered_the_scores_are_the_same(num_kv_heads):
    x, w_q, w_k = draw(B, T, D), draw(H * Dh, D), draw(num_kv_heads * Dh, D)

    def weights(w_q, w_k, layout):
        rotary = make(layout=layout)
        q, k = ((x @ w.T).unflatten(-1, (-1, Dh)).transpose(1, 2) for w in (w_q, w_k))
        return attention_weights(rotary(q), rotary(k))

    wanted = weights(w_q, w_k, "pairs")
    moved = pairs_to_halves(w_q, H), pairs_to_halves(w_k, num_kv_heads)
    assert_close(weights(*moved, "halves"), wanted, atol=1e-13, rtol=0)
    assert not torch.allclose(weights(w_q, w_k, "halves"), wanted)
    assert torch.equal(halves_to_pairs(moved[0], H), w_q)
    assert torch.equal(halves_to_pairs(pairs_to_halves(w_q[:, 0], H), H), w_q[:, 0])
    assert pairs_to_halves(w_q, H).data_ptr() != w_q.data_ptr()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_in_half_precision_rotates_in_float32(dtype):
    rotary, x = make().to(dtype), draw(B, H, T, Dh).to(dtype)
    rotated, exactly = rotary(x, start=3001), make()(x.double(), start=3001)
    assert rotated.dtype == dtype
    step = torch.finfo(dtype).eps
    assert ((rotated.double() - exactly).abs() <= step * exactly.abs() + 1e-6).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_what_is_set_is_used(dtype):
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
    assert_close(rotary(x), 1.25 * RotaryEmbedding(given)(x))
    rotary.frequencies = given[:-2]
    partly = RotaryEmbedding(given[:-2], factor=1.25, head_dim=Dh)
    assert torch.equal(rotary(x), partly(x))


@LAYOUTS
def test_positions_of_each_row(layout):
    x, rotary = draw(B, H, T, Dh), make(layout=layout, factor=1.25)
    positions = torch.stack((torch.arange(T) * 7, torch.arange(T) / 2 - 1))
    whole = rotary(x, positions=positions)
    for row in range(B):
        own = rotary(x[row : row + 1], positions=positions[row])
        assert_close(whole[row : row + 1], own, atol=1e-13, rtol=0)


@LAYOUTS
def test_a_part_of_the_head(layout):
    x, width = draw(B, H, T, Dh), Dh - 4
    rotary = make(width, layout=layout, head_dim=Dh)
    wanted = make(width, layout=layout)(x[..., :width], start=2)
    assert torch.equal(rotary(x, start=2)[..., :width], wanted)
    assert torch.equal(rotary(x, start=2)[..., width:], x[..., width:])


@pytest.mark.usefixtures("float64")
def test_a_long_text_is_rotated_otherwise_from_its_first_token_on():
    near, far = (RotaryEmbedding(rotary_frequencies(6) / n) for n in (1, 3))
    rotary, x = LongRotaryEmbedding(near, far, 4), torch.randn(2, 3, 9, 6)
    assert torch.equal(rotary(x[:, :, :4]), near(x[:, :, :4]))
    assert torch.equal(rotary(x), far(x))
    assert torch.equal(rotary(x[:, :, 3:4], start=3), near(x[:, :, 3:4], start=3))
    assert torch.equal(rotary(x[:, :, 5:], start=5), far(x[:, :, 5:], start=5))
    for T in (4, 5):
        twin = from_torch(rotary)(x[:, :, :T].numpy())
        assert_close(torch.from_numpy(twin), rotary(x[:, :, :T]))
    for start in (1, 4):
        with pytest.raises(ValueError, match=rf"start \({start}\) must be 0 as"):
            rotary(x[:, :, start:], start=start)
    for wrong in (0, 1):
        with pytest.raises(ValueError, match="trained_len"):
            longrope_factor(2.0, wrong)
    assert longrope_factor(0.5, 8) == 1
