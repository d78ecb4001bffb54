"""Exercises of pages: where they stand, their fields, their cells, their solutions."""

import contextlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

from engine.copies.exercises import blank
from engine.copies.notebooks import notebooks
from engine.node import node
from engine.pages.exercises import blocks_in, call, places, solution_of
from engine.pages.reading import Page
from engine.project import Project
from engine.run.running import Runner
from engine.run.working import all_of, package_imported_anew
from engine.site.exercises import data_of, fields, with_fields
from engine.site.python import place
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
    # Its names are not those of the chapter: `page` of exercise 1 names torch's.
    (problem,) = problems(masks)
    assert "exercise 1" in problem
    assert "raises NameError" in problem
    page = changed(masks, "np.tri(6) > 0", "np.tri(6) < 1")
    assert any("exercise 2" in x and "Not right" in x for x in problems(page))


def test_two_notebooks(masks, tmp_path):
    page = changed(masks, "weights = weights /", "def causal_mask(*_, **__): ...\n"
        "        def scaled_dot_product_attention(*_): return np.array([[weights]])\n"
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


@pytest.mark.parametrize("exercise", ALL, ids=lambda x: x.title)
def test_what_has_an_answer_has_it_on_the_page(exercise):
    """Else the page's own solution is not held against it."""
    unheld = {"encoder 4", "positions 5", "reading-attention 3"}  # trained for minutes
    answer = solution_of(exercise)
    assert (answer is None) == (exercise.kind == "open" or exercise.title in unheld)
    if exercise.options:
        assert check(exercise.chapter, exercise.number, answer.strip('"')).right


def test_the_page_judges_as_the_package_does(tmp_path):
    """Right answers, known wrong ones, and others, in JavaScript and in Python."""
    asked, expected = [], []
    for exercise, field in FIELDS:
        others = [field.right * 1.37 + 0.71] if field.right.dtype != bool else []
        others += [field.right * 100] if field.percent else []  # 37.5 for 0.375
        for value in [field.right, *(x for x, _ in field.known), *others]:
            data = json.loads(json.dumps(data_of(exercise)))["fields"]
            at = exercise.fields.index(field)
            asked.append([data[at], np.asarray(value).astype(float).ravel().tolist()])
            expected.append(field.wrong_with(value))
    judge = (ROOT / "docs/live/exercises/judge.js").as_uri()
    program = tmp_path / "parity.mjs"
    program.write_text(
        f'import {{ wrongWith }} from "{judge}"\n'
        f"const asked = {json.dumps(asked)}\n"
        "console.log(JSON.stringify(asked.map(([f, x]) => wrongWith(f, x))))",
        "utf-8",
    )
    assert json.loads(node(program, text="")) == expected
    assert len(expected) > 300


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("12,345", 12345), ("1,050,624.5", 1050624.5), ("0.375", 0.375)),
        *(("37.5 %", 0.375), ("3/8", 0.375), ("−2", -2), ("0,375", 0.375)),
        *(("6.9e-4", 6.9e-4), ("8.4 MB", 8.4), (" 1 000 ", 1000), (".5", 0.5)),
        *(
            ("1.5,3", None),
            ("", None),
            ("many", None),
            ("1/2/3", None),
            ("3 x 4", None),
        ),
    ],
)
def test_numbers_are_read_as_people_write_them(tmp_path, text, number):
    judge = (ROOT / "docs/live/exercises/judge.js").as_uri()
    program = tmp_path / "read.mjs"
    program.write_text(
        f'import {{ parse }} from "{judge}"\n'
        f"console.log(JSON.stringify(parse({json.dumps(text)})))"
    )
    assert json.loads(node(program, text="")) == number


def test_fields_stand_above_solutions():
    asked = exercises("masks")
    box = (
        '<div class="admonition question">\n'
        '<p class="admonition-title">{}. A (easy)</p>'
        '<p>Text.</p>\n<details class="success"><summary>Solution</summary></details>'
        "\n</div>\n"
    )
    other = '<details class="success"><summary>Elsewhere</summary></details>'
    content = "".join(box.format(number) for number in (1, 2, 5, 9)) + other
    found = with_fields(content, asked)
    assert re.findall('data-exercise="([^"]*)"', found) == ["masks 1", "masks 2"]
    editor = found.index('<div data-python="masks 5"></div>')
    assert editor < found.rindex("<summary>Solution")
    assert found.endswith(box.format(9) + other)  # it has no exercise 9
    parts = re.split('<details class="success">', found)
    assert 'data-exercise="masks 2"' in parts[1]


def test_a_function_gets_an_editor_and_what_is_open_nothing():
    for exercise in ALL:
        if exercise.kind == "function":
            made = place(exercise.title, None, "../")
            assert f'data-function="{exercise.name}"' in made
            assert fields(exercise) == f'<div data-python="{exercise.title}"></div>\n'
    assert fields(exercises("gpt")[4]) == ""


def test_json_ends_no_script():
    for exercise in ALL:
        text = fields(exercise)
        assert text.count("</script>") == (' type="application/json"' in text)


def test_the_answers_need_no_torch_on_the_site():
    code = "import sys; sys.modules['torch'] = None; import engine.site.exercises"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
