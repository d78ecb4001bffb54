"""Files of readers are found, run, and judged as functions of this process are."""

import inspect
import json
import re
from copy import copy
from pathlib import Path

import numpy as np
import pytest

import tformer
from rotary_files import NUMPY, PAIRS, RIGHT, TORCH, WRONG
from tformer.check import judge
from tformer.check.calling import RUNS, Answer
from tformer.check.evidence import task_of
from tformer.check.exercises import EXERCISES, Exercise
from tformer.check.grading import grade
from tformer.check.outcomes import Outcome
from tformer.check.running import Runner
from tformer.check.telling import SITE, address, tell
from tformer.check.wire import ANSWERS, KINDS, pack, unpack

in_each = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)


@pytest.fixture(scope="module")
def runner():
    with Runner() as runner:
        yield runner


@pytest.fixture
def graded(runner, tmp_path):
    def graded(source, name="rotary", runner=runner):
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        found = grade(runner, EXERCISES[name], path)
        json.dumps(found.as_json(), allow_nan=False)
        said = tell(EXERCISES[name], found)
        assert said.startswith(f"{path}: {found.verdict}")
        assert max(map(len, said.splitlines())) <= 88 + len(str(path))
        return found

    return graded


@pytest.mark.by_day(5)
@pytest.mark.parametrize("style", RIGHT)
def test_right_in_every_style(graded, style):
    found = graded(RIGHT[style])
    assert found.verdict == "right", (found.reason, found.judged)
    assert found.note == ""
    assert found.as_json()["mistakes"] == []


@pytest.mark.parametrize("kind", WRONG)
def test_what_differs_is_said(graded, kind):
    found = graded(WRONG[kind])
    assert found.verdict == "wrong"
    assert found.judged.differs.kind == kind, found.judged


def test_the_mistake_has_a_name_and_an_address(graded):
    found = graded(PAIRS)
    (mistake,) = found.as_json()["mistakes"]
    assert mistake["id"] == "pairs"
    assert set(mistake) == {"id", "sentence", "chapter"}
    said = tell(EXERCISES["rotary"], found)
    assert mistake["sentence"] in said.replace("\n", " ")
    assert address(mistake["chapter"]) in said


@pytest.mark.parametrize(
    ("scale", "id"),
    [
        ("torch.rand(1).item()", "random"),
        ("np.random.rand()", "random"),
        ("random.random()", "random"),
        ("KEPT.append(1) or len(KEPT) / 2", "remembers"),
        ("torch.manual_seed(5).initial_seed() / 5", None),
    ],
)
def test_what_is_drawn_is_told_from_what_is_remembered(graded, scale, id):
    """Beside right numbers, at the first call at least."""
    source = f"import random\nimport numpy as np\nKEPT = [1]\n{TORCH}"
    near = f"(1 + 1e-5 * (float({scale}) - 1))"
    source = source.replace("cos, sin =", f"a_little = {near}\n    cos, sin =")
    found = graded(source.replace("-1).to", "-1).mul(a_little).to"))
    assert [x["id"] for x in found.as_json()["mistakes"]] == ([id] if id else [])
    assert (found.verdict == "right") == (id is None)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "there is no function rotary in the file: it defines no function"),
        ("def rotary(x:", "'(' was never closed (line 1)"),
        ("x = 1\nimport nothing_here", "ModuleNotFoundError: No module named"),
        ("x = 1\ny = x / 0", "ZeroDivisionError: division by zero (line 2)"),
        ("rotary = 3", "rotary is no function"),
        ("class rotary:\n    def __init__(self, x): pass", "cannot be made without"),
        ("def a(x): pass\ndef b(x): pass", "it has a, b"),
        (f"{NUMPY}".replace("rotary", "a") + NUMPY.replace("rotary", "b"), "has a, b"),
        ("\0", "it is no text"),
        ("raise SystemExit(3)", "SystemExit: 3 (line 1)"),
    ],
)
def test_what_cannot_be_run(graded, source, reason):
    found = graded(source)
    assert found.verdict == "not run"
    assert reason in found.reason
    assert found.as_json()["differs"] == {}


def test_another_name_is_taken_if_one_function_fits(graded):
    found = graded(NUMPY.replace("def rotary", "def rope") + "\ndef other(x): pass")
    assert (found.verdict, "rope" in found.note) == ("right", True)


def test_the_line_that_raises_is_shown(graded, tmp_path):
    source = "def rotary(x, positions, base):\n    y = x\n    return y.nothing\n"
    said = tell(EXERCISES["rotary"], graded(source))
    assert "AttributeError" in said
    assert "3 | return y.nothing" in said


@pytest.mark.nightly
def test_where_no_process_forks(graded):
    with Runner(5, forks=False) as runner:
        assert graded(NUMPY, runner=runner).verdict == "right"
        wrong = graded(f"print('x')\n{PAIRS}", runner=runner)
        assert [x.id for x in wrong.judged.mistakes] == ["pairs"]
        assert wrong.printed == "x\n"
        loop = graded("def rotary(*args):\n    while True: pass", runner=runner)
        assert loop.judged.differs.kind == "time"
        noise = graded("while True: print('x' * 1000)", runner=runner)
        assert (noise.verdict, noise.printed[:3]) == ("not run", "xxx")


