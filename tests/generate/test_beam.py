"""Beam search against a search in lists, and against all texts that there are."""

import math

import pytest
import torch

from brute_force import every_text, falling, tiny_gpt, tiny_transformer
from tformer import CausalLM, beam_search, greedy


@torch.no_grad()
def textbook(model, prompt, K, max_len, stops, alpha):
    """The search in lists, one text at a time, without ever stopping early."""
    live, ended = [((), 0.0)], []
    for length in range(1, max_len + 1):
        candidates = []
        for ids, total in live:
            logits = model(torch.tensor([[*prompt.tolist(), *ids]]))
            shares = logits[0, -1].log_softmax(-1).tolist()
            candidates += [((*ids, i), total + share) for i, share in enumerate(shares)]
        candidates.sort(key=lambda candidate: -candidate[1])
        divisor = ((5 + length) / 6) ** alpha
        for ids, total in candidates[:K]:
            if ids[-1] in stops or length == max_len:
                ended.append((total / divisor, ids))
        live = [c for c in candidates if c[0][-1] not in stops][:K]
    return sorted(ended, reverse=True)[:K]


@pytest.mark.by_day(12)
@pytest.mark.parametrize("stops", [[], [2], [1, 2]])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0, -0.7])
@pytest.mark.parametrize(("K", "max_len"), [(1, 7), (2, 7), (3, 7), (300, 4)])
def test_the_search_is_the_textbooks(K, max_len, alpha, stops):
    """For each row of a batch; 300 beams hold all texts: the search is exhaustive."""
    steps, options = [], {"num_beams": K, "max_len": max_len, "eos_id": stops}
    for seed in range(6 if K < 300 else 1):
        model, prompts = tiny_gpt(seed), torch.tensor([[3, 0], [1, 1]])
        calls = []
        hook = model.register_forward_hook(lambda *_, c=calls: c.append(1))
        ids, scores = beam_search(model, prompts, length_penalty=alpha, **options)
        hook.remove()
        steps.append(len(calls))
        assert (ids.dtype, scores.dtype) == (torch.int64, torch.float32)
        assert not scores.requires_grad
        for b in range(2):
            expected = textbook(model, prompts[b], K, max_len, stops, alpha)
            n = len(expected)
            wanted = [score for score, _ in expected]
            assert scores[b, :n].tolist() == pytest.approx(wanted, abs=1e-4)
            assert (scores[b, n:] == -math.inf).all()
            for row, (_, text) in zip(ids[b].tolist(), expected[:20], strict=False):
                assert tuple(row[: len(text)]) == text
                assert {*row[len(text) :]} <= {*stops[:1]}  # filled up
    if alpha == 0 and stops and K < 300:
        assert min(steps) < 7  # it stops early
    if alpha == 0 and K == 1:
        alone = greedy(model, prompts, max_len=max_len, eos_id=stops)
        assert torch.equal(ids[:, 0], alone)


@pytest.mark.parametrize("seed", range(2))
def test_a_transformers_too_with_padded_sources(seed):
    model = tiny_transformer(seed, vocab_size=5, pad_id=0)
    src = torch.tensor([[3, 4, 1, 2], [4, 1, 0, 0]])
    beams = beam_search(
        model, src, num_beams=300, max_len=3, bos_id=1, eos_id=2, length_penalty=0.6
    )
    for b, source in enumerate((src[0], src[1, :2])):
        texts = every_text(model, source, 3, [2], bos_id=1)
        (score, text), *_ = falling(texts, 0.6)
        assert beams.scores[b, 0].item() == pytest.approx(score, abs=1e-4)
        assert beams.ids[b, 0, : len(text)].tolist() == text
        assert (beams.ids[b, 0, len(text) :] == 0).all()


class Scripted(CausalLM):
    """Gives the same probabilities whatever it reads."""

    def forward(self, ids, *, cache=None, last_only=False):
        super().forward(ids, cache=cache)  # fills the cache
        self.calls += 1
        return torch.tensor(self.shares).log().expand(len(ids), 1, -1)


def scripted(*shares: float) -> Scripted:
    model = tiny_gpt(0)
    model.__class__ = Scripted
    model.shares, model.calls = shares, 0
    return model


def test_the_end_at_once_is_kept_until_nothing_can_beat_it():
    prompt, options = torch.tensor([[0]]), {"num_beams": 1, "max_len": 9, "eos_id": 2}
    model = scripted(0.05, 0.4, 0.5, 0.05)
    beams = beam_search(model, prompt, length_penalty=0, **options)
    assert beams.ids.tolist() == [[[2]]]
    assert beams.scores.item() == pytest.approx(math.log(0.5))
    assert model.calls == 1  # nothing that goes on can have a larger sum

    model = scripted(0.025, 0.45, 0.5, 0.025)  # a long text is divided by 29.6
    beams = beam_search(model, prompt, length_penalty=4, **options)
    assert beams.ids.tolist() == [[[1] * 8 + [2]]]
    total = 8 * math.log(0.45) + math.log(0.5)
    assert beams.scores.item() == pytest.approx(total * (6 / 14) ** 4, rel=1e-4)


@pytest.mark.parametrize("alpha", [-240, 240])
def test_a_large_penalty_stays_in_float32(alpha):
    """(8 / 6) ** 240 is 2 ** 99.6: 250 would be refused."""
    prompts = torch.zeros(2, 2).long()
    beams = beam_search(
        tiny_gpt(0), prompts, num_beams=2, max_len=3, length_penalty=alpha
    )
    assert beams.scores.isfinite().all()
    assert (beams.scores < 0).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_beams": 0}, ValueError, r"num_beams \(0\)"),
        ({"num_beams": 2.0}, TypeError, "num_beams must be an int"),
        ({"max_len": 12}, ValueError, r"max_len \(12\) must be at most 11.*\(12\)"),
        ({"length_penalty": math.nan}, ValueError, r"length_penalty \(nan\)"),
        ({"length_penalty": 250}, ValueError, r"length_penalty \(250\) .* by 2\^104"),
        ({"length_penalty": -1e4}, ValueError, r"\(-10000.0\) .* 2\^-41"),
        ({"eos_id": [0, 1, 2, 3]}, ValueError, "leaves no token"),
        ({"window": 3}, ValueError, r"window \(3\) is not for beam search"),
        ({"given": [[0], [1, 2]]}, ValueError, "prompts of one length"),
    ],
)
def test_bad_input_is_named(options, error, message):
    given = {"given": torch.zeros(2, 2).long(), "num_beams": 2, "max_len": 3}
    with pytest.raises(error, match=message):
        beam_search(tiny_gpt(0), **{**given, **options})
