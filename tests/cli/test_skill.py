"""The skill for tutors: each command that it names runs, and it holds no solution."""

import json
import re
from pathlib import Path

import jinja2
import pytest
import yaml

from tformer.check.exercises import EXERCISES

ROOT = Path(__file__).parents[2]
SITE, REQUIREMENT = "https://example.org/book/", "tformer[train] @ git+https://e.org/x"
MODEL = """
import torch

def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(11, 8), torch.nn.Linear(8, 11))
"""


@pytest.fixture(scope="module")
def skill() -> str:
    """The skill as the site serves it."""
    text = (ROOT / "docs/theme/SKILL.md").read_text("utf-8")
    extra = {"installing": REQUIREMENT}
    config = {"site_name": "tformer", "site_url": SITE, "extra": extra}
    return jinja2.Template(text, undefined=jinja2.StrictUndefined).render(config=config)


def commands(skill: str) -> list[str]:
    """Every line of a shell that it has, and each command in the text."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", skill, re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    text = re.sub(r"^```.*?^```$", "", skill, flags=re.M | re.S)
    return lines + re.findall(r"`(tformer [^`]+)`", text)


def test_it_says_what_it_is_for(skill: str) -> None:
    _, front, text = skill.split("---\n", 2)
    said = yaml.safe_load(front)
    assert re.fullmatch(r"[a-z][a-z-]{0,63}", said["name"])
    assert 100 < len(said["description"]) <= 1024
    assert f"{SITE}llms.txt" in text
    assert len(text.splitlines()) < 120


@pytest.mark.nightly
def test_every_command_runs(skill: str, tformer, tmp_path, monkeypatch) -> None:
    """In the order of the text, in a folder with the files that it speaks of."""
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(MODEL, "utf-8")
    Path("answers.py").write_text("answer = [4, 8, 12]\n", "utf-8")
    first, *ran = commands(skill)
    assert first == f'pip install "{REQUIREMENT}"'
    assert all(re.match(r"tformer check\b", command) for command in ran)
    assert len({*ran}) >= 8
    for command in ran:
        said = tformer(*command.split()[1:])
        assert "Traceback" not in said.err, command
        if "--json" not in command:
            assert (said.code, said.err) == (0, ""), (command, said)
            continue
        (line,) = said.out.splitlines()
        right = json.loads(line)["verdict"] == "right"
        assert said.code == (0 if right else 1), (command, said)
        assert not right or "--model" in command, command  # nothing is written yet


def test_the_fields_that_it_explains_are_those_of_the_command(
    skill: str, tformer, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = re.findall(r"^\| `(\w+)`(?: is `([\w ]+)`)? \|", skill, re.M)
    assert {verdict for field, verdict in rows if field == "verdict"} == {
        "right",
        "wrong",
        "not run",
    }
    Path("answers.py").write_text("answer = [4, 8, 12]\n", "utf-8")
    printed = json.loads(tformer("check", "masks", "4", "answers.py", "--json").out)
    assert {"mistakes", "differs"} == {field for field, _ in rows} & {*printed} - {
        "verdict"
    }
    assert {"sentence", "chapter"} <= {*printed["mistakes"][0]}
    lecturers = (ROOT / "docs/teaching.md").read_text("utf-8")
    assert all(f"`{field}`" in lecturers for field in ("mistakes", "partly"))


def test_it_hands_out_no_solution(skill: str) -> None:
    """No Python in it, no third hint, and neither name of a folder with answers."""
    assert not re.search(r"```python|\bdef |\breturn |import ", skill)
    assert "--hint 3" not in skill
    for exercise in EXERCISES.values():
        assert exercise.hints[2].strip() not in skill
    assert "**Do not write the solution,**" in skill
