"""Attention with a cache: it changes no number, however the tokens come."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer import MultiHeadAttention, record_weights
from tformer.nn.cache import KeyValueCache

H, S = 6, 11


def test_there_are_as_many_splits_as_there_should_be():
    assert splits(3) == [(1, 1, 1), (1, 2), (2, 1), (3,)]
    assert len(splits(7)) == 64


@pytest.fixture(params=[H, 3, 1], ids=["MHA", "GQA", "MQA"])
def kv_heads(request):
    return request.param


@pytest.mark.usefixtures("float64")
class TestAttention:
    def attention(self, kv_heads, randomised):
        return randomised(MultiHeadAttention(H * 4, H, num_kv_heads=kv_heads))

    @torch.no_grad()
    @pytest.mark.parametrize("mask", ["none", "left", "holes", "rows"])
    def test_every_split(self, kv_heads, mask, randomised):
        attention, T = self.attention(kv_heads, randomised), 6
        x = torch.randn(3, T, H * 4)
        attn_mask = {
            "none": torch.ones(1, 1, T, T, dtype=torch.bool),
            "left": (torch.arange(T) >= torch.tensor([[0], [2], [5]]))[:, None, None],
            "holes": torch.rand(3, 1, 1, T) < 0.6,
            "rows": torch.rand(3, 1, T, T) < 0.7,
        }[mask].expand(-1, -1, T, T)
        with record_weights(attention) as recorded:
            whole = attention(x, attn_mask=attn_mask, is_causal=True)
        weights = recorded[attention]
        for pieces in splits(T):
            kernel, formula = KeyValueCache(T), KeyValueCache(T)

            def piece(begin, end, cache, attention=attention):
                return attention(
                    x[:, begin:end],
                    attn_mask=None
                    if mask == "none"
                    else attn_mask[:, :, begin:end, :end],
                    is_causal=True,
                    cache=cache,
                )

            def recorded_piece(begin, end, piece=piece, cache=formula):
                with record_weights(attention) as recorded:
                    output = piece(begin, end, cache)
                assert_close(recorded[attention], weights[:, :, begin:end, :end])
                return output

            assert_close(in_pieces(recorded_piece, pieces), whole)
            assert_close(in_pieces(partial(piece, cache=kernel), pieces), whole)
            assert kernel.length == formula.length == T

    @torch.no_grad()
    def test_a_long_prompt_in_large_chunks(self, randomised):
        """More queries than the kernel is given at a time, after a past."""
        attention = self.attention(3, randomised)
        x = torch.randn(1, 700, H * 4)
        real = torch.rand(1, 1, 1, 700) < 0.9
        whole = attention(x, attn_mask=real, is_causal=True)
        cache = KeyValueCache(700)
        output = in_pieces(
            lambda begin, end: attention(
                x[:, begin:end],
                attn_mask=real[..., :end],
                is_causal=True,
                cache=cache,
            ),
            (90, 300, 1, 309),
        )
        assert_close(output, whole)

    @torch.no_grad()
    def test_a_memory_is_projected_once(self, kv_heads, randomised):
        attention = self.attention(kv_heads, randomised)
        x, memory = torch.randn(2, 5, H * 4), torch.randn(2, S, H * 4)
        real = torch.rand(2, 1, 1, S) < 0.6
        whole = attention(x, memory, attn_mask=real)
        calls = []
        for projection in (attention.k_proj, attention.v_proj):
            projection.register_forward_hook(lambda *_: calls.append(1))
        cache = KeyValueCache()
        output = in_pieces(
            lambda begin, end: attention(
                x[:, begin:end], memory, attn_mask=real, cache=cache
            ),
            (2, 1, 1, 1),
        )
        assert_close(output, whole)
        assert len(calls) == 2
        assert cache.length == S
        # The same numbers elsewhere in memory are the same memory.
        assert_close(attention(x, memory.clone(), attn_mask=real, cache=cache), whole)
        assert len(calls) == 2

    @torch.no_grad()
    @pytest.mark.parametrize("length", [S, S - 1])
    def test_another_memory_is_refused(self, randomised, raises, length):
        """Of the same length too: its keys would be those of the first."""
        attention, cache = self.attention(3, randomised), KeyValueCache()
        x, memory = torch.randn(2, 1, H * 4), torch.randn(2, S, H * 4)
        attention(x, memory, cache=cache)
        other = memory[:, :length] + 1
        message = "the cache holds the keys of another `key` than this"
        with raises(ValueError, message):
            attention(x, other, cache=cache)
        attention(x, memory, cache=cache)

    @torch.no_grad()
    @pytest.mark.parametrize("copied", [False, True])
    def test_a_memory_changed_in_place_is_refused(self, randomised, raises, copied):
        """As one that is kept for all sources is: its keys are of the one before."""
        attention, cache = self.attention(3, randomised), KeyValueCache()
        x, memory = torch.randn(2, 1, H * 4), torch.randn(2, S, H * 4)
        attention(x, memory, cache=cache)
        attention(x, memory, cache=cache)
        memory.add_(1)
        with raises(ValueError, "the cache holds the keys of another `key` than this"):
            attention(x, memory.clone() if copied else memory, cache=cache)

    def test_in_inference_mode_changes_are_not_counted(self, randomised):
        attention, cache = self.attention(3, randomised), KeyValueCache()
        with torch.inference_mode():
            x, memory = torch.randn(2, 1, H * 4), torch.randn(2, S, H * 4)
            first = attention(x, memory, cache=cache)
            assert torch.equal(attention(x, memory, cache=cache), first)

    @torch.no_grad()
    def test_a_compiled_attention_reads_it_too(self, randomised):
        attention, cache = self.attention(3, randomised), KeyValueCache()
        x, memory = torch.randn(2, 1, H * 4), torch.randn(2, S, H * 4)
        compiled = torch.compile(attention, backend="eager", fullgraph=True)
        whole = attention(x, memory)
        for module in (compiled, compiled, attention, compiled):
            assert_close(module(x, memory, cache=cache), whole)

    @torch.no_grad()
    def test_another_value_is_refused(self, randomised, raises):
        attention, cache = self.attention(3, randomised), KeyValueCache()
        x, memory = torch.randn(2, 1, H * 4), torch.randn(2, S, H * 4)
        value = torch.randn(2, S, H * 4)
        whole = attention(x, memory, value)
        for _ in range(2):
            assert_close(attention(x, memory, value.clone(), cache=cache), whole)
        message = "the cache holds the values of another `value` than this"
        for other in (None, value + 1):
            with raises(ValueError, message):
                attention(x, memory, other, cache=cache)

    def test_a_mask_must_speak_of_old_and_new_keys(self, randomised):
        attention = self.attention(3, randomised)
        cache, x = KeyValueCache(5), torch.randn(2, 3, H * 4)
        with torch.no_grad():
            attention(x, cache=cache)
            mask = torch.ones(2, 1, 1, 2, dtype=torch.bool)
            with pytest.raises(ValueError, match=r"\(2, 6, 2, 5\), not \(2, 1, 1, 2\)"):
                attention(x[:, :2], attn_mask=mask, cache=cache)

    def test_gradients_are_refused_in_one_sentence(self, randomised, raises):
        attention = self.attention(3, randomised)
        message = "a cache holds no gradients: use it under torch.no_grad()"
        with raises(ValueError, message):
            attention(torch.randn(2, 3, H * 4), cache=KeyValueCache(5))
        attention.requires_grad_(False)
        assert (
            attention(torch.randn(2, 3, H * 4), cache=KeyValueCache(5)).isfinite().all()
        )


def test_under_autocast_the_cache_holds_what_the_projections_return():
    attention = MultiHeadAttention(8, 2)
    x = torch.randn(1, 4, 8)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        cache = KeyValueCache(4)
        pieces = [
            attention(part, is_causal=True, cache=cache) for part in x.split(2, 1)
        ]
        whole = attention(x, is_causal=True)
    assert cache.keys_values[0].dtype == torch.bfloat16
    assert_close(torch.cat(pieces, dim=1), whole, atol=0.02, rtol=0.02)
