"""Solutions with a planted mistake: wrong, named as meant, and right once mended."""

import difflib
import json

import numpy as np
import pytest

from engine.site.python import faults
from tformer.check import planting
from tformer.check.asked import chapters, exercises
from tformer.check.chapter_files import exercise_of
from tformer.check.evidence import ask
from tformer.check.exercises import EXERCISES
from tformer.check.faults import FAULTS
from tformer.check.judging import judge_evidence
from tformer.check.planting import planted, solution

ASKED = [x for name in chapters() for x in exercises(name).values()]
FUNCTIONS = [exercise_of(each) for each in ASKED if each.kind == "function"]
ALL = {each.name: each for each in (*EXERCISES.values(), *FUNCTIONS)}
MADE = {name: planted(each.spec, each.function) for name, each in ALL.items()}
ROWS = [(name, at) for name, made in MADE.items() for at in range(len(made))]


def judged(name, source):
    exercise, names = ALL[name], {}
    exec(source, names)
    function = names[exercise.function]
    with np.errstate(all="ignore"):  # a mistake may divide by zero
        found = ask(exercise.spec, function, "numpy", exercise.cases)
        return judge_evidence(found)


@pytest.mark.by_day(4)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "at"), ROWS, ids=[f"{x}-{MADE[x][y].mistake.id}" for x, y in ROWS]
)
def test_the_judge_names_what_is_planted(name, at):
    fault = MADE[name][at]
    verdict = judged(name, fault.source)
    assert [mistake.id for mistake in verdict.mistakes] == [fault.mistake.id]
    assert not verdict.partly


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", ALL)
def test_mended_it_is_right(name):
    verdict = judged(name, solution(ALL[name].spec, ALL[name].function))
    assert verdict.right, verdict


@pytest.mark.parametrize("name", ALL)
def test_every_exercise_has_faults_of_a_few_lines(name):
    """So that a reader who mends these lines has what the judge calls right."""
    right = solution(ALL[name].spec, ALL[name].function).splitlines()
    assert len(MADE[name]) >= 3
    for fault in MADE[name]:
        lines = [*difflib.ndiff(right, fault.source.splitlines())]
        assert 1 <= sum(line.startswith("- ") for line in lines) <= 3, fault.mistake.id
        assert "Array" not in fault.source  # no types, whose names readers lack


def test_no_fault_is_of_an_unknown_exercise():
    assert {*FAULTS} == {each.spec.name for each in ALL.values()}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no_such: Dh // 2 → Dh", r"\['no_such'\] must be mistakes of rotary"),
        ("backwards: cos(angle) → sin(angle)", r"'cos\(angle\)' must stand once"),
        ("backwards: tan(angle) → sin(angle)", r"'tan\(angle\)' must stand once"),
    ],
)
def test_what_cannot_be_planted_is_refused(monkeypatch, text, told):
    monkeypatch.setitem(planting.FAULTS, "rotary", text)
    with pytest.raises(ValueError, match=told):
        planted(ALL["rotary"].spec, "rotary")


def test_each_editor_finds_its_faults_on_the_site():
    """And links each to the atlas, where that has the spec's mistakes."""
    files = faults()
    assert len(files) == len(ALL)
    for name, exercise in ALL.items():
        made = json.loads(files[f"live/python/faults/{name.replace(' ', '-')}.json"])
        assert [each["source"] for each in made] == [x.source for x in MADE[name]]
        atlas = exercise.spec.name if exercise.spec.name in EXERCISES else ""
        assert {each["page"] for each in made} == {atlas}
    both = {"rms_norm", "choose_keys"}  # of a chapter, and of `tformer check`
    assert {x.spec.name for x in FUNCTIONS} & {*EXERCISES} == both
