"""Beam search against all texts that there are."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brute_force import every_text, falling, tiny_gpt, tiny_transformer
from tformer import CausalLM, beam_search, greedy

STOPS = [[], [2], [1, 2]]


def rows_of(ids, text):
    """Cut the filling off."""
    return ids.tolist()[: len(text)]


@pytest.mark.parametrize("stops", STOPS)
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5, -0.7])
def test_a_wide_beam_is_an_exhaustive_search(stops, alpha):
    model, prompts = tiny_gpt(1), torch.tensor([[0, 3], [1, 1]])
    beams = beam_search(
        model, prompts, num_beams=300, max_len=4, eos_id=stops, length_penalty=alpha
    )
    for b in range(2):
        expected = falling(every_text(model, prompts[b], 4, stops), alpha)
        assert len(expected) == {0: 256, 1: 121, 2: 46}[len(stops)]
        scores = beams.scores[b]
        assert scores[: len(expected)].tolist() == pytest.approx(
            [score for score, _ in expected], abs=1e-4
        )
        assert (scores[len(expected) :] == -math.inf).all()
        for row, (_, text) in zip(beams.ids[b], expected[:20], strict=False):
            assert rows_of(row, text) == text
            assert len(set(row.tolist()[len(text) :])) <= 1
    assert beams.ids.shape == (2, 300, 4)
    assert beams.ids.dtype == torch.int64
    assert beams.scores.dtype == torch.float32
    assert not beams.scores.requires_grad


@pytest.mark.parametrize("seed", range(4))
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
        assert rows_of(beams.ids[b, 0], text) == text
        assert (beams.ids[b, 0, len(text) :] == 0).all()


@given(
    st.integers(0, 10_000),
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from(STOPS),
    st.sampled_from([0.0, 0.6, 1.0, -0.5]),
    st.integers(1, 3),
)
def test_every_score_is_that_of_its_text(seed, num_beams, max_len, stops, alpha, B):
    """Whatever the width: falling, no text twice, and each as the model says."""
    model, prompts = tiny_gpt(seed), torch.randint(0, 4, (B, 2))
    options = {"max_len": max_len, "eos_id": stops, "length_penalty": alpha}
    beams = beam_search(model, prompts, num_beams=num_beams, **options)
    for b in range(B):
        expected = falling(every_text(model, prompts[b], max_len, stops), alpha)
        of_text = {tuple(text): score for score, text in expected}
        seen = []
        for row, score in zip(*(x[b].tolist() for x in beams), strict=True):
            if score == -math.inf:
                continue
            ends = [i for i, token in enumerate(row) if token in stops]
            text = tuple(row[: ends[0] + 1] if ends else row[:max_len])
            assert score == pytest.approx(of_text[text], abs=1e-4)
            seen.append(text)
        assert seen
        assert len(set(seen)) == len(seen)
        assert beams.scores[b].tolist() == sorted(beams.scores[b].tolist())[::-1]
        alone = beam_search(model, prompts[b : b + 1], num_beams=num_beams, **options)
        torch.testing.assert_close(alone.scores[0], beams.scores[b])
        T = min(alone.ids.shape[2], beams.ids.shape[2])
        assert torch.equal(alone.ids[0, :, :T], beams.ids[b, :, :T])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("stops", STOPS)
def test_one_beam_without_penalty_is_greedy(seed, stops):
    model, prompts = tiny_gpt(seed), torch.randint(0, 4, (5, 3))
    options = {"max_len": 6, "eos_id": stops}
    beams = beam_search(model, prompts, num_beams=1, length_penalty=0, **options)
    assert torch.equal(beams.ids[:, 0], greedy(model, prompts, **options))


def textbook(model, prompt, K, max_len, stop, alpha):
    """The search in lists, one text at a time, without ever stopping early."""
    live, ended = [((), 0.0)], []
    for length in range(1, max_len + 1):
        candidates = []
        for ids, total in live:
            with torch.no_grad():
                logits = model(torch.tensor([[*prompt.tolist(), *ids]]))
            shares = logits[0, -1].log_softmax(-1).tolist()
            candidates += [
                ((*ids, token), total + share) for token, share in enumerate(shares)
            ]
        candidates.sort(key=lambda candidate: -candidate[1])
        divisor = ((5 + length) / 6) ** alpha
        for ids, total in candidates[:K]:
            if ids[-1] == stop or length == max_len:
                ended.append((total / divisor, ids))
        live = [c for c in candidates if c[0][-1] != stop][:K]
    return sorted(ended, reverse=True)[:K]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0, -1.0])
@pytest.mark.parametrize("K", [1, 2, 3])
def test_stopping_early_changes_nothing(K, alpha):
    steps = []
    for seed in range(8):
        model, prompt = tiny_gpt(seed), torch.tensor([3, 0])
        expected = textbook(model, prompt, K, 7, 2, alpha)
        calls = []
        hook = model.register_forward_hook(lambda *_, c=calls: c.append(1))
        beams = beam_search(
            model, prompt[None], num_beams=K, max_len=7, eos_id=2, length_penalty=alpha
        )
        hook.remove()
        steps.append(len(calls))
        found = beams.scores[0][beams.scores[0] > -math.inf].tolist()
        assert found == pytest.approx([score for score, _ in expected], abs=1e-4)
        for row, (_, text) in zip(beams.ids[0], expected, strict=False):
            assert rows_of(row, text) == list(text)
    if alpha == 0:
        assert min(steps) < 7  # and it does stop early


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

    model = scripted(0.005, 0.97, 0.02, 0.005)
    beams = beam_search(model, prompt, length_penalty=1.0, **options)
    assert beams.ids.tolist() == [[[1] * 9]]
    assert beams.scores.item() == pytest.approx(9 * math.log(0.97) * 6 / 14, rel=1e-4)


def test_all_rows_ended():
    model = scripted(1e-6, 1e-6, 1.0 - 3e-6, 1e-6)
    prompts = torch.tensor([[0], [1], [3]])
    ids, scores = beam_search(model, prompts, num_beams=2, max_len=9, eos_id=2)
    assert model.calls == 2
    assert ids[:, 0].tolist() == [[2, 2]] * 3  # filled up with the end token
    assert scores[:, 0].tolist() == pytest.approx([0.0] * 3, abs=1e-4)
    assert (scores[:, 1] < -10).all()


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
        ({"max_len": 0}, ValueError, r"max_len \(0\)"),
        ({"max_len": 12}, ValueError, r"max_len \(12\) must be at most 11.*\(12\)"),
        ({"length_penalty": math.nan}, ValueError, r"length_penalty \(nan\)"),
        ({"length_penalty": 250}, ValueError, r"length_penalty \(250\) .* by 2\^104"),
        (
            {"length_penalty": -1e4},
            ValueError,
            r"length_penalty \(-10000.0\) .* 2\^-41",
        ),
        ({"eos_id": 4}, ValueError, r"eos_id \(4\) .*vocab_size = 4"),
        ({"eos_id": [0, 1, 2, 3]}, ValueError, "leaves no token"),
        ({"window": 3}, ValueError, r"window \(3\) is not for beam search"),
        ({"given": [[0], [1, 2]]}, ValueError, "prompts of one length"),
    ],
)
def test_bad_input_is_named(options, error, message):
    options = {
        "given": torch.zeros(2, 2).long(),
        "num_beams": 2,
        "max_len": 3,
        **options,
    }
    with pytest.raises(error, match=message):
        beam_search(tiny_gpt(0), **options)
