"""What is right is right in whatever style: five of each exercise."""

from importlib import import_module
from inspect import getmembers, isfunction

import pytest

from tformer.check.evidence import ask
from tformer.check.exercises import EXERCISES
from tformer.check.judging import judge_evidence

FILES = (
    *("attention", "heads_and_masks", "positions", "norms_and_layers"),
    *("training", "writing", "choosing", "states", "streams"),
)
STYLES = ("loops", "einsum", "module", "numpy", "torch")
WRITTEN = {
    name: function
    for file in FILES
    for name, function in getmembers(import_module(f"right_styles.{file}"), isfunction)
}
ALL = [(name, style) for name in EXERCISES for style in STYLES]


@pytest.mark.by_day(25)
@pytest.mark.parametrize(("name", "style"), ALL, ids=[f"{x}-{y}" for x, y in ALL])
def test_every_style_is_right(name, style):
    exercise, function = EXERCISES[name], WRITTEN[f"{name}_{style}"]
    framework = "torch" if style in ("einsum", "module", "torch") else "numpy"
    evidence = ask(exercise.spec, function, framework, exercise.cases)
    verdict = judge_evidence(evidence)
    assert verdict.right, verdict
