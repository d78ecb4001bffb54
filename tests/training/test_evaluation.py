"""Evaluation: every token counts once, and every mistake too."""

import math

import pytest
import torch

from tformer import Transformer, TransformerConfig
from tformer.data.batch import PairBatch, TextBatch
from tformer.data.vocabulary import CharacterVocabulary
from tformer.models.families import custom
from tformer.training.evaluation import (
    MeanLoss,
    bits_per_byte,
    bleu,
    exact_match,
    matches,
    mean_loss,
)

VOCABULARY = CharacterVocabulary("abcdefg")


@pytest.fixture
def model():
    torch.manual_seed(0)
    sizes = {"d_model": 14, "num_heads": 7, "d_ff": 22, "dropout": 0.5}
    return Transformer(TransformerConfig.tiny(vocab_size=len(VOCABULARY), **sizes))


def batch_of(sources, targets):
    src = VOCABULARY.encode_batch(sources, eos=True)
    return PairBatch(src, VOCABULARY.encode_batch(targets, bos=True, eos=True))


def test_the_mean_is_over_tokens_not_over_batches(model):
    """One batch has 2 tokens, the other 5 + 3 with padding between."""
    batches = [batch_of(["ab"], ["c"]), batch_of(["abc", "d"], ["defg", "ab"])]
    total, count = 0.0, 0
    model.eval()
    for source, target in [("ab", "c"), ("abc", "defg"), ("d", "ab")]:
        batch = batch_of([source], [target])
        log_p = model(*batch.inputs).log_softmax(-1)
        total -= log_p.gather(2, batch.targets[..., None]).sum().item()
        count += batch.targets.numel()
    model.train()
    result = mean_loss(model, batches)
    assert model.training  # left as it came, and asked without dropout
    assert result.tokens == count == 10
    assert result.loss == pytest.approx(total / count, rel=1e-5)
    assert result.perplexity == pytest.approx(math.exp(total / count), rel=1e-5)


def test_a_language_model_is_measured_too():
    torch.manual_seed(0)
    sizes = {"d_model": 14, "num_heads": 7, "num_layers": 1, "max_len": 11}
    gpt = custom.build({"vocab_size": 13, **sizes})
    ids = torch.randint(3, 13, (5, 8))
    log_p = gpt.eval()(ids[:, :-1]).log_softmax(-1)
    expected = -log_p.gather(2, ids[:, 1:, None]).mean().item()
    result = mean_loss(gpt, [TextBatch(ids[:2]), TextBatch(ids[2:])])
    assert result == (pytest.approx(expected, rel=1e-5), 35)


def test_nothing_to_measure_is_an_error(model):
    with pytest.raises(ValueError, match="at least one token"):
        mean_loss(model, [])
    with pytest.raises(ValueError, match="at least one"):
        exact_match(model, VOCABULARY, [], max_len=5)


def test_bits_per_byte_and_a_loss_beyond_all_numbers():
    assert bits_per_byte(8 * math.log(2), len("abcd")) == pytest.approx(2.0)
    assert MeanLoss(800.0, 3).perplexity == math.inf


@pytest.mark.parametrize(
    ("ids", "right"),
    [
        ([3, 4, 2], True),
        ([3, 4], False),  # it never ended
        ([3, 4, 0, 0], False),
        ([3, 0, 4, 2], False),
        ([1, 3, 4, 2], False),
        ([3, 4, 4, 2], False),
        ([3, 2], False),
    ],
)
def test_an_answer_is_right_to_the_last_token(ids, right):
    assert matches(VOCABULARY, [ids], ["ab"]) == right
    assert matches(VOCABULARY, [[3, 4, 2], ids], ["ab", "ab"]) == 1 + right


def test_bleu_is_that_of_sacrebleu():
    """By hand: 3 of 4 words, 2 of 3 pairs, 1 of 2 triples, and no four in a row."""
    score, _, signature = bleu(["the cat sat here"], ["the cat sat down"])
    smoothed = 100 * (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25
    assert score == pytest.approx(smoothed, rel=1e-6)
    assert signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert bleu(["a b c d e"] * 9, ["a b c d e"] * 9)[:2] == (pytest.approx(100.0), 0)
    with pytest.raises(ValueError, match="2 texts written for 1 targets"):
        bleu(["a", "b"], ["a"])


def test_the_interval_of_bleu_is_that_of_tests_drawn_anew():
    """Of 40 right and 40 wrong sentences; the more sentences, the narrower."""
    right, wrong = "a b c d e f", "u v w x y z"
    written, targets = [right] * 80, [right] * 40 + [wrong] * 40
    half = bleu(written, targets).interval
    assert 3 < half < 20
    narrower = bleu(written * 16, targets * 16).interval
    assert narrower == pytest.approx(half / 4, rel=0.3)
