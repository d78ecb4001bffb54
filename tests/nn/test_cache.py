"""The cache: what it returns in every split, what it costs, and what it refuses."""

import pytest
import torch
from torch.testing import assert_close

from tformer.nn import (
    BlockCache,
    KeyValueCache,
    ModelCache,
    MultiHeadAttention,
    StateCache,
)

B, G, MAX_LEN, DH = 2, 3, 40, 5


def drawn(length, dtype=torch.float32):
    return torch.randn(2, B, G, length, DH).to(dtype)


@pytest.mark.parametrize("window", [None, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_memory_is_taken_once_and_as_computed(window, dtype):
    cache, places = KeyValueCache(MAX_LEN, window=window), set()
    assert cache.nbytes == 0
    for _ in range(MAX_LEN):
        cache.append(*drawn(1, dtype))
        places.add((cache.keys.data_ptr(), cache.values.data_ptr(), cache.nbytes))
    room = MAX_LEN if window is None else 2 * window
    assert len(places) == 1
    assert cache.nbytes == 2 * B * G * room * DH * dtype.itemsize


def test_a_long_contexts_memory():
    """32 layers of width 4096, 32,768 tokens in bfloat16: 17.18 and 4.29 GB."""
    for heads, gigabytes in ((32, 17.18), (8, 4.29)):
        cache = ModelCache(BlockCache(KeyValueCache(32_768)) for _ in range(32))
        token = torch.empty(1, heads, 1, 128, dtype=torch.bfloat16, device="meta")
        for block in cache.blocks:
            block.sequence.append(token, token)
        assert cache.length == 1
        assert round(cache.nbytes / 1e9, 2) == gigabytes


@pytest.mark.parametrize("spare", [1, 3])
def test_with_a_window_spare_tokens_can_be_forgotten(spare):
    W, x = 3, drawn(40)
    for wrong in range(spare + 1):
        cache = KeyValueCache(50, window=W, spare=spare)
        for t in range(40):
            seen = cache.append(*x[:, :, :, t : t + 1])
            for ours, all_ in zip(seen, x, strict=True):
                assert torch.equal(ours, all_[:, :, max(0, t - W + 1) : t + 1])
            if wrong:
                cache.append(*drawn(wrong))
                cache.truncate(t + 1)
        assert cache.copy(50).length == cache.length == 40


def test_all_caches_of_a_model_forget():
    blocks = [BlockCache(KeyValueCache(5)) for _ in range(2)]
    for block in blocks:
        block.sequence.append(*drawn(4))
    ModelCache(blocks).truncate(1)
    assert [block.sequence.length for block in blocks] == [1, 1]


def test_what_cannot_be_forgotten(raises):
    cache, rolls, state = KeyValueCache(9), KeyValueCache(30, window=3), StateCache()
    cache.append(*drawn(4))
    for _ in range(20):
        rolls.append(*drawn(1))
    for length, kind, message in (
        (5, ValueError, "length (5) must be at most 4"),
        (-1, ValueError, "length (-1) must be at least 0"),
        (1.0, TypeError, "length must be an int, not float"),
    ):
        with raises(kind, message):
            cache.truncate(length)
    with pytest.raises(ValueError, match=r"of 20 tokens the oldest are gone"):
        rolls.truncate(15)
    state.length = 3
    with pytest.raises(ValueError, match="cannot be cut back to 2"):
        state.truncate(2)
    with raises(ValueError, "max_len (3) must be at least 4"):
        cache.copy(3)


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("which", [0, 1])
def test_a_refused_token_leaves_the_cache_as_it_was(window, which, raises):
    cache, right = KeyValueCache(7, window=window), drawn(2)
    cache.append(*right)
    rule = f"{('key', 'value')[which]} must be (B, G, T, Dh) = (2, 3, 2, 5)"
    name = ("key", "value")[which]
    for wrong, kind, message in (
        (right[0].clone().requires_grad_(), ValueError, "a cache holds no gradients: "),
        (torch.randn(1, G, 2, DH), ValueError, rule),
        (torch.randn(B, 1, 2, DH), ValueError, rule),
        (torch.randn(B, G, 2, DH - 1), ValueError, rule),
        (right[0].double(), TypeError, f"{name} is torch.float64 but the cache"),
    ):
        new = list(right)
        new[which] = wrong
        with pytest.raises(kind) as caught:
            cache.append(*new)
        assert str(caught.value).startswith(message)
        assert cache.length == 2
    message = "the cache is full: it has room for max_len = 7 tokens, holds 2, and 6"
    with raises(ValueError, f"{message} more came"):
        cache.append(*drawn(6))


@pytest.mark.parametrize("held", [0, 2])
@pytest.mark.parametrize("shape", [(B, G, 1, DH), (1, G, 2, DH), (B, 1, 2, DH)])
def test_a_value_does_not_broadcast(held, shape):
    cache, (key, value) = KeyValueCache(7), drawn(2)
    if held:
        cache.append(key, value)
    with pytest.raises(ValueError, match=r"value.* \(2, 3, "):
        cache.append(key, torch.randn(shape))
    assert cache.length == held
    seen = cache.append(key, value)
    assert torch.equal(seen[1][:, :, held:], value)


def test_under_autocast_the_cache_holds_what_the_projections_return():
    attention, x = MultiHeadAttention(8, 2), torch.randn(1, 4, 8)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        cache = KeyValueCache(4)
        pieces = [
            attention(part, is_causal=True, cache=cache) for part in x.split(2, 1)
        ]
        whole = attention(x, is_causal=True)
    assert cache.keys.dtype == torch.bfloat16
    assert_close(torch.cat(pieces, dim=1), whole, atol=0.02, rtol=0.02)
