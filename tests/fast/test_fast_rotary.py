"""The fast turning equals the formula, whatever the shape and wherever x lies."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tformer import RotaryPositions, rotary_frequencies
from tformer.fast.rotary import can_rotate, fast_rotate
from tformer.nn.rotary import LAYOUTS, rotate

sizes = st.integers(1, 5)
both = pytest.mark.parametrize("layout", LAYOUTS)


def angles(length, pairs):
    angle = torch.randn(length, pairs, dtype=torch.float64)
    return angle.cos(), angle.sin()


@both
@given(sizes, sizes, sizes, sizes, st.booleans(), st.integers(0, 3))
def test_the_formula(layout, batch, heads, length, pairs, split, before):
    """Also of heads that were split off, and of a part of a wider tensor."""
    width = 2 * pairs
    if split:
        x = torch.randn(batch, length, heads * width + before, dtype=torch.float64)
        x = x[..., before:].unflatten(-1, (heads, width)).transpose(1, 2)
    else:
        x = torch.randn(batch, heads, length, width + before, dtype=torch.float64)
        x = x[..., before:]
    x.requires_grad_()
    table = angles(length, pairs)
    ours, wanted = fast_rotate(x, *table, layout), rotate(x, *table, layout=layout)
    assert_close(ours, wanted, atol=1e-14, rtol=0)
    seed = torch.randn(batch, heads, length, width, dtype=torch.float64)
    gradients = [torch.autograd.grad(y, x, seed)[0] for y in (ours, wanted)]
    assert_close(*gradients, atol=1e-14, rtol=0)


@both
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_dtypes(layout, dtype):
    x = torch.randn(2, 3, 4, 6).to(dtype)
    table = [part.float() for part in angles(4, 3)]
    ours, wanted = fast_rotate(x, *table, layout), rotate(x, *table, layout=layout)
    assert ours.dtype == wanted.dtype == dtype
    assert_close(ours, wanted)


@both
def test_the_second_gradient(layout):
    x = torch.randn(1, 1, 2, 4, dtype=torch.float64, requires_grad=True)
    cosine, sine = angles(2, 2)
    assert torch.autograd.gradgradcheck(
        lambda x: fast_rotate(x, cosine, sine, layout).pow(2), x
    )


@both
def test_who_takes_it(layout):
    """Eager on a CPU yes; what is compiled has the formula, in one graph."""
    x = torch.randn(1, 2, 5, 6)
    assert can_rotate(x)
    assert not can_rotate(x.to("meta"))
    module = RotaryPositions(rotary_frequencies(6), layout=layout)
    torch.compiler.reset()
    kinds = []

    def look(graph, _):
        kinds.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    fast = torch.compile(module, fullgraph=True, backend=look)
    assert_close(fast(x), module(x))
    assert not any("complex" in kind or "addcmul" in kind for kind in kinds)
