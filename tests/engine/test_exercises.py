"""Exercises of pages: where they stand, their fields, their cells, their solutions."""

import contextlib
import shutil
from pathlib import Path

import nbformat
import pytest

from engine.copies.exercises import blank
from engine.copies.notebooks import notebooks
from engine.pages.exercises import blocks_in, call, places, solution_of
from engine.pages.reading import Page
from engine.project import Project
from engine.run.running import Runner
from engine.run.working import all_of, package_imported_anew
from small_project import SMALL
from tformer.check import check
from tformer.check.asked import chapters, exercises

ROOT = Path(__file__).parents[2]
ALL = [x for chapter in chapters() for x in exercises(chapter).values()]
FIELDS = [(x, field) for x in ALL for field in x.fields]
# A chapter whose exercises are those of masks, in a project whose package is small.
MASKS = """\
---
kind: chapter
---
# Masks

```python
import numpy as np
```

## Exercises

!!! question "1. By hand (easy, 3 minutes)"

    Four tokens.

    ??? success "Solution"

        ```python
        weights = np.tri(4) - np.tri(4, k=-2)
        weights = weights / weights.sum(1, keepdims=True)
        ```

!!! question "2. A prefix (easy, 5 minutes)"

    Make its mask.

    ??? success "Solution"

        Every query may look at the prefix.

        ```python
        prefix_mask = (np.tri(6) > 0) | (np.arange(6) < 3)
        ```

    Behind the solution.

!!! question "4. How far? (medium, 15 minutes)"

    ??? success "A beginning"

        ```python
        begun = 1
        ```

## Interview questions

```python
print("after")
```
"""


@pytest.fixture
def masks(tmp_path: Path) -> Page:
    root = tmp_path / "small"
    shutil.copytree(SMALL, root)
    package = root / "tiny" / "check"
    (package / "answers").mkdir(parents=True)
    (package / "__init__.py").write_text("from tformer.check import check\n")
    (package / "asked.py").write_text("from tformer.check.asked import exercises\n")
    (package / "answers" / "masks.toml").touch()
    path = root / "docs" / "chapters" / "masks.md"
    path.write_text(MASKS, "utf-8")
    return Page(Project(root), path)


def test_places_of_exercises(masks):
    found = places(masks)
    assert [place.number for place in found] == [1, 2, 4]
    assert [len(blocks_in(masks, place.solution)) for place in found] == [1, 1, 0]
    lines = [masks.lines[i].strip() for i in found[1].solution]
    assert lines[0] == '??? success "Solution"'
    assert "Behind the solution." not in lines
    last = [line for line in masks.lines[: found[2].end] if line.strip()][-1]
    assert last.strip() == "```"


def run(page: Page):
    anew = package_imported_anew(page.project)
    with anew, contextlib.closing(Runner(page)) as runner:
        return all_of(runner)


def changed(page: Page, before: str, after: str) -> Page:
    assert before in page.text
    page.path.write_text(page.text.replace(before, after), "utf-8")
    return Page(page.project, page.path)


def problems(page: Page) -> list[str]:
    found = (result.answered for result in run(page).results)
    return [each.problem for each in found if each and each.problem]


def test_a_solution_is_held_against_the_answers(masks):
    # Its names are not those of the chapter: `page` of exercise 1 calls attend.
    (problem,) = problems(masks)
    assert "exercise 1" in problem
    assert "raises NameError" in problem
    page = changed(masks, "np.tri(6) > 0", "np.tri(6) < 1")
    assert any("exercise 2" in x and "Not right" in x for x in problems(page))


def test_two_notebooks(masks, tmp_path):
    page = changed(masks, "weights = weights /", "def window(*_): ...\n"
        "        def attend(*_): return weights\n"
        "        q = identity = 0; weights = weights /")  # fmt: skip
    books = notebooks(run(page))
    assert [*books] == ["masks", "masks-solutions"]
    to_do, solved = (nbformat.reads(books[x], as_version=4) for x in books)
    texts = ["\n".join(cell.source for cell in x.cells) for x in (to_do, solved)]
    assert "Every query may look" not in texts[0]
    assert "Every query may look" in texts[1]
    assert all("Behind the solution." in text for text in texts)
    assert all("begun = 1" in text for text in texts)  # a beginning is no solution
    assert "/notebooks/masks-solutions.ipynb>" in to_do.cells[0].source
    assert "/notebooks/masks.ipynb>" in solved.cells[0].source
    last = 'prefix_mask = ...\n\ncheck("masks", 2, prefix_mask)'
    cells = [cell.source for cell in to_do.cells if cell.cell_type == "code"]
    assert any(cell.endswith(last) for cell in cells)
    assert [x for x in cells if x.endswith("prefix_mask)")] == [
        x for x in cells if "prefix_mask" in x
    ]
    checked = [cell for cell in solved.cells if "check(" in cell.source]
    assert [cell.outputs[0].data["text/plain"] for cell in checked] == ["Right."] * 2
    assert checked[1].outputs[0].execution_count == checked[1].execution_count


@pytest.mark.by_day(40)
@pytest.mark.parametrize("exercise", ALL, ids=lambda x: x.title)
def test_an_empty_cell_runs_and_says_what_is_asked(exercise):
    names: dict[str, object] = {}
    code = blank(exercise)
    *lines, last = code.splitlines()
    exec("\n".join(lines), names)
    assert last == call(exercise, exercise.name)
    found = eval(last, names)
    assert found.right is None
    for line in lines:
        assert len(line.split("\n")) == 1


@pytest.mark.by_day(40)
@pytest.mark.parametrize("exercise", ALL, ids=lambda x: x.title)
def test_what_has_an_answer_has_it_on_the_page(exercise):
    """Else the page's own solution is not held against it."""
    unheld = {"encoder 4", "positions 5"}  # trained for minutes
    answer = solution_of(exercise)
    assert (answer is None) == (exercise.kind == "open" or exercise.title in unheld)
    if exercise.options:
        assert check(exercise.chapter, exercise.number, answer.strip('"')).right
