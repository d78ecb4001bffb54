"""The cache: what it holds, what it costs, and that it changes no number."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer import MultiHeadAttention, record_weights
from tformer.nn.cache import DecoderCache, KeyValueCache

B, G, MAX_LEN, DH = 2, 3, 7, 5
H, S = 6, 11


class TestKeyValueCache:
    @pytest.fixture
    def cache(self):
        return KeyValueCache(MAX_LEN)

    def test_it_returns_all_so_far_and_copies_nothing(self, cache):
        everything = torch.randn(2, B, G, MAX_LEN, DH)
        begin, memory = 0, None
        for T in (3, 1, 2, 1):
            end = begin + T
            new = everything[:, :, :, begin:end]
            keys, values = cache.append(*new)
            memory = memory or keys.data_ptr()
            assert cache.length == end
            assert torch.equal(keys, everything[0, :, :, :end])
            assert torch.equal(values, everything[1, :, :, :end])
            assert keys.data_ptr() == memory
            for ours, same in zip(cache.keys_values, (keys, values), strict=True):
                assert ours.data_ptr() == same.data_ptr()
                assert ours.shape == (B, G, end, DH)
            begin = end
        assert cache._storage.data_ptr() == memory

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
    def test_the_memory_is_taken_once_and_as_computed(self, dtype):
        cache = KeyValueCache(MAX_LEN)
        assert cache.nbytes == 0
        cache.append(*torch.ones(2, B, G, 1, DH, dtype=dtype))
        assert cache.nbytes == 2 * B * G * MAX_LEN * DH * dtype.itemsize
        assert cache.nbytes == cache._storage.untyped_storage().nbytes()
        cache.append(*torch.ones(2, B, G, MAX_LEN - 1, DH, dtype=dtype))
        cache.reorder(torch.tensor([1, 0]))
        assert cache.nbytes == 2 * B * G * MAX_LEN * DH * dtype.itemsize
        assert cache.nbytes == cache._storage.untyped_storage().nbytes()
        assert cache.keys_values[0].dtype == dtype

    def test_a_long_contexts_memory(self):
        """32 layers of width 4096, 32,768 tokens in bfloat16: 17.18 and 4.29 GB."""
        for heads, gigabytes in ((32, 17.18), (8, 4.29)):
            cache = DecoderCache(32, 32_768)
            assert cache.nbytes == 0
            token = torch.empty(1, heads, 1, 128, dtype=torch.bfloat16, device="meta")
            for layer in cache.layers:
                layer.target.append(token, token)
            assert cache.length == 1
            assert round(cache.nbytes / 1e9, 2) == gigabytes

    def test_without_a_length_there_is_room_for_what_comes_first(self, raises):
        cache = KeyValueCache()
        cache.append(*torch.ones(2, B, G, 3, DH))
        assert cache.nbytes == 2 * B * G * 3 * DH * 4
        with raises(
            ValueError,
            "the cache is full: it has room for max_len = 3 tokens, holds 3, and 1 "
            "more came",
        ):
            cache.append(*torch.ones(2, B, G, 1, DH))

    def test_empty(self, cache, raises):
        with raises(ValueError, "the cache is empty: no key has come yet"):
            _ = cache.keys_values
        cache.reorder(torch.tensor([1, 0]))
        assert cache.length == 0

    @pytest.mark.parametrize("which", ["key", "value"])
    def test_gradients_are_refused(self, cache, raises, which):
        new = {name: torch.ones(B, G, 1, DH) for name in ("key", "value")}
        new[which].requires_grad_()
        message = "a cache holds no gradients: use it under torch.no_grad()"
        with raises(ValueError, message):
            cache.append(**new)
        assert cache.length == cache.nbytes == 0

    def test_full(self, cache, raises):
        cache.append(*torch.ones(2, B, G, 6, DH))
        message = (
            "the cache is full: it has room for max_len = 7 tokens, holds 6, and 2 "
            "more came"
        )
        with raises(ValueError, message):
            cache.append(*torch.ones(2, B, G, 2, DH))
        assert cache.length == 6
        cache.append(*torch.ones(2, B, G, 1, DH))
        assert cache.length == 7

    @pytest.mark.parametrize(
        ("key", "value", "error", "message"),
        [
            ((B, G, 2, DH), (B, G, 1, DH), ValueError, r"value must be .*\(2, 3, 2, 5"),
            ((1, G, 1, DH), (B, G, 1, DH), ValueError, r"key must be .*not \(1, 3, 1"),
            ((B, 1, 1, DH), (B, G, 1, DH), ValueError, "key must be"),
            ((B, G, 1, 1), (B, G, 1, DH), ValueError, "key must be"),
            ((B, G, 1, DH), (B, G, 1, 1), ValueError, "value must be"),
        ],
    )
    def test_shapes_are_not_broadcast(self, cache, key, value, error, message):
        cache.append(*torch.ones(2, B, G, 1, DH))
        with pytest.raises(error, match=message):
            cache.append(torch.ones(key), torch.ones(value))
        assert cache.length == 1

    def test_the_first_value_is_as_its_key(self, cache, raises):
        message = "value must be (B, G, T, Dh) = (2, 3, 1, 5) as in the cache, not "
        with raises(ValueError, f"{message}(2, 3, 1, 1)"):
            cache.append(torch.ones(B, G, 1, DH), torch.ones(B, G, 1, 1))
        assert cache.length == 0

    def test_a_dtype_is_not_rounded(self, cache, raises):
        new = torch.ones(B, G, 1, DH)
        with raises(
            TypeError, "value is torch.float64 but the cache holds torch.float32"
        ):
            cache.append(new, new.double())

    def test_bad_sizes(self, raises):
        with raises(ValueError, "max_len (0) must be at least 1"):
            KeyValueCache(0)
        with raises(TypeError, "max_len must be an int, not float"):
            KeyValueCache(2.0)
        with raises(ValueError, "max_len (-1) must be at least 1"):
            DecoderCache(2, -1)

    @pytest.mark.parametrize("rows", [[1, 0], [1, 1], [0], [1, 0, 1, 1, 0]])
    def test_reorder(self, cache, rows):
        old = torch.randn(2, B, G, 4, DH)
        cache.append(*old)
        cache.reorder(torch.tensor(rows))
        assert cache.length == 4
        assert cache.keys_values[0].shape == (len(rows), G, 4, DH)
        new = torch.randn(2, len(rows), G, 3, DH)
        keys, values = cache.append(*new)
        assert torch.equal(keys, torch.cat((old[0][rows], new[0]), dim=2))
        assert torch.equal(values, torch.cat((old[1][rows], new[1]), dim=2))


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
