"""The indexer: its definition, what it chooses, its loss, and its cache."""

import itertools
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer import MultiHeadAttention
from tformer.nn import (
    ALiBi,
    IndexedAttention,
    Indexer,
    RotaryEmbedding,
    causal_mask,
    choose_keys,
    index_loss,
    index_scores,
    record_weights,
    rotary_frequencies,
)

B, T, S, D, H, DH = 2, 5, 7, 6, 3, 4
EXACT = {"atol": 1e-13, "rtol": 0}


def made(top_k, **options):
    """An attention of two heads, and an indexer of three, both with rotation."""
    rotary = RotaryEmbedding(rotary_frequencies(4))
    attention = MultiHeadAttention(D, 2, head_dim=4, rotary=rotary, **options)
    return IndexedAttention(attention, Indexer(D, H, DH, top_k=top_k, rotary=rotary))


@pytest.mark.usefixtures("float64")
def test_scores_are_their_definition():
    q, k, w = torch.randn(B, H, T, DH), torch.randn(B, 1, S, DH), torch.randn(B, H, T)
    wanted = torch.zeros(B, 1, T, S)
    for b, t, s in itertools.product(range(B), range(T), range(S)):
        for h in range(H):
            product = float(q[b, h, t] @ k[b, 0, s]) / DH**0.5
            wanted[b, 0, t, s] += w[b, h, t] * max(product, 0) / H**0.5
    assert_close(index_scores(q, k, w), wanted, **EXACT)


def test_the_best_of_those_that_it_may_see():
    scores = torch.tensor([[[[3.0, 1, 2, 9], [-5, -1, -2, -9], [0, 7, 8, 9]]]])
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 0, 0]], dtype=torch.bool)
    chosen = choose_keys(scores, 2, mask)
    assert chosen.int()[0, 0].tolist() == [[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 0]]
    assert torch.equal(choose_keys(scores, 9, mask)[0, 0], mask)
    equal = choose_keys(torch.zeros(1, 1, 1, 50), 3, torch.ones(1, 50).bool())
    assert equal.flatten().nonzero().flatten().tolist() == [0, 1, 2]


@pytest.mark.usefixtures("float64")
def test_with_all_keys_it_is_attention_itself():
    module, x = made(T), torch.randn(B, T, D)
    assert_close(module(x, is_causal=True), module.attention(x, is_causal=True))
    assert_close(module(x), module.attention(x))
    few = made(2)
    assert not torch.allclose(few(x, is_causal=True), few.attention(x, is_causal=True))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("is_causal", [False, True])
def test_a_query_sees_k_keys_and_no_later_one(is_causal):
    module, x = made(2), torch.randn(B, T, D)
    hidden = torch.ones(B, 1, 1, T, dtype=torch.bool)
    hidden[0, ..., 1] = False
    with record_weights(module) as weights:
        module(x, hidden, is_causal=is_causal)
    [seen] = [w > 0 for w in weights.values()]
    allowed = (causal_mask(T) if is_causal else torch.ones(T, T).bool()) & hidden
    wanted = allowed.sum(-1).clamp(max=2)
    assert torch.equal(seen.sum(-1), wanted.expand(B, 2, T))
    assert not (seen & ~allowed).any()


@pytest.mark.usefixtures("float64")
def test_the_loss_is_its_formula_and_teaches_the_indexer_alone():
    module, x = made(2), torch.randn(B, T, D)
    with record_weights(module.attention) as weights:
        module.attention(x, is_causal=True)
    [p] = weights.values()
    scores, mask = module.indexer(x), causal_mask(T)
    loss, wanted = index_loss(scores, p, mask), 0.0
    for b, t in itertools.product(range(B), range(T)):
        mean = p[b, :, t, : t + 1].mean(0)
        log_q = scores[b, 0, t, : t + 1].log_softmax(-1)
        wanted += (mean * (mean.log() - log_q)).sum() / (B * T)
    assert_close(loss, wanted, **EXACT)
    assert loss > 0
    loss.backward()
    for name, weight in module.named_parameters():
        learns = name.startswith("indexer") and name != "indexer.k_norm.bias"
        assert not learns or weight.grad.any(), name
        assert name.startswith("indexer") or weight.grad is None, name
    same = p.mean(1, keepdim=True).log()
    assert_close(index_loss(same, p, mask), torch.zeros(()), **EXACT)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("top_k", [1, 3, 9])
def test_cached_in_every_split(top_k):
    module, x = made(top_k), torch.randn(B, T, D)
    with torch.no_grad():
        whole = module(x, is_causal=True)
        for pieces in splits(T):
            cache = module.new_cache(T)

            def call(start, end, cache=cache):
                return module(x[:, start:end], is_causal=True, cache=cache)

            assert_close(in_pieces(call, pieces), whole, rtol=0, atol=1e-12)
            assert cache.length == T
            assert cache.nbytes == 8 * B * T * (2 * 2 * 4 + DH)
        cache = module.new_cache(T + 1)
        module(x[:, :4], is_causal=True, cache=cache)
        cache.truncate(3)
        other = cache.copy(T)
        cache.reorder(torch.tensor([1, 0]))
        for held, text in ((cache, x.flip(0)), (other, x)):
            ours = module(text[:, 3:], is_causal=True, cache=held)
            assert_close(ours, module(text, is_causal=True)[:, 3:])


def test_what_is_refused(raises):
    attention = MultiHeadAttention(D, 2)
    with raises(ValueError, "attention and indexer must have one width, not 6 and 8"):
        IndexedAttention(attention, Indexer(8, 1, 2, top_k=1))
    window = partial(MultiHeadAttention, D, 2, window=3)
    with raises(ValueError, "window (3) is not for an indexer"):
        IndexedAttention(window(), Indexer(D, 1, 2, top_k=1))
    with raises(ValueError, "top_k (0) must be at least 1"):
        Indexer(D, 1, 2, top_k=0)
    with raises(ValueError, "x must be (batch, length, d_model = 6), not (2, 5, 8)"):
        Indexer(D, 1, 2, top_k=1)(torch.zeros(2, 5, 8))


@pytest.mark.usefixtures("float64")
def test_other_parts_of_attention_stay():
    attention = MultiHeadAttention(D, 2, relative=ALiBi(2))
    module, x = (
        IndexedAttention(attention, Indexer(D, 1, 2, top_k=T)),
        torch.randn(B, T, D),
    )
    assert_close(module(x, is_causal=True), attention(x, is_causal=True))