@pytest.mark.by_day(5)
@in_each
def test_what_is_begun_is_not_written_yet(graded, exercise):
    found = graded(exercise.starter, exercise.name)
    assert found.verdict == "wrong"
    assert "It is not written yet." in tell(exercise, found)


# Few by day: tests/check/test_specs.py judges them in this process.
BODIES = ["pass", "return args[0]", "return 0 * args[0]"]
USELESS = [
    pytest.param(
        *(exercise, body),
        id=f"{body}-{exercise.name}",
    )
    for exercise in EXERCISES.values()
    for body in BODIES
]


@pytest.mark.by_day(3)
@pytest.mark.parametrize(("exercise", "body"), USELESS)
def test_what_does_nothing_is_wrong(graded, exercise, body):
    source = f"def {exercise.function}(*args):\n    {body}"
    assert graded(source, exercise.name).verdict == "wrong"


@in_each
def test_texts_fit_their_spec(exercise):
    space = {}
    exec(exercise.starter, space)
    starter = inspect.signature(space[exercise.function])
    task = task_of(exercise.spec, "torch", exercise.cases)
    asked = {len(case.args) for case in exercise.cases}
    if task.run is None:
        options = {key for case in exercise.cases for key in case.options}
        named = [*task.names][: max(asked)]
        assert [*starter.parameters] == [
            *named,
            *(x for x in task.names if x in options),
        ]
        oracle = inspect.signature(exercise.spec.oracle).parameters
        for key in options:
            assert starter.parameters[key].default == oracle[key].default
        for count in asked:
            starter.bind(*range(count))
    else:
        assert RUNS[task.run.__name__] is task.run
    assert max(map(len, exercise.starter.splitlines())) <= 88
    assert exercise.function in (exercise.name, "alibi_bias", "lora_weight")


def test_every_text_is_an_exercise():
    assert len(EXERCISES) >= 18
    with pytest.raises(ValueError, match="must have chapter, title"):
        Exercise.read("x", "# no front matter")


def test_addresses_are_those_of_the_site():
    project = Path(tformer.__file__).parents[1] / "pyproject.toml"
    assert f'Documentation = "{SITE}"' in project.read_text("utf-8")


@pytest.mark.by_day(5)
@in_each
def test_tasks_travel_whole(exercise):
    for framework in ("numpy", "torch"):
        task = task_of(exercise.spec, framework, exercise.cases)
        again = unpack(pack(task), KINDS)
        assert [*again.calls] == [*task.calls]
        oracle = exercise.spec.oracle
        for call in task.calls:
            if framework == "numpy" and call.dtype == "float64":
                one, two = (x.answer(oracle, call).outcome for x in (task, again))
                assert one.error is None
                for x, y in zip(one.arrays, two.arrays, strict=True):
                    np.testing.assert_array_equal(x, y)


def test_what_comes_back_is_read_with_suspicion():
    arrays = (np.arange(6.0).reshape(2, 3), np.array(True), np.zeros((0, 3)))
    gradients = {"x": np.array([np.nan, np.inf])}
    answer = Answer(Outcome(arrays, "float64"), ("x",), gradients)
    data = pack(answer)
    again = unpack(data, ANSWERS)
    for x, y in zip(again.outcome.arrays, arrays, strict=True):
        np.testing.assert_array_equal(x, y)
        assert x.dtype == y.dtype
    assert again.changed == ("x",)
    assert np.isnan(again.gradients["x"][0])
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r".*"):
            unpack(data[:end], ANSWERS)
    head = b'{"kind": "array", "at": 0, "shape": [-1], "dtype": "<f8"}'
    for text in (head, b'{"kind": "Task", "of": {}}', b"[" * 99_999, b'{"of": 1}'):
        with pytest.raises(ValueError, match=r"cannot be read|no array"):
            unpack(len(text).to_bytes(8, "little") + text, ANSWERS)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", ["rotary", "rms_norm", "top_p", "causal_mask"])
def test_a_process_says_what_this_one_says(runner, tmp_path, name):
    """The oracle's own text, with each mistake in it."""
    exercise = EXERCISES[name]
    spec = copy(exercise.spec)
    spec.cases = tuple(exercise.cases)
    text = inspect.getsource(spec.oracle)
    head = "from math import *\nimport numpy as np\nArray = np.ndarray\n"
    path = tmp_path / "mine.py"
    of_oracle = [x for x in spec.mistakes if x.right is spec.oracle]
    assert len(of_oracle) > 2
    for mistake in of_oracle[:5]:
        source = text[text.index("\ndef ") :]
        for before, after in mistake.edits:
            source = source.replace(before, after)
        path.write_text(head + source)
        found = grade(runner, exercise, path).judged
        here = judge(spec, mistake.function, "numpy")
        where = re.sub(r" \(line \d+\)", "", found.differs.message)
        assert found.differs._replace(message=where) == here.differs
        assert found.mistakes == here.mistakes
