"""Answers to the exercises of chapters: right, known wrong ones, and the rest."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import tformer.check
from tformer.check import check, judge
from tformer.check.answers import LETTERS
from tformer.check.asked import KINDS, chapters, exercises
from tformer.check.chapter_functions import CHAPTER_SPECS
from tformer.check.spec import SPECS

CHAPTERS = Path(__file__).parents[2] / "docs" / "chapters"
ALL = [x for chapter in chapters() for x in exercises(chapter).values()]
FIELDS = [(x, field) for x in ALL for field in x.fields]
each_field = pytest.mark.parametrize(
    ("exercise", "field"), FIELDS, ids=[f"{x.title} {f.asks}" for x, f in FIELDS]
)
MISTAKES = [(s, m) for s in CHAPTER_SPECS.values() for m in s.mistakes]


def only(exercise, field, answer):
    """Answer one field, and the others rightly."""
    given = [x.right for x in exercise.fields]
    given[exercise.fields.index(field)] = answer
    return check(exercise.chapter, exercise.number, *([given] if given[1:] else given))


def test_every_exercise_of_every_chapter_has_an_entry():
    titles = re.compile(r'^!!! question "(\d+)\.', re.MULTILINE)
    for path in CHAPTERS.glob("*.md"):
        numbers = [int(x) for x in titles.findall(path.read_text("utf-8"))]
        known = [*exercises(path.stem)] if path.stem in chapters() else []
        assert known == numbers, path.stem
    assert {x.kind for x in ALL} == set(KINDS)


@pytest.mark.by_day(40)
@each_field
def test_the_right_answer_is_right(exercise, field):
    assert only(exercise, field, field.right).right
    if field.right.ndim or field.bound:
        return
    assert only(exercise, field, torch.tensor(field.right.item())).right
    assert only(exercise, field, field.right.item()).right


@pytest.mark.by_day(24)
@each_field
def test_a_known_wrong_answer_says_what_led_to_it(exercise, field):
    for value, told in field.known:
        found = only(exercise, field, value)
        assert found.right is False, told
        assert told in found.text
    said = " ".join(told for _, told in field.known)
    for sentence in field.wrong.values():
        assert sentence in said  # none is hidden by the right one, or by another
        assert sentence.endswith((".", "?"))
        assert len(sentence) <= 130


@pytest.mark.by_day(24)
@each_field
def test_another_wrong_answer_gets_the_hint(exercise, field):
    if field.right.dtype == bool:
        rows = field.right.copy()
        rows[0, 0] ^= True
        rows[-1, -1] ^= True
        answers = [rows]
    elif field.bound:
        answers = [field.right - 0.3 if field.bound == "at least" else field.right * 2]
    else:
        answers = [field.right * 1.37 + 0.71, field.right * np.nan]
    for answer in answers:
        found = only(exercise, field, answer)
        assert found.right is False
        assert exercise.hint in found.text


@pytest.mark.by_day(24)
@each_field
def test_what_is_no_number_and_another_shape_are_said(exercise, field):
    found = only(exercise, field, "many")
    assert found.right is False
    assert "'many' is no number" in found.text
    found = only(exercise, field, np.zeros((2, 3, 5)))
    assert "the shape is (2, 3, 5)" in found.text or not field.right.ndim


@pytest.mark.parametrize(
    "exercise", [x for x in ALL if x.options], ids=lambda x: x.title
)
def test_each_choice_says_why(exercise):
    where = exercise.chapter, exercise.number
    assert sum(option.right for option in exercise.options) == 1
    for letter, option in zip(LETTERS, exercise.options, strict=False):
        for answer in (letter, f" {letter.upper()})", option.says):
            found = check(*where, answer)
            assert found.right is option.right
            assert option.told in found.text
        assert option.told
    assert "Choose one of the letters a, b" in check(*where, "z").text
    assert "a) " in check(*where).text


@pytest.mark.by_day(24)
@pytest.mark.parametrize("exercise", ALL, ids=lambda x: x.title)
def test_nothing_handed_in_is_asked_for(exercise):
    found = check(exercise.chapter, exercise.number, ...)
    assert found.right is None
    asked = [exercise.asks, *(field.asks for field in exercise.fields)]
    assert any(x and x in repr(found) for x in asked)
    if len(exercise.fields) > 1:
        gaps = (*(x.right for x in exercise.fields[1:]), ...)
        assert check(exercise.chapter, exercise.number, gaps).right is None
    if exercise.kind not in ("open", "choice"):
        assert exercise.hint


@pytest.mark.parametrize(
    "exercise", [x for x in ALL if x.kind == "function"], ids=lambda x: x.title
)
def test_functions_are_judged_by_their_spec(exercise):
    where = exercise.chapter, exercise.number
    spec = CHAPTER_SPECS.get(exercise.spec) or SPECS[exercise.spec]
    assert exercise.asks.startswith(f"A function {exercise.name}(")
    assert check(*where, spec.oracle).right
    mistake = spec.mistakes[0]
    assert mistake.sentence in check(*where, mistake.function).text
    for nothing in (np.zeros_like, np.array):
        assert check(*where, nothing).right is False
    assert "must be a function, not 3" in check(*where, 3).text


@pytest.mark.by_day(24)
@pytest.mark.parametrize(
    ("spec", "mistake"), MISTAKES, ids=[f"{s.name}-{m.id}" for s, m in MISTAKES]
)
def test_every_mistake_is_named_alone(spec, mistake):
    assert judge(spec, spec.oracle, "numpy").right
    verdict = judge(spec, mistake.function, "numpy")
    assert [known.id for known in verdict.mistakes] == [mistake.id], verdict
    chapter, _, section = mistake.chapter.partition("#")
    text = (CHAPTERS / f"{chapter}.md").read_text("utf-8")
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w]+", "-", title.lower()).strip("-") for title in titles}
    assert section in slugs or f"{{ #{section} }}" in text, mistake.chapter


def test_the_number_of_answers_is_said():
    found = check("batches", 1, (27, 15))
    assert "3 answers are asked for" in found.text
    assert "You gave 2" in found.text
    found = check("batches", 1, (27, 12, 0.375))
    assert "Training examples: Not right. The end token is an example" in found.text
    assert "Tokens in the tensor of targets: Right." in found.text


def test_a_percentage_may_be_either():
    assert check("batches", 1, (27, 15, 37.5)).right


def test_a_mask_may_have_axes_of_batch_and_heads():
    mask = torch.ones(6, 6, dtype=torch.bool).tril() | (torch.arange(6) < 3)
    assert check("masks", 2, mask[None, None]).right
    assert check("masks", 2, mask.int()).right
    assert "True = may attend" in check("masks", 2, ~mask).text
    assert "a row is a query" in check("masks", 2, mask.T).text


def test_the_right_choice_is_not_always_the_first():
    rights = [[o.right for o in x.options].index(True) for x in ALL if x.options]
    assert max(map(rights.count, rights)) <= len(rights) / 2


def test_there_is_no_such_exercise():
    with pytest.raises(ValueError, match=r"chapter \('mask'\) must be one of .*masks"):
        check("mask", 1, 0)
    with pytest.raises(
        ValueError, match=r"number \(9\) must be one of \[1, 2, 3, 4, 5"
    ):
        check("masks", 9, 0)


def test_torch_is_not_needed():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from tformer.check import check\n"
        "import numpy as np\n"
        "assert check('masks', 4, [3, 6, 9]).right\n"
        "assert not check('masks', 4, [4, 8, 12]).right"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert tformer.check.check is check
