"""The twin in NumPy of attention in tiles, and what it moves."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tformer
from tformer import reference
from tformer.nn import tiles as original
from tformer.reference import tiles as twin

B, H, G, T, S, Dh, Dv = 2, 6, 3, 5, 7, 11, 13


@settings(max_examples=60)
@given(
    sizes=st.tuples(*[st.integers(1, 7)] * 2, *[st.integers(1, 3)] * 4),
    groups=st.integers(1, 3),
    tile=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    share=st.sampled_from([None, 0.0, 0.4]),
    with_bias=st.booleans(),
    is_causal=st.booleans(),
    softcap=st.sampled_from([None, 0.7]),
    seed=st.integers(0, 999),
)
def test_outputs(
    new_parity, sizes, groups, tile, share, with_bias, is_causal, softcap, seed
):
    parity = new_parity(seed=seed)
    queries, keys, batch, kv_heads, width, value_width = sizes
    arrays, tensors = zip(
        parity.numbers(batch, kv_heads * groups, queries, width),
        parity.numbers(batch, kv_heads, keys, width),
        parity.numbers(batch, kv_heads, keys, value_width),
        (None, None) if share is None else parity.mask(queries, keys, share=share),
        strict=True,
    )
    options = {"is_causal": is_causal, "softcap": softcap, "scale": 0.4}
    bias, bias_tensor = parity.numbers(queries, keys) if with_bias else (None, None)
    size = {"query_tile": tile[0], "key_tile": tile[1]}
    ours = reference.tiled_attention(*arrays, bias=bias, **options, **size)
    wanted = tformer.tiled_attention(*tensors, bias=bias_tensor, **options, **size)
    parity.same(ours, wanted)
    parity.same(
        reference.scaled_dot_product_attention(*arrays, bias=bias, **options), wanted
    )


def five_axes(parity, mask_shape=None, bias_shape=None):
    """Everything that forward and backward take, as arrays and as tensors."""
    arrays, tensors = zip(
        parity.numbers(B, G, H // G, T, Dv),
        parity.numbers(B, G, H // G, T, Dh),
        parity.numbers(B, G, 1, S, Dh),
        parity.numbers(B, G, 1, S, Dv),
        (None, None) if mask_shape is None else parity.mask(*mask_shape),
        (None, None) if bias_shape is None else parity.numbers(*bias_shape),
        strict=True,
    )
    return arrays, tensors


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("softcap", [None, 0.8])
@pytest.mark.parametrize("mask_shape", [None, (1, 1, 1, T, S), (B, 1, 1, 1, S)])
@pytest.mark.parametrize("bias_shape", [None, (1, G, 2, T, 1), (1, 1, 1, T, S)])
def test_forward_and_backward(parity, is_causal, softcap, mask_shape, bias_shape):
    arrays, tensors = five_axes(parity, mask_shape, bias_shape)
    results = []
    for module, (grad, *inputs, mask, bias) in (
        (twin, arrays),
        (original, tensors),
    ):
        if mask is not None:
            mask[..., -1:, 3:] = False
        how = module.Tiling(mask, bias, is_causal, 0.3, softcap, 2, 3)
        output, logsumexp = module.tiled_forward(*inputs, how)
        gradients = module.tiled_backward(grad, *inputs, output, logsumexp, how)
        if bias is None:
            assert gradients[3] is None
        results.append((output, *gradients[: 4 if bias is not None else 3]))
        live = logsumexp > -np.inf
        results[-1] += (logsumexp[live],)
    parity.same(*results)


def test_dead_rows(new_parity):
    parity = new_parity()
    (grad, *inputs, mask, _), _ = five_axes(parity, (1, 1, 1, T, S))
    mask[..., 2, :] = False
    mask[..., 3, :3] = False  # hidden in the first tile only
    how = twin.Tiling(mask, None, False, 0.3, None, 2, 3)
    with np.errstate(all="raise"):
        output, logsumexp = twin.tiled_forward(*inputs, how)
        gradients = twin.tiled_backward(grad, *inputs, output, logsumexp, how)
    assert not output[..., 2, :].any()
    assert (logsumexp[..., 2, 0] == -np.inf).all()
    assert not gradients[0][..., 2, :].any()
    assert all(np.isfinite(x).all() for x in gradients[:3])
    assert output[..., 3, :].all()


@pytest.mark.parametrize("offset", [0.0, -5000.0])
def test_a_first_tile_that_is_hidden_leaves_no_maximum(new_parity, offset):
    (_, *inputs, mask, _), _ = five_axes(new_parity(), (1, 1, 1, T, S))
    mask[..., :3] = False
    mask[..., 3:] = True
    bias = np.full((1, 1, 1, T, S), offset)
    how = twin.Tiling(mask, bias, False, 0.3, None, 2, 3)
    output, _ = twin.tiled_forward(*inputs, how)
    without, _ = twin.tiled_forward(*inputs, how._replace(bias=None))
    np.testing.assert_allclose(output, without, rtol=0, atol=1e-10)


class Slow(np.ndarray):
    """An array in slow memory: counts the numbers read and written by slices."""

    moved = 0

    def __getitem__(self, place):
        part = super().__getitem__(place).view(np.ndarray)
        Slow.moved += part.size
        return part

    def __setitem__(self, place, part):
        Slow.moved += self.view(np.ndarray)[place].size
        self.view(np.ndarray)[place] = part


def moved(run):
    Slow.moved = 0
    result = run()
    return Slow.moved, result


@given(st.tuples(*[st.integers(1, 20)] * 2, *[st.integers(1, 9)] * 4), st.booleans())
def test_memory_traffic(sizes, is_causal):
    """Keys are read once for each tile of queries, and not once for each head."""
    queries, keys, width, value_width, query_tile, key_tile = sizes
    draw = np.random.default_rng(0).standard_normal
    both = width + value_width
    q, k, v = (
        draw((2, 3, repeat, length, size)).view(Slow)
        for repeat, length, size in (
            (2, queries, width),
            (1, keys, width),
            (1, keys, value_width),
        )
    )
    how = twin.Tiling(None, None, is_causal, 1.0, None, query_tile, key_tile)
    pairs = [
        (len(range(queries)[rows]), len(range(keys)[columns]))
        for rows in twin.tiles(queries, query_tile)
        for columns in twin.tiles(keys, key_tile)
        if not (is_causal and columns.start > rows.stop - 1 + keys - queries)
    ]
    seen_keys = sum(columns for _, columns in pairs)
    seen_queries = 2 * sum(rows for rows, _ in pairs)
    forward, (output, logsumexp) = moved(lambda: twin.tiled_forward(q, k, v, how))
    assert forward == 6 * (2 * queries * (both + 1) + seen_keys * both)

    grad = draw(output.shape).view(Slow)
    backward, _ = moved(
        lambda: twin.tiled_backward(grad, q, k, v, output, logsumexp, how)
    )
    once = 2 * queries * (2 * value_width + 1) + 2 * keys * both
    inner = width + value_width + 1 + 1 + 2 * width  # q, g, logsumexp, D, d_query twice
    assert backward == 6 * (once + seen_queries * inner)


def test_memory_grows_with_the_length_only():
    import tracemalloc

    peaks = []
    for length in (512, 1024):
        q, k, v = np.random.default_rng(0).standard_normal((3, 1, 1, length, 16))
        tracemalloc.start()
        reference.tiled_attention(q, k, v, is_causal=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 512 * 512 * 8 / 2
    assert peaks[1] < 2 * peaks[0]


def test_half_precision_is_summed_in_float32(new_parity):
    parity = new_parity("float16")
    arrays, tensors = zip(
        *(parity.numbers(B, H, n, w) for n, w in ((T, Dh), (S, Dh), (S, Dv))),
        strict=True,
    )
    ours = reference.tiled_attention(*arrays, key_tile=2)
    parity.same(ours, tformer.tiled_attention(*tensors, key_tile=2), 1e-3)


def test_errors(new_parity, same_error):
    parity = new_parity()
    arrays, tensors = zip(
        *(parity.numbers(B, H, n, w) for n, w in ((T, Dh), (S, Dh), (S, Dv))),
        strict=True,
    )
    for options, message in (
        ({"query_tile": 0}, "query_tile (0) must be at least 1"),
        ({"key_tile": -1}, "key_tile (-1) must be at least 1"),
        ({"softcap": -1.0}, "softcap (-1.0) must be above 0"),
    ):
        same_error(
            lambda options=options: reference.tiled_attention(*arrays, **options),
            lambda options=options: tformer.tiled_attention(*tensors, **options),
            ValueError,
            message,
        )
    short = arrays[2][:, :, :3], torch.tensor(arrays[2][:, :, :3])
    same_error(
        lambda: reference.tiled_attention(*arrays[:2], short[0]),
        lambda: tformer.tiled_attention(*tensors[:2], short[1]),
        ValueError,
        "value and key must agree in batch, heads and length",
    )
