"""`tformer check masks 5 my.py`: exercises of chapters from a shell."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tformer.check.asked import chapters, exercises
from tformer.check.chapter_files import exercise_of

PREFIX = """
import torch
prefix_mask = torch.ones(6, 6).bool().tril() | (torch.arange(6) < {})
"""
REACHES = """
def reaches(function, T):
    import torch
    x = torch.randn(T, 3, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(function, x)
    return jacobian.abs().amax(dim=(1, 3)){} > 0
"""
SCHEDULE = """
def stable_schedule(step, steps, *, peak, warmup_steps):
    return peak * min(step / warmup_steps, 1.0, (steps + 1 - step) / (steps / 5))
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def written(text: str) -> str:
        Path("my.py").write_text(text, "utf-8")
        return "my.py"

    return written


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("where", "text", "says"),
    [
        ("masks 2", PREFIX.format(3), "Right."),
        ("masks 2", PREFIX.format(2), "You took a prefix of two."),
        ("masks 2", "prefix_mask = [[1] * 6] * 6", "every query see every key"),
        ("masks 2", "mask = 1", "there is no prefix_mask in the file. The mask (6, 6)"),
        ("batches 1", "answer = 27, 15, 37.5", "Right."),
        ("batches 1", "answer = (27, 12, 0.375)", "The end token is an example"),
        ("bert 3", "answer = 'a'", "Right. One of the three"),
        ("bert 3", "answer = 0.5", "Choose one of the letters a, b"),
        ("masks 5", REACHES.format(""), "right"),
        ("masks 5", REACHES.format(".T"), "Rows are outputs and columns inputs"),
        ("optimizer 4", SCHEDULE, "right"),
        ("optimizer 4", SCHEDULE.replace("+ 1", ""), "reaches 0 in the last step"),
        ("masks 1", "import os; os._exit(0)", "the process ended itself"),
        ("masks 1", "answer = (", "was never closed (line 1)"),
        ("masks 1", "print('Right.'); answer = [[1]]", "the shape is (1, 1)"),
    ],
)
def test_a_file_is_judged(tformer, write, where, text, says):
    said = tformer("check", *where.split(), write(text))
    assert says in " ".join(said.out.split())
    assert said.code == (0 if says.lower().startswith("right") else 1)


@pytest.mark.nightly
def test_json(tformer, write):
    said = tformer("check", "masks", "2", write(PREFIX.format(2)), "--json")
    found = json.loads(said.out)
    assert found["verdict"] == "wrong"
    assert found["exercise"] == "masks 2"
    (mistake,) = found["mistakes"]
    assert "You took a prefix of two." in mistake["sentence"]
    said = tformer("check", "masks", "5", write(REACHES.format(".T")), "--json")
    assert json.loads(said.out)["mistakes"][0]["id"] == "transposed"


def test_what_is_asked_is_said(tformer):
    said = tformer("check", "masks")
    assert said.code == 0
    assert len(said.out.splitlines()) == len(exercises("masks"))
    assert "a variable prefix_mask" in tformer("check", "masks", "2").out
    assert "a) " in tformer("check", "bert", "3").out
    assert "is open" in tformer("check", "gpt", "4", "x.py").out
    assert "jacobian" in tformer("check", "masks", "5", "--hint", "1").out
    assert tformer("check", "masks", "5", "--hint", "2").code != 0
    wrong = tformer("check", "masks", "9", "x.py")
    assert wrong.code == 2
    assert "masks has the exercises 1, 2, 3, 4, 5, not 9" in " ".join(wrong.err.split())
    assert tformer("check", "attention").code == 1  # the exercise, not the chapter


@pytest.mark.parametrize("chapter", chapters())
def test_functions_can_be_sent(chapter, tmp_path):
    from tformer.check.evidence import task_of
    from tformer.check.wire import pack

    for asked in exercises(chapter).values():
        if asked.kind == "function":
            exercise = exercise_of(asked)
            assert exercise.function == asked.name
            assert exercise.arguments
            assert pack(task_of(exercise.spec, "numpy", exercise.cases))


TEACHING = Path(__file__).parents[2] / "docs" / "teaching.md"


def block(language: str) -> str:
    """The first block of a language on the page for lecturers."""
    text = TEACHING.read_text("utf-8")
    found = re.search(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return found[1]


@pytest.mark.nightly
def test_the_page_for_lecturers_shows_what_is_said(tformer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [line.partition("#")[0].split() for line in block("sh").splitlines()]
    Path("answers.py").write_text(PREFIX.format(2), "utf-8")
    tformer("check", "start", "rotary")
    codes = [tformer(*words[1:]).code for words in lines]
    assert codes == [1, 1, 1]  # a file as it begins is not right
    said = tformer("check", "masks", "2", "answers.py", "--json")
    assert json.loads(said.out) == json.loads(block("json"))
    for line in tformer("check", "--all", "--json").out.splitlines():
        assert {"file", "verdict", "mistakes", "differs"} <= json.loads(line).keys()


def test_the_workflow_of_the_page_is_one(tformer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("check.yml").write_text(block("yaml"), "utf-8")
    program = Path(sys.executable).with_name("check-jsonschema")
    schema = ("--builtin-schema", "vendor.github-workflows")
    subprocess.run([program, "--quiet", *schema, "check.yml"], check=True)
    ours = (
        TEACHING.parents[1].joinpath(".github/workflows/tests.yml").read_text("utf-8")
    )
    for pinned in re.findall(r"uses: (.*)", block("yaml")):
        assert pinned in ours
    steps = yaml.safe_load(block("yaml"))["jobs"]["check"]["steps"]
    commands = [x["run"].split() for x in steps if "tformer check" in x.get("run", "")]
    assert len(commands) == 2
    for _, *words in commands:  # a file that is missing fails its step
        assert tformer(*words).code == 1
