"""The cache: what it holds, what it costs, and what it refuses."""

import pytest
import torch

from tformer.nn.cache import KeyValueCache
from tformer.nn.latent_cache import LatentCache
from tformer.nn.linear_attention import StateCache
from tformer.nn.model_cache import DecoderCache, StackCache
from tformer.nn.rolling import RollingCache

B, G, MAX_LEN, DH = 2, 3, 7, 5


@pytest.mark.parametrize("kind", [KeyValueCache, RollingCache])
class TestWhatNoCacheTakes:
    """One check for all: `check_new`."""

    @pytest.mark.parametrize("which", [0, 1])
    def test_a_refused_token_leaves_the_cache_as_it_was(self, kind, which, raises):
        cache, right = kind(MAX_LEN), [torch.randn(B, G, 2, DH) for _ in range(2)]
        name = ("key", "value")[which]

        def attempt(error, message, wrong):
            tokens = list(right)
            tokens[which] = wrong
            with raises(error, message):
                cache.append(*tokens)

        message = "a cache holds no gradients: use it under torch.no_grad()"
        attempt(ValueError, message, right[which].clone().requires_grad_())
        assert (cache.nbytes, cache.length) == (0, 0)
        cache.append(*right)
        message = f"{name} must be (B, G, T, Dh) = (2, 3, 2, 5) as in the cache, not "
        if which:  # of a longer key one token more is no fault
            attempt(ValueError, message + "(2, 3, 1, 5)", torch.randn(B, G, 1, DH))
        attempt(ValueError, message + "(2, 1, 2, 5)", torch.randn(B, 1, 2, DH))
        attempt(ValueError, message + "(2, 3, 2, 4)", torch.randn(B, G, 2, DH - 1))
        message = f"{name} is torch.float64 but the cache holds torch.float32"
        attempt(TypeError, message, right[which].double())
        assert cache.length == 2

    def test_the_first_value_is_as_its_key(self, kind, raises):
        cache, key = kind(MAX_LEN), torch.randn(B, G, 2, DH)
        message = "value is torch.float64 but the cache holds torch.float32"
        with raises(TypeError, message):
            cache.append(key, key.double())
        assert (cache.nbytes, cache.length) == (0, 0)


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

    @pytest.mark.parametrize("rows", [[-1, 0], [2, 0], [True, False]])
    def test_rows_are_neither_counted_from_the_end_nor_a_mask(self, cache, rows):
        cache.append(*torch.randn(2, B, G, 4, DH))
        with pytest.raises((IndexError, RuntimeError)):
            cache.reorder(torch.tensor(rows))

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


class TestTruncate:
    """After a cut the next tokens stand where the forgotten ones stood."""

    def test_key_value_cache(self):
        cache = KeyValueCache(MAX_LEN)
        first, wrong, right = (torch.randn(2, B, G, T, DH) for T in (3, 4, 2))
        cache.append(*first)
        cache.append(*wrong)
        memory = cache.keys_values[0].data_ptr()
        cache.truncate(4)
        keys, values = cache.append(*right)
        for ours, i in ((keys, 0), (values, 1)):
            parts = (first[i], wrong[i, :, :, :1], right[i])
            assert torch.equal(ours, torch.cat(parts, dim=2))
        assert keys.data_ptr() == memory
        cache.truncate(0)
        assert cache.length == 0

    def test_what_is_left_is_not_the_projection_of_the_whole_source(self, raises):
        cache, memory = KeyValueCache(), torch.randn(B, 3, DH)
        cache.append(*torch.randn(2, B, G, 3, DH), sources=(memory, memory))
        cache.read(memory, memory)
        cache.truncate(2)
        with raises(ValueError, "the cache holds the keys of another `key` than this"):
            cache.read(memory, memory)

    @pytest.mark.parametrize("kind", [KeyValueCache, LatentCache])
    def test_what_cannot_be_kept(self, kind, raises):
        cache = kind(9)
        new = torch.ones(1, 4, 2)
        cache.append(*([new[None]] * 2 if kind is KeyValueCache else [new]))
        message = "length (5) must be at most 4: so many tokens are held"
        with raises(ValueError, message):
            cache.truncate(5)
        with raises(ValueError, "length (-1) must be at least 0"):
            cache.truncate(-1)
        with raises(TypeError, "length must be an int, not float"):
            cache.truncate(1.0)
        assert cache.length == 4

    def test_latent_cache(self):
        cache = LatentCache(6)
        first, right = torch.randn(2, 5, 3), torch.randn(2, 4, 3)
        cache.append(first)
        cache.truncate(2)
        expected = torch.cat((first[:, :2], right), dim=1)
        assert torch.equal(cache.append(right), expected)

    def test_all_layers_of_a_decoder_and_of_a_stack(self):
        decoder, stack = DecoderCache(2, 5), StackCache([KeyValueCache(5)] * 1)
        for each in (*(layer.target for layer in decoder.layers), *stack.layers):
            each.append(*torch.ones(2, 1, 1, 4, 2))
        for whole in (decoder, stack):
            whole.truncate(1)
            assert whole.length == 1
        assert [layer.target.length for layer in decoder.layers] == [1, 1]

    def test_a_state_cannot_be_cut_back(self, raises):
        cache = StateCache()
        cache.keep(torch.zeros(1, 1, 2, 2), 3)
        cache.truncate(3)
        message = (
            "a state of 3 tokens cannot be cut back to 2: it is a sum, in which no "
            "token can be told apart"
        )
        with raises(ValueError, message):
            cache.truncate(2)

    @pytest.mark.parametrize("spare", [1, 3])
    def test_a_cache_that_rolls_keeps_spare_tokens(self, spare):
        W, x = 3, torch.randn(2, B, G, 40, DH)
        for wrong in range(spare + 1):
            cache = RollingCache(W)
            cache.spare = spare
            for t in range(40):
                seen = cache.append(*x[:, :, :, t : t + 1])
                for ours, all_ in zip(seen, x, strict=True):
                    assert torch.equal(ours, all_[:, :, max(0, t - W + 1) : t + 1])
                if wrong:
                    cache.append(*torch.randn(2, B, G, wrong, DH))
                    cache.truncate(t + 1)
            assert cache.copy(9).length == cache.length == 40
            assert cache.nbytes == 2 * B * G * (2 * W + spare) * DH * 4

    def test_a_cache_that_rolls_without_spare_tokens(self, raises):
        cache = RollingCache(3)
        cache.append(*torch.ones(2, 1, 1, 20, 2))
        message = (
            "length (19) is too short: of 20 tokens the oldest are gone, and only "
            "spare = 0 can be forgotten"
        )
        with raises(ValueError, message):
            cache.truncate(19)
