"""Each number in the prose of a chapter is held by a block, a source, or a reason."""

from pathlib import Path

import pytest
import yaml

from engine.pages.numbers import REASONS, find_quantities, number_problems
from engine.project import Project
from small_project import Write

PAGE = """# Costs

It costs {number}, as [the block](#x) prints.

```python
x = 37_000
print(f"{{0.12345:.4f}}", 2500.0)
```

```{{.text .output}}
0.1235 2500.0
```
"""


@pytest.mark.parametrize(
    ("number", "held"),
    [
        ("0.12", True),
        ("12 %", True),
        ("0.125", False),
        ("13 %", False),
        ("2,500 MB", True),
        ("37,000", True),
        ("37,001", False),
        ("44, says [it](https://x.y)", True),
    ],
)
def test_what_holds_a_number(number: str, held: bool, write: Write) -> None:
    problems = number_problems(write(PAGE.format(number=number), "costs.md"))
    assert [number in problem for problem in problems] == [True] * (not held)


@pytest.mark.parametrize(
    "picture", ["![{} bars](figures/a.svg)", '![bars](figures/a.svg "It (the {}) is.")']
)
@pytest.mark.parametrize(("number", "held"), [("0.12", True), ("0.125", False)])
def test_a_figure_and_its_caption_are_prose(
    picture: str, number: str, held: bool, write: Write
) -> None:
    page = write(f"{PAGE}\n{picture.format(number)}\n".format(number=0.12), "costs.md")
    problems = number_problems(page)
    assert [number in problem for problem in problems] == [True] * (not held)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It is 1.35 times as long, and 70 % of it", [1.35, 70.0]),
        ("two of 3 heads", []),
        ("takes 3 seconds", [3.0]),
        ("Python 3.11 of 2022, GPT-2, section 3.2.1, arXiv:1706.03762", []),
        ("equal to 10⁻⁶", [1e-6]),
        ("`0.5` of $0.7$ in [x](y-0.3.md) {: width=40 } ![it is 0.9](a.svg)", []),
        ("1,024 of 65,536", [1024.0, 65536.0]),
    ],
)
def test_quantities_of_a_sentence(text: str, numbers: list[float]) -> None:
    found = [each.value for each in find_quantities(text)]
    assert found == pytest.approx(numbers)


def test_a_reason_stays_with_its_sentence(project: Project, write: Write) -> None:
    sentence = "It costs 0.9, as [the block] prints."
    file = project.root / REASONS
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump({"costs": {sentence: {"0.9": "a guess"}}}))
    assert number_problems(write(PAGE.format(number="0.9"), "costs.md")) == []
    lost, unused = number_problems(write(PAGE.format(number="0.8"), "costs.md"))
    assert "'0.8' is printed by no block and has no source" in lost
    assert "costs needs no reason for '0.9'" in unused


def test_reasons_are_of_chapters_that_are_there() -> None:
    root = Project.find(Path(__file__)).root
    chapters = {path.stem for path in (root / "docs/chapters").glob("*.md")}
    assert set(yaml.safe_load((root / REASONS).read_text("utf-8"))) <= chapters
