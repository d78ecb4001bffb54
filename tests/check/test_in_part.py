"""A mistake that explains a part of what differs is named, and that is said."""

import torch

from tformer.check.evidence import ask
from tformer.check.exercises import EXERCISES
from tformer.check.grading import Grade
from tformer.check.judging import judge_evidence
from tformer.check.telling import tell

ATTENTION = EXERCISES["attention"]


def seen(function):
    return ask(ATTENTION.spec, function, "torch", ATTENTION.cases)


def attend(query, key, value, mask=None):
    """Attention that is right."""
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(-1) @ value
    return (scores.masked_fill(~mask, -1e30).softmax(-1) * mask) @ value


def unscaled(query, key, value, mask=None):
    return attend(query * query.shape[-1] ** 0.5, key, value, mask)


def test_it_is_named_and_told():
    def attention(query, key, value, mask=None):
        if mask is None:
            return unscaled(query, key, value)
        return attend(query, key, value, mask) + 0.1 * torch.tanh(value.mean())

    evidence = seen(attention)
    verdict = judge_evidence(evidence)
    assert [mistake.id for mistake in verdict.mistakes] == ["unscaled"]
    assert verdict.partly
    grade = Grade("my.py", "wrong", verdict, evidence=evidence)
    assert grade.as_json()["partly"] is True
    for said in (str(verdict), tell(ATTENTION, grade)):
        assert "explains a part" in said


def test_not_against_what_is_right():
    def attention(query, key, value, mask=None):
        one_text = len(query) == 1
        return (attend if one_text else unscaled)(query, key, value, mask)

    verdict = judge_evidence(seen(attention))
    assert not verdict.right
    assert not verdict.mistakes


def test_what_explains_all_is_no_part():
    verdict = judge_evidence(seen(unscaled))
    assert [mistake.id for mistake in verdict.mistakes] == ["unscaled"]
    assert not verdict.partly
