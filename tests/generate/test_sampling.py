"""Filters by hand, and draws counted against their probabilities."""

import math

import pytest
import torch
from torch.testing import assert_close

from brute_force import tiny_gpt
from tformer import greedy, sample
from tformer.generate.sampling import draw, min_p_filter, top_k_filter, top_p_filter

SHARES = torch.tensor([[0.1, 0.4, 0.05, 0.3, 0.15], [0.2, 0.2, 0.2, 0.2, 0.2]])


def kept(logits):
    return [(row > -math.inf).nonzero().flatten().tolist() for row in logits]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("p", "tokens"),
    [
        *((1.0, [1]), (0.76, [1]), (0.74, [1, 3]), (0.3, [1, 3, 4])),
        (0.01, [0, 1, 2, 3, 4]),
    ],
)
def test_min_p_by_hand(p, tokens):
    logits = SHARES.log() + 3.0  # a shift of all changes nothing
    filtered = min_p_filter(logits, p)
    assert kept(filtered) == [tokens, [0, 1, 2, 3, 4]]
    assert torch.equal(filtered[0, tokens], logits[0, tokens])


def test_draws_have_their_shares():
    n = 40_000
    logits = SHARES.log()[:1].expand(n, -1)
    counts = draw(logits, seeded()).bincount(minlength=5) / n
    assert_close(counts, SHARES[0], atol=0.01, rtol=0)
    impossible = logits.clone()
    impossible[:, 1] = -math.inf
    counts = draw(impossible, seeded()).bincount(minlength=5)
    assert counts[1] == 0
    assert (counts[[0, 2, 3, 4]] > 0).all()


def test_a_waiting_time_of_0_draws_nothing_impossible(monkeypatch):
    """As MPS makes them in torch 2.13: one of 30 million (pytorch issue 192577)."""
    real = torch.Tensor.exponential_

    def with_zeros(x, **options):
        real(x, **options)[:, 1::2] = -0.0
        return x

    monkeypatch.setattr(torch.Tensor, "exponential_", with_zeros)
    logits = torch.tensor([[0.0, -math.inf, 1.0, -math.inf]]).expand(50, -1)
    assert set(draw(logits, seeded()).tolist()) == {0, 2}
    possible = torch.tensor([[0.0, -1.0, -math.inf]]).expand(50, -1)
    assert draw(possible, seeded()).tolist() == [1] * 50


def test_a_seed_repeats_and_another_does_not():
    model, prompts = tiny_gpt(0, vocab_size=50), torch.randint(0, 50, (4, 3))

    def text(generator=None):
        options = {"max_len": 8, "temperature": 3.0, "generator": generator}
        return sample(model, prompts, **options)

    assert torch.equal(text(seeded(5)), text(seeded(5)))
    assert not torch.equal(text(seeded(5)), text(seeded(6)))
    torch.manual_seed(5)
    first = text()
    assert not torch.equal(first, text())
    torch.manual_seed(5)
    assert torch.equal(first, text())


@pytest.mark.parametrize(("n", "k"), [(10, 3), (10, 6), (20, 6), (1000, 37)])
def test_of_even_tokens_no_token_too_many_is_kept(n, k):
    """The sum of k is no more than p = k / n: they must do."""
    assert (top_p_filter(torch.zeros(1, n), k / n) == 0).sum() == k
    assert (top_k_filter(torch.zeros(1, n), k) == 0).sum() == k


def test_top_p_sums_16_bit_logits_in_32():
    logits = torch.randn(1, 5000).bfloat16()
    kept = (top_p_filter(logits, 0.95) > -math.inf).sum()
    assert kept == (top_p_filter(logits.float(), 0.95) > -math.inf).sum()


@pytest.mark.parametrize(
    "filters", [{}, {"top_k": 1}, {"top_p": 1e-6}, {"top_p": 1e-320}, {"min_p": 1.0}]
)
@pytest.mark.parametrize(
    "temperature", [1e-320, 1e-300, 1e-39, 1e-4, 1.0, 1e30, 1e40, 1e300]
)
def test_the_narrowest_filters_are_greedy_at_any_temperature(temperature, filters):
    if not filters and temperature > 1e-4:
        return
    model, prompts = tiny_gpt(1, vocab_size=9), torch.randint(0, 9, (6, 3))
    options = {"max_len": 7, "eos_id": 4}
    ids = sample(model, prompts, temperature=temperature, **filters, **options)
    assert torch.equal(ids, greedy(model, prompts, **options))


def test_each_filter_sees_what_the_one_before_left():
    """With p of all, 0.7 is reached by two tokens; of the best two, by both too."""
    model, prompt = tiny_gpt(2, vocab_size=9), torch.tensor([[1, 2]])
    with torch.no_grad():
        logits = model(prompt)[:, -1] / 1.5
    allowed = top_k_filter(logits, 4)
    allowed = min_p_filter(top_p_filter(allowed, 0.9), 0.2)
    ids = sample(
        model,
        prompt.expand(3000, -1),
        max_len=1,
        temperature=1.5,
        top_k=4,
        top_p=0.9,
        min_p=0.2,
        generator=seeded(),
    )
    counts = ids.flatten().bincount(minlength=9) / 3000
    assert_close(counts, allowed.softmax(-1)[0], atol=0.04, rtol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, r"temperature \(0.0\) must be above 0"),
        ({"temperature": math.inf}, r"temperature \(inf\)"),
        ({"temperature": math.nan}, r"temperature \(nan\)"),
        ({"top_k": 0}, r"top_k \(0\) must be at least 1"),
        ({"top_k": 5}, r"top_k \(5\) must be at most vocab_size = 4"),
        ({"top_p": 0.0}, r"top_p \(0.0\) must be in \(0, 1\]"),
        ({"top_p": 1.1}, r"top_p \(1.1\)"),
        ({"min_p": 0.0}, r"min_p \(0.0\) must be in \(0, 1\]"),
        ({"min_p": 2.0}, r"min_p \(2.0\)"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        sample(tiny_gpt(0), torch.zeros(1, 2).long(), max_len=3, **options)
