"""The cache that rolls: what it returns token by token; attention in every split."""

import pytest
import torch
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer import RotaryEmbedding, beam_search, greedy, rotary_frequencies
from tformer.models.causal_config import CausalLMConfig, Parts
from tformer.models.causal_lm import CausalLM
from tformer.nn.cache import KeyValueCache
from tformer.nn.rolling import RollingCache
from tformer.nn.self_attention import SelfAttention

B, G, Dh = 2, 3, 4


def drawn(T):
    return torch.randn(B, G, T, Dh), torch.randn(B, G, T, Dh)


@pytest.mark.parametrize("window", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("pieces", [(1,) * 17, (7, 1, 1, 8), (2,) * 8, (17,), (4, 13)])
def test_it_returns_the_new_and_the_window_before(window, pieces):
    cache, end = RollingCache(window), 0
    keys, values = drawn(sum(pieces))
    for T in pieces:
        begin, end = max(0, end - (window - 1)), end + T
        new = slice(end - T, end)
        key, value = cache.append(keys[:, :, new], values[:, :, new])
        assert torch.equal(key, keys[:, :, begin:end])
        assert torch.equal(value, values[:, :, begin:end])
        assert cache.length == end
        assert cache.nbytes == 2 * B * G * 2 * window * Dh * 4


def test_the_memory_is_taken_once_and_never_grows():
    cache, places = RollingCache(4), set()
    assert cache.nbytes == 0
    for _ in range(500):
        cache.append(*drawn(1))
        places.add((cache._storage.data_ptr(), cache.nbytes))
    assert len(places) == 1


def test_it_moves_once_in_a_window():
    """Where keys are written in place, nothing is copied: they share the storage."""
    cache, copies = RollingCache(10), 0
    for _ in range(220):
        key, _ = cache.append(*drawn(1))
        copies += key.untyped_storage() is not cache._storage.untyped_storage() and (
            key.untyped_storage().data_ptr()
            != cache._storage.untyped_storage().data_ptr()
        )
    assert copies == (220 - 20 - 1) // 12 + 1  # 20 fill it, then 9 stay and 11 more fit


def test_rows_change_places():
    cache, (keys, values) = RollingCache(3), drawn(5)
    cache.reorder(torch.tensor([0]))  # empty: nothing to do
    cache.append(keys[:, :, :4], values[:, :, :4])
    rows = torch.tensor([1, 1, 0])
    cache.reorder(rows)
    key, value = cache.append(keys[rows][:, :, 4:], values[rows][:, :, 4:])
    assert torch.equal(key, keys[rows][:, :, 2:])
    assert torch.equal(value, values[rows][:, :, 2:])


class Distances(torch.nn.Module):
    """A bias of distances: the order of the keys counts."""

    def forward(self, query_len, key_len):
        query = torch.arange(key_len - query_len, key_len)[:, None]
        return -0.3 * (query - torch.arange(key_len))


def attention(window, **parts):
    parts = {"rotary": RotaryEmbedding(rotary_frequencies(Dh)), **parts}
    options = {"num_kv_heads": 2, "head_dim": Dh, "window": window}
    return SelfAttention(11, 6, **options, **parts).eval()


@pytest.mark.parametrize("window", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "parts", [{}, {"sinks": True}, {"relative": Distances()}], ids=lambda p: str([*p])
)
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_every_split(window, parts):
    T = 9
    module, x = attention(window, **parts), torch.randn(B, T, 11)
    if module.sinks is not None:
        module.sinks.normal_()
    whole = module(x)
    for pieces in splits(T):
        cache = module.new_cache(T)
        assert type(cache) is RollingCache
        parts_of = in_pieces(
            lambda begin, end, cache=cache: module(x[:, begin:end], cache=cache), pieces
        )
        assert_close(parts_of, whole, atol=1e-13, rtol=0)


def test_which_cache():
    assert type(attention(None).new_cache(1000)) is KeyValueCache
    assert type(attention(5).new_cache(10)) is KeyValueCache
    assert type(attention(5).new_cache(11)) is RollingCache


@pytest.mark.parametrize("global_every", [None, 2])
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_a_model_writes_as_without_a_cache(global_every):
    parts = Parts(window=3, global_every=global_every, sinks=True)
    sizes = {"d_model": 24, "num_heads": 3, "num_layers": 4, "max_len": 40}
    model = CausalLM(CausalLMConfig(vocab_size=13, parts=parts, **sizes)).eval()
    for parameter in model.parameters():
        parameter.normal_(std=0.3)
    prompt = ids = torch.randint(13, (B, 4))
    for _ in range(25):
        ids = torch.cat((ids, model(ids)[:, -1:].argmax(-1)), dim=1)
    assert torch.equal(greedy(model, prompt, max_len=25), ids[:, 4:])
    assert len(ids.unique()) > 3
    rolls = [type(layer) is RollingCache for layer in model.new_cache(29).layers]
    assert rolls == [True] * 4 if global_every is None else [True, False, True, False]


@pytest.mark.usefixtures("float64")
def test_a_beam_search_goes_on_from_other_rows(monkeypatch):
    parts = Parts(window=3, sinks=True)
    sizes = {"d_model": 24, "num_heads": 3, "num_layers": 2, "max_len": 40}
    model = CausalLM(CausalLMConfig(vocab_size=13, parts=parts, **sizes)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    prompt = torch.randint(13, (B, 4))
    rolled = beam_search(model, prompt, num_beams=4, max_len=15)
    monkeypatch.setattr(
        SelfAttention, "new_cache", lambda _, max_len: KeyValueCache(max_len)
    )
    kept = beam_search(model, prompt, num_beams=4, max_len=15)
    assert torch.equal(rolled.ids, kept.ids)
    assert_close(rolled.scores, kept.scores)


def test_errors(raises):
    with raises(ValueError, "window (0) must be at least 1"):
        RollingCache(0)
    cache = RollingCache(3)
    cache.append(*drawn(2))
    key, value = drawn(1)
    for pair, kind, message in (
        (
            (key[:1], value),
            ValueError,
            "key must be (B, G, T, Dh) = (2, 3, 1, 4) as in the cache, not "
            "(1, 3, 1, 4)",
        ),
        (
            (key, value[..., :3]),
            ValueError,
            "value must be (B, G, T, Dh) = (2, 3, 1, 4) as in the cache, not "
            "(2, 3, 1, 3)",
        ),
        (
            (key, value.double()),
            TypeError,
            "value is torch.float64 but the cache holds torch.float32",
        ),
        (
            (key.clone().requires_grad_(), value),
            ValueError,
            "a cache holds no gradients: use it under torch.no_grad()",
        ),
    ):
        with raises(kind, message):
            cache.append(*pair)
    assert cache.length == 2
