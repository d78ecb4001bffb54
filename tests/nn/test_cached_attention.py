"""Attention with a cache and masks: it changes no number, however the tokens come."""

import pytest
import torch
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer import KeyValueCache, MultiHeadAttention, record_weights

B, T, H, G, D = 3, 6, 6, 3, 24


@pytest.fixture
def attention(float64, randomised):
    return randomised(MultiHeadAttention(D, H, num_kv_heads=G))


@torch.no_grad()
@pytest.mark.parametrize("mask", ["left", "holes", "rows"])
def test_every_split(attention, mask):
    x = torch.randn(B, T, D)
    attn_mask = {
        "left": (torch.arange(T) >= torch.tensor([[0], [2], [5]]))[:, None, None],
        "holes": torch.rand(B, 1, 1, T) < 0.6,
        "rows": torch.rand(B, 1, T, T) < 0.7,
    }[mask].expand(-1, -1, T, T)
    with record_weights(attention) as recorded:
        whole = attention(x, attn_mask=attn_mask, is_causal=True)
        weights = recorded[attention]
        for pieces in splits(T):
            cache = KeyValueCache(T)

            def piece(begin, end, cache=cache):
                output = attention(
                    x[:, begin:end],
                    attn_mask=attn_mask[:, :, begin:end, :end],
                    is_causal=True,
                    cache=cache,
                )
                assert_close(recorded[attention], weights[:, :, begin:end, :end])
                return output

            assert_close(in_pieces(piece, pieces), whole)
            assert cache.length == T


@torch.no_grad()
def test_a_long_prompt_in_large_chunks(attention):
    """More queries than the kernel is given at a time, after a past."""
    x, real = torch.randn(1, 700, D), torch.rand(1, 1, 1, 700) < 0.9
    cache = KeyValueCache(700)
    output = in_pieces(
        lambda begin, end: attention(
            x[:, begin:end], attn_mask=real[..., :end], is_causal=True, cache=cache
        ),
        (90, 300, 1, 309),
    )
    assert_close(output, attention(x, attn_mask=real, is_causal=True))


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
