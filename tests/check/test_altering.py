"""Formulas with one thing altered name what nobody has listed."""

import numpy as np
import pytest

from tformer.check.altering import alterations
from tformer.check.diagnosis import altered
from tformer.check.evidence import ask, right_of
from tformer.check.exercises import EXERCISES
from tformer.check.formulas import CHOOSING, FORMULAS
from tformer.check.judging import judge_evidence
from tformer.check.outcomes import difference


@pytest.mark.parametrize("name", EXERCISES)
def test_a_formula_gives_what_the_oracle_gives(name):
    spec = EXERCISES[name].spec
    for case in EXERCISES[name].cases:
        outcome = spec.outcome(FORMULAS[name], case)
        assert difference(outcome, right_of(spec, case), 1e-9) is None, case.name


@pytest.mark.parametrize("name", EXERCISES)
def test_alterations_run_and_many_differ(name):
    spec, listed = EXERCISES[name].spec, alterations(FORMULAS[name], name in CHOOSING)
    case = max(EXERCISES[name].cases, key=lambda each: each.size)
    assert len({each.source for each in listed}) == len(listed) > 50
    some = listed[:: len(listed) // 50]
    outcomes = [altered(spec, each, case) for each in some]
    wrong = [x for x in outcomes if difference(x, right_of(spec, case), 1e-5)]
    assert len(wrong) > len(some) / 4
    assert sum(not x.error for x in outcomes) > len(some) / 4
    assert all(each.told for each in some)


def told(name, function):
    exercise = EXERCISES[name]
    evidence = ask(exercise.spec, function, "numpy", exercise.cases)
    verdict = judge_evidence(evidence)
    assert not verdict.partly
    return [mistake.sentence for mistake in verdict.mistakes]


def test_an_argument_is_altered_throughout():
    def layer_norm(x, weight, bias, eps):
        centred = x - x.mean(-1, keepdims=True)
        root = np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
        return (centred / root * weight + 2 * bias).astype(x.dtype)

    (sentence,) = told("layer_norm", layer_norm)
    assert "`2 * bias` in place of `bias` throughout" in sentence


def test_the_line_is_told_that_is_altered():
    def swiglu(x, w_gate, w_up, w_down):
        gate, up = x @ w_gate.T, x @ w_up.T
        return gate / (1 + np.exp(-2.5 * gate / 1.25)) * up @ w_down.T

    (sentence,) = told("swiglu", swiglu)
    assert "`inner = gate * sigmoid(2 * gate) * up` in place of `inner =" in sentence


def test_brackets_that_stand_elsewhere():
    def rms_norm(x, weight, eps):
        root = np.sqrt((x**2).mean(-1, keepdims=True)) + np.sqrt(eps)
        return (x / root * weight).astype(x.dtype)

    (sentence,) = told("rms_norm", rms_norm)
    assert "np.sqrt(mean_square) + np.sqrt(eps)" in sentence


def test_what_no_alteration_gives_is_not_named():
    def noam(step, d_model, warmup):
        return d_model**-0.5 * np.tanh(step / warmup) * 0.123

    assert told("noam", noam) == []
