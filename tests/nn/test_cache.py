"""The cache: what it holds, what it costs, and that it changes no number."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tformer import GPT, GPTConfig, MultiHeadAttention, Transformer, TransformerConfig
from tformer.nn.cache import DecoderLayerCache, KeyValueCache, ModelCache

B, G, MAX_LEN, DH = 2, 3, 7, 5
H, S, V = 6, 11, 31


class TestKeyValueCache:
    @pytest.fixture
    def cache(self):
        return KeyValueCache(B, G, MAX_LEN, DH)

    def test_it_returns_all_so_far_and_copies_nothing(self, cache):
        everything = torch.randn(2, B, G, MAX_LEN, DH)
        begin, memory = 0, cache._storage.data_ptr()
        for T in (3, 1, 2, 1):
            end = begin + T
            new = everything[:, :, :, begin:end]
            keys, values = cache.append(*new)
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
    def test_the_memory_is_as_computed(self, dtype):
        cache = KeyValueCache(B, G, MAX_LEN, DH, dtype=dtype)
        assert cache.nbytes == 2 * B * G * MAX_LEN * DH * dtype.itemsize
        assert cache.nbytes == cache._storage.untyped_storage().nbytes()
        assert cache.batch_size == B
        assert cache.max_len == MAX_LEN
        cache.append(*torch.ones(2, B, G, MAX_LEN, DH, dtype=dtype))
        cache.reorder(torch.tensor([1, 0]))
        assert cache.nbytes == cache._storage.untyped_storage().nbytes()

    def test_a_long_contexts_memory(self):
        """32 layers of width 4096, 32,768 tokens in bfloat16: 17.18 and 4.29 GB."""
        sizes = {"dtype": torch.bfloat16, "device": "meta"}
        for heads, gigabytes in ((32, 17.18), (8, 4.29)):
            layers = [KeyValueCache(1, heads, 32_768, 128, **sizes) for _ in range(32)]
            assert round(ModelCache(layers).nbytes / 1e9, 2) == gigabytes

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
        with pytest.raises(error, match=message):
            cache.append(torch.ones(key), torch.ones(value))
        assert cache.length == 0

    def test_a_dtype_is_not_rounded(self, cache, raises):
        new = torch.ones(B, G, 1, DH)
        with raises(
            TypeError, "value is torch.float64 but the cache holds torch.float32"
        ):
            cache.append(new, new.double())

    @pytest.mark.parametrize(
        ("sizes", "error", "message"),
        [
            ((0, G, MAX_LEN, DH), ValueError, r"batch_size \(0\)"),
            ((B, 0, MAX_LEN, DH), ValueError, r"num_kv_heads \(0\)"),
            ((B, G, 0, DH), ValueError, r"max_len \(0\)"),
            ((B, G, MAX_LEN, -1), ValueError, r"head_dim \(-1\)"),
            ((B, G, 2.0, DH), TypeError, "max_len must be an int"),
        ],
    )
    def test_bad_sizes(self, sizes, error, message):
        with pytest.raises(error, match=message):
            KeyValueCache(*sizes)

    @pytest.mark.parametrize("rows", [[1, 0], [1, 1], [0], [1, 0, 1, 1, 0]])
    def test_reorder(self, cache, rows):
        old = torch.randn(2, B, G, 4, DH)
        cache.append(*old)
        cache.reorder(torch.tensor(rows))
        assert cache.length == 4
        assert cache.batch_size == len(rows)
        new = torch.randn(2, len(rows), G, 3, DH)
        keys, values = cache.append(*new)
        assert torch.equal(keys, torch.cat((old[0][rows], new[0]), dim=2))
        assert torch.equal(values, torch.cat((old[1][rows], new[1]), dim=2))


def splits(length: int) -> list[tuple[int, ...]]:
    """Every way to cut so many tokens into pieces: 2^(length - 1) of them."""
    if length == 0:
        return [()]
    return [
        (first, *rest)
        for first in range(1, length + 1)
        for rest in splits(length - first)
    ]


def in_pieces(call, pieces):
    """Hand over [0, T) piece by piece: the output of all, put together."""
    ends = list(itertools.accumulate(pieces))
    return torch.cat(
        [call(end - piece, end) for piece, end in zip(pieces, ends, strict=True)],
        dim=1,
    )


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
        key_mask = attn_mask = None
        if mask == "left":
            key_mask = torch.arange(T) >= torch.tensor([0, 2, 5])[:, None]
        if mask == "holes":
            key_mask = torch.rand(3, T) < 0.6
        if mask == "rows":
            attn_mask = torch.rand(3, 1, T, T) < 0.7
        options = {"is_causal": True, "return_weights": True}
        whole, weights = attention(x, attn_mask=attn_mask, key_mask=key_mask, **options)
        for pieces in splits(T):
            cache = attention.new_cache(3, T)

            def piece(begin, end, cache=cache):
                output, piece_weights = attention(
                    x[:, begin:end],
                    attn_mask=None
                    if attn_mask is None
                    else attn_mask[:, :, begin:end, :end],
                    key_mask=None if key_mask is None else key_mask[:, :end],
                    cache=cache,
                    **options,
                )
                assert_close(piece_weights, weights[:, :, begin:end, :end])
                return output

            assert_close(in_pieces(piece, pieces), whole)
            assert cache.length == T

    @torch.no_grad()
    def test_the_fused_road_too(self, kv_heads, randomised):
        attention, T = self.attention(kv_heads, randomised), 5
        x = torch.randn(2, T, H * 4)
        key_mask = torch.arange(T) >= torch.tensor([1, 3])[:, None]
        whole = attention(x, key_mask=key_mask, is_causal=True)
        for pieces in splits(T):
            cache = attention.new_cache(2, T)
            output = in_pieces(
                lambda begin, end, cache=cache: attention(
                    x[:, begin:end],
                    key_mask=key_mask[:, :end],
                    is_causal=True,
                    cache=cache,
                ),
                pieces,
            )
            assert_close(output, whole)

    @torch.no_grad()
    def test_a_long_prompt_in_large_chunks(self, randomised):
        """More queries than the fused road takes at a time, after a past."""
        attention = self.attention(3, randomised)
        x = torch.randn(1, 700, H * 4)
        key_mask = torch.rand(1, 700) < 0.9
        whole = attention(x, key_mask=key_mask, is_causal=True)
        cache = attention.new_cache(1, 700)
        output = in_pieces(
            lambda begin, end: attention(
                x[:, begin:end], key_mask=key_mask[:, :end], is_causal=True, cache=cache
            ),
            (90, 300, 1, 309),
        )
        assert_close(output, whole)

    @torch.no_grad()
    def test_a_memory_is_projected_once(self, kv_heads, randomised):
        attention = self.attention(kv_heads, randomised)
        x, memory = torch.randn(2, 5, H * 4), torch.randn(2, S, H * 4)
        key_mask = torch.rand(2, S) < 0.6
        whole = attention(x, memory, key_mask=key_mask)
        calls = []
        for projection in (attention.k_proj, attention.v_proj):
            projection.register_forward_hook(lambda *_: calls.append(1))
        cache = attention.new_cache(2, S)
        output = in_pieces(
            lambda begin, end: attention(
                x[:, begin:end], memory, key_mask=key_mask, cache=cache
            ),
            (2, 1, 1, 1),
        )
        assert_close(output, whole)
        assert len(calls) == 2
        assert cache.length == S

    def test_a_mask_must_speak_of_old_and_new_keys(self, randomised):
        attention = self.attention(3, randomised)
        cache, x = attention.new_cache(2, 5), torch.randn(2, 3, H * 4)
        with torch.no_grad():
            attention(x, cache=cache)
            mask = torch.ones(2, 2, dtype=torch.bool)
            with pytest.raises(ValueError, match=r"\(B, S\) = \(2, 5\), not \(2, 2\)"):
                attention(x[:, :2], key_mask=mask, cache=cache)


def test_under_autocast_the_cache_holds_what_the_projections_return():
    attention = MultiHeadAttention(8, 2)
    x = torch.randn(1, 4, 8)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        cache = attention.new_cache(1, 4)
        pieces = [
            attention(part, is_causal=True, cache=cache) for part in x.split(2, 1)
        ]
        whole = attention(x, is_causal=True)
    assert cache.keys_values[0].dtype == torch.bfloat16
    assert_close(torch.cat(pieces, dim=1), whole, atol=0.02, rtol=0.02)


def transformer(**changes) -> Transformer:
    sizes = {"vocab_size": V, "d_model": 24, "num_heads": H, "d_ff": 17}
    config = TransformerConfig.tiny(**{**sizes, "max_len": 13, **changes})
    return Transformer(config).eval()


@pytest.mark.usefixtures("float64")
class TestTransformer:
    @torch.no_grad()
    @pytest.mark.parametrize("norm_first", [False, True])
    @pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
    def test_every_split(self, kv_heads, norm_first, positions, randomised):
        T = 5
        model = randomised(
            transformer(
                num_kv_heads=kv_heads, norm_first=norm_first, positions=positions
            )
        )
        src, tgt = torch.randint(1, V, (3, S)), torch.randint(1, V, (3, T))
        src[1, 4:] = src[2, 1:] = 0  # padding
        mask = model.source_mask(src)
        memory = model.encode(src)
        whole = model(src, tgt)
        for pieces in splits(T):
            cache = model.new_cache(3, T)
            logits = in_pieces(
                lambda begin, end, cache=cache: model.decode(
                    tgt[:, begin:end], memory, memory_key_mask=mask, cache=cache
                ),
                pieces,
            )
            assert_close(logits, whole)
            assert cache.length == T

    @torch.no_grad()
    def test_padding_on_the_left(self, randomised):
        model, T = randomised(transformer(num_kv_heads=2)), 6
        src, tgt = torch.randint(1, V, (3, S)), torch.randint(1, V, (3, T))
        real = torch.arange(T) >= torch.tensor([0, 3, 5])[:, None]
        whole = model(src, tgt, tgt_key_mask=real)
        memory = model.encode(src)
        for pieces in splits(T):
            cache = model.new_cache(3, T)
            logits = in_pieces(
                lambda begin, end, cache=cache: model.decode(
                    tgt[:, begin:end],
                    memory,
                    tgt_key_mask=real[:, :end],
                    cache=cache,
                ),
                pieces,
            )
            assert_close(logits[real], whole[real])
        assert_close(model.decode(tgt, memory, tgt_key_mask=real)[real], whole[real])

    @torch.no_grad()
    def test_the_memory_is_projected_once_in_each_layer(self):
        model = transformer()
        calls = []
        for layer in model.stacks.decoder.layers:
            layer.cross_attn.k_proj.register_forward_hook(lambda *_: calls.append(1))
        memory = model.encode(torch.randint(1, V, (2, S)))
        cache = model.new_cache(2, 5)
        for token in torch.randint(1, V, (2, 5)).split(1, dim=1):
            model.decode(token, memory, cache=cache)
        assert len(calls) == 2

    @torch.no_grad()
    def test_beams_of_one_source_ask_one_memory(self):
        model, beams = transformer(num_kv_heads=2), 3
        src = torch.randint(1, V, (2, S))
        src[1, 4:] = 0
        mask, memory = model.source_mask(src), model.encode(src)
        tgt = torch.randint(1, V, (2 * beams, 5))
        whole = model(src.repeat_interleave(beams, 0), tgt)
        for pieces in ((1, 1, 1, 1, 1), (2, 3)):
            cache = model.new_cache(2 * beams, 5)
            logits = in_pieces(
                lambda begin, end, cache=cache: model.decode(
                    tgt[:, begin:end], memory, memory_key_mask=mask, cache=cache
                ),
                pieces,
            )
            assert_close(logits, whole)
            layer = cache.layers[0]
            assert isinstance(layer, DecoderLayerCache)
            assert layer.memory.batch_size == 2

    @torch.no_grad()
    def test_rows_that_do_not_divide(self, raises):
        model = transformer()
        memory = model.encode(torch.randint(1, V, (2, S)))
        message = (
            "x must have as many rows as the memory, or so many for each of its, "
            "not 3 for 2"
        )
        with raises(ValueError, message):
            ids = torch.randint(1, V, (3, 2))
            model.decode(ids, memory, cache=model.new_cache(3, 2))

    @torch.no_grad()
    def test_reorder_lets_a_row_go_on_from_another(self):
        model, beams = transformer(), 3
        src = torch.randint(1, V, (1, S))
        memory = model.encode(src)
        tgt = torch.randint(1, V, (beams, 5))
        cache, rows = model.new_cache(beams, 5), torch.tensor([2, 2, 0])
        model.decode(tgt[:, :3], memory, cache=cache)
        cache.reorder(rows)
        new = model.decode(tgt[:, 3:], memory, cache=cache)
        tgt[:, :3] = tgt[rows, :3]
        assert_close(new, model(src.expand(beams, -1), tgt)[:, 3:])

    def test_the_memory_of_all_layers(self):
        model = transformer(num_kv_heads=2, num_decoder_layers=3)
        cache = model.new_cache(2, 9)
        size = 2 * 3 * 2 * 4 * 8  # keys and values, layers, G, Dh, bytes
        assert cache.nbytes == size * 2 * 9
        assert cache.length == 0
        with torch.no_grad():
            memory = model.encode(torch.randint(1, V, (2, S)))
            model.decode(torch.ones(2, 4, dtype=torch.int64), memory, cache=cache)
        assert cache.nbytes == size * 2 * (9 + S)
        assert cache.length == 4

    @torch.no_grad()
    def test_full(self):
        model = transformer()
        memory = model.encode(torch.ones(1, S, dtype=torch.int64))
        cache = model.new_cache(1, 3)
        with pytest.raises(ValueError, match=r"the cache is full.*max_len = 3"):
            model.decode(torch.ones(1, 4, dtype=torch.int64), memory, cache=cache)


@pytest.mark.usefixtures("float64")
class TestGPT:
    @torch.no_grad()
    def test_every_split(self, kv_heads, randomised):
        config = GPTConfig.tiny(
            vocab_size=V, d_model=24, num_heads=H, num_kv_heads=kv_heads, max_len=6
        )
        model = randomised(GPT(config).eval())
        ids = torch.randint(0, V, (3, 6))
        whole, weights = model(ids, return_weights=True)
        for pieces in splits(6):
            cache = model.new_cache(3, 6)
            logits = in_pieces(
                lambda begin, end, cache=cache: model(ids[:, begin:end], cache=cache),
                pieces,
            )
            assert_close(logits, whole)
        cache = model.new_cache(3, 6)
        model(ids[:, :4], cache=cache)
        last, last_weights = model(
            ids[:, 4:], cache=cache, last_only=True, return_weights=True
        )
        assert_close(last, whole[:, -1:])
        for ours, layer in zip(last_weights, weights, strict=True):
            assert_close(ours, layer[:, :, 4:])

    @given(
        st.lists(st.integers(1, 9), min_size=1, max_size=5),
        st.sampled_from([1, 2, 4]),
        st.booleans(),
        st.integers(1, 3),
    )
    @torch.no_grad()
    def test_longer_prompts(self, pieces, kv_heads, bias, batch):
        T = sum(pieces)
        config = GPTConfig.tiny(
            vocab_size=V, d_model=16, num_kv_heads=kv_heads, bias=bias, max_len=T
        )
        model = GPT(config).eval()
        ids = torch.randint(0, V, (batch, T))
        cache = model.new_cache(batch, T)
        logits = in_pieces(
            lambda begin, end: model(ids[:, begin:end], cache=cache), pieces
        )
        assert_close(logits, model(ids))

    @torch.no_grad()
    def test_a_text_longer_than_the_positions(self):
        model = GPT(GPTConfig.tiny(vocab_size=V, max_len=5))
        cache = model.new_cache(1, 8)
        model(torch.zeros(1, 5, dtype=torch.int64), cache=cache)
        with pytest.raises(ValueError, match=r"positions up to 6 but max_len is 5"):
            model(torch.zeros(1, 1, dtype=torch.int64), cache=cache)
