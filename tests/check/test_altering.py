"""Formulas with one thing altered name what nobody has listed."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from tformer.check import matching
from tformer.check.altering import alterations
from tformer.check.array_words import LONGEST, arange, repeat, steps, tiled
from tformer.check.evidence import ask, right_of
from tformer.check.exercises import EXERCISES
from tformer.check.formulas import CHOOSING, FORMULAS
from tformer.check.judging import judge_evidence
from tformer.check.matching import outcome_of
from tformer.check.outcomes import difference

MEGABYTES = 200  # of a process that has run them; NumPy alone takes 40
# Those in which a number becomes a length; elsewhere the inputs' shapes are a limit.
RUN_ALL = """
import warnings
from inspect import getsource
from pathlib import Path
from tformer.check.altering import alterations
from tformer.check.exercises import EXERCISES
from tformer.check.formulas import CHOOSING, FORMULAS
from tformer.check.matching import outcome_of

warnings.simplefilter("ignore")
made = "arange", "repeat", "steps", "tiled"
growing = [x for x in FORMULAS if any(f"{m}(" in getsource(FORMULAS[x]) for m in made)]
assert len(growing) >= 6
for name in growing:
    formula = FORMULAS[name]
    case = max(EXERCISES[name].cases, key=lambda x: (x.size, str(x.args)))
    for each in alterations(formula, name in CHOOSING):
        outcome_of(EXERCISES[name].spec, each, case)
# Not `ru_maxrss`: it begins with what the process that started this one had taken.
status = Path("/proc/self/status").read_text().split()
print(int(status[status.index("VmHWM:") + 1]) // 1024)
"""


@pytest.mark.parametrize("name", EXERCISES)
def test_a_formula_gives_what_the_oracle_gives(name):
    spec = EXERCISES[name].spec
    for case in EXERCISES[name].cases:
        outcome = spec.outcome(FORMULAS[name], case)
        assert difference(outcome, right_of(spec, case), 1e-9) is None, case.name


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has /proc")
def test_alterations_that_make_lengths_take_little_memory():
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL], capture_output=True, text=True, timeout=600
    )
    assert done.stderr == ""
    assert int(done.stdout) < MEGABYTES


def test_lengths_that_are_computed_have_a_limit():
    many = np.zeros(1 << 14)
    for made in (
        lambda: arange(2.0**30),
        lambda: arange(np.inf),
        lambda: steps(1, 10**9),
        lambda: repeat(many, LONGEST + 1, 0),
        lambda: repeat(many, 5, 0),
        lambda: tiled(many, 5, 0),
    ):
        with pytest.raises(ValueError, match="more than"):
            made()
    assert arange(3).tolist() == [0, 1, 2]
    assert [*steps(1, 3)] == [1, 2]
    assert repeat(np.arange(2), 2, 0).tolist() == [0, 0, 1, 1]
    assert tiled(np.arange(2), 2, 0).tolist() == [0, 1, 0, 1]


@pytest.mark.by_day(5)
@pytest.mark.parametrize("name", EXERCISES)
def test_alterations_run_and_many_differ(name):
    spec, listed = EXERCISES[name].spec, alterations(FORMULAS[name], name in CHOOSING)
    case = max(EXERCISES[name].cases, key=lambda each: each.size)
    assert len({each.source for each in listed}) == len(listed) > 50
    some = listed[:: len(listed) // 50]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of empty slices
        outcomes = [outcome_of(spec, each, case) for each in some]
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


def test_what_raises_wherever_it_is_wrong_is_not_named():
    def cached_step(q, k, v, cache):
        seen = cache.setdefault("seen", [])
        seen.append(k)
        scores = q @ np.swapaxes(np.concatenate(seen, 2), -1, -2) / np.sqrt(q.shape[-1])
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ cache.setdefault("v", v)

    assert told("cached_step", cached_step) == []


def test_what_raises_for_odd_widths_is_named_by_that_alone():
    def sinusoids(length, d_model):
        angle = np.arange(length)[:, None] / 10000 ** (
            np.arange(0, d_model, 2) / d_model
        )
        table = np.zeros((length, d_model))
        table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
        return table

    (sentence,) = told("sinusoids", sinusoids)
    assert "fails for an odd width" in sentence


def test_after_its_time_nothing_is_named(monkeypatch):
    def layer_norm(x, weight, bias, eps):
        centred = x - x.mean(-1, keepdims=True)
        root = np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
        return centred / root * weight + 2 * bias

    monkeypatch.setattr(matching, "SECONDS", 0.0)
    assert told("layer_norm", layer_norm) == []


def test_what_cannot_be_told_apart_is_one_of(monkeypatch):
    """With α = 2 alone: 2 α and α² are the same number."""

    def doubled(weight, a, b, alpha):
        return weight + 2 * alpha / len(a) * (b @ a)

    spec, (case, *others) = EXERCISES["lora"].spec, EXERCISES["lora"].cases

    def found(cases):
        def fits(expected):
            return not any(
                difference(expected(case), spec.outcome(doubled, case), 1e-5)
                for case in cases
            )

        return {each.sentence for each in matching.altered(spec, cases, fits)}

    several = found([case])
    assert len(several) == 2
    assert any("`alpha ** 2` in place of `alpha`" in each for each in several)
    (alone,) = found([case, *others])
    assert alone in several
    assert "2 * a" in alone
    monkeypatch.setattr(matching, "MOST", 1)
    assert found([case]) == set()  # so many prove nothing
