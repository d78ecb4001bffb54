"""What a first contribution gets wrong fails in the test of its page, and says how."""

import re

import pytest

from engine.pages.checking import (
    counted_problems,
    header_problems,
    page_problems,
    text_problems,
    tolerance_problems,
)
from engine.pages.reading import Page
from engine.project import Project
from small_project import Write

CHAPTER = "chapters/scale.md"
OUTPUT = "```{.text .output}\n    14\n    ```"
UNSEEDED = "import random\n\nprint(random.random())\nprint(scale(values, 2.0))"
ALT = "![A line that rises to 0.5]"
FIGURE = "../figures/scale-line.svg"
PICTURE = f'{ALT}({FIGURE} "It rises.")'
MISTAKES: dict[str, tuple[str, str, str]] = {  # what is changed, to what, and what says
    "a number from nowhere": (
        "Why divide?",
        "Why divide by 77.5?",
        "'77.5' is printed by no block and has no source, in “Why divide by 77.5?”",
    ),
    "a goal with a colon": (
        "[scale numbers]",
        "[say: this]",
        "quoted: [{'say': 'this'}]",
    ),
    "goals absent": ("goals: [scale numbers]\n", "", ":1: add `goals:`"),
    "description empty": ("How numbers are scaled.", "", ":1: add `description:`"),
    "builds_on absent": ("builds_on: []\n", "", ":1: add `builds_on:`"),
    "builds_on dead": (
        "builds_on: []",
        "builds_on: [gone.md]",
        ":3: the front matter names gone",
    ),
    "paper absent": ("paper: Section 3.2.1\n", "", ":1: add `paper:`"),
    "modules absent": ("modules: [tiny/scale.py]\n", "", ":1: add `modules:`"),
    "modules dead": ("modules: [tiny/", "modules: [gone/", "names gone/scale.py"),
    "a section gone": ("## See it", "### See it", "the section `## See it` is missing"),
    "an output deleted": (OUTPUT, "", ": the block prints, and the page shows nothing"),
    "an output plain": (
        "text .output}\n    14",
        ".text}\n    14",
        ": the block prints",
    ),
    "an output stale": ("\n    14\n", "\n    15\n", ": the output is stale"),
    "a figure without prefix": (
        FIGURE,
        "../figures/line.svg",
        "must begin with scal",
    ),
    "a figure without words": (ALT, "![]", "scale-line.svg has no alternative text"),
    "a figure without caption": (' "It rises."', "", "scale-line.svg has no caption"),
    "a figure shown twice": (PICTURE, f"{PICTURE}\n\n{PICTURE}", "in two places"),
    "labels that touch": (
        "fig, ax = plt.subplots()",
        "fig, ax = plt.subplots()\nax.text(0, 0, 'this')\nax.text(0, 0, 'that')",
        "in the figure scale-line.svg, the labels “this” and “that” overlap",
    ),
    "a language misspelt": (
        "``` {.python .annotate",
        "``` {.pytho .annotate",
        ':33: ``` {.pytho .annotate hl_lines="1"}: the language `pytho` is unknown: '
        "write python",
    ),
    "a language absent": (
        "```{.text .output}\n    14",
        "```\n    14",
        "names no language",
    ),
    "a dead link": (
        "../index.md#tiny",
        "../idnex.md#tiny",
        ": ../idnex.md#tiny is",
    ),
    "a dead reference": ("[^1]: A pict", "[a]: gone.md\n\n[^1]: A", ": gone.md is not"),
    "no seed": ("print(scale(values, 2.0))", UNSEEDED, "differs between runs: seed it"),
    "a name unknown": ('scale.py:Scaler"', 'scale.py:Scalar"', "near it: Scaler"),
    "a fence not closed": ("```\n\n1. Two", "\n1. Two", "scale.md:"),
    "a TODO left": ("Why divide?", "TODO: why?", ":14: TODO is left: TODO: why?"),
    "a reason missing": ('skip(reason="part of a class")', "skip()", "no reason"),
}


def test_a_chapter_in_no_list_is_found(project: Project) -> None:
    with (project.root / "mkdocs.yml").open("a") as file:
        file.write("nav: [index.md, chapters/other.md]\n")
    page = Page(Project(project.root), project.docs / CHAPTER)
    added = "mkdocs.yml: add chapters/scale.md after chapters/other.md"
    assert header_problems(page) == [added]


def test_all_of_the_folder_are_chapters_but_for_a_page(write: Write) -> None:
    assert not page_problems(write("# Words", "a.md"))
    assert not page_problems(write("---\nkind: page\n---\n# Words", "chapters/a.md"))
    found = "\n".join(page_problems(write("# Words", "chapters/a.md")))
    assert len(re.findall(r"a.md:1: (add|the section)", found)) == 5 + 13


@pytest.mark.parametrize(
    "text",
    [
        "[a](index.md) [b](chapters/scale.md#code) [c](#here) [d](https://x.org/y.md)",
        "[e](notebooks/scale.ipynb) [f](downloads/scale_numpy.py) [g](api/any.md)",
        "`[h](gone.md)` and ``[i](gone.md)`` ![k](figures/page.svg)",
        "```text\n[j](gone.md)\n```",
        f"```python\n{'#' * 100}\n```\n\n```{{.text .output}}\n{'#' * 150}\n```",
        f"```sh\n{'#' * 119}\n```",
    ],
)
def test_what_is_right_is_not_complained_of(write: Write, text: str) -> None:
    assert text_problems(write(text + "\n")) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[a link](gone.md)", "gone.md is not there"),
        ("[a link](notebooks/gone.ipynb)", "notebooks/gone.ipynb is not there"),
        ("[a link](downloads/gone.py)", "downloads/gone.py is not there"),
        ("[a link](../LICENSE)", "../LICENSE is not there"),
        (f"```python\n{'#' * 101}\n```", "101 columns, and 100 at most"),
        (f"```sh\n{'#' * 120}\n```", "120 columns, and 119 at most"),
    ],
)
def test_links_that_lead_nowhere_and_wide_code(
    write: Write, text: str, says: str
) -> None:
    (problem,) = text_problems(write(text + "\n"))
    assert says in problem


@pytest.mark.parametrize(
    ("title", "wrong"),
    [
        ("### In two lines", False),
        ("### A loop in three lines { #loop }", True),
        ("### In a few lines", False),
        ("### Two lines learn", False),
    ],
)
def test_a_title_counts_its_lines(title: str, wrong: bool, write: Write) -> None:
    code = "import os\n\n# first\nx = 1\nprint(x)"
    other = "```python\ny = 2\n```"
    page = write(f"# T\n\n{other}\n\n{title}\n\n```python\n{code}\n```\n\n{other}\n")
    told = "“three lines”, and the code below has 2: count, or write “a few”"
    assert [told in problem for problem in counted_problems(page)] == [True] * wrong


def test_lines_of_text_are_not_counted(write: Write) -> None:
    code = "## Code\n\n```python\nx = 1\n```"
    page = write(f"# T\n\n## All in five lines\n\n1. One.\n\n{code}\n")
    assert counted_problems(page) == []


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        ("torch.allclose(a, b, atol=1e-12)", True),
        ("print(np.isclose(a, b, atol=1e-9).all())", True),
        ("torch.allclose(a, b, rtol=0, atol=1e-12)", False),
        ("torch.allclose(a, b, atol=1e-4)", False),
        ("close(atol=size)", False),
        ("if atol", False),  # no Python: its run says so
    ],
)
def test_a_tight_atol_names_its_rtol(call: str, wrong: bool, write: Write) -> None:
    page = write(f"# T\n\n```python\n{call}\n```\n")
    told = "leaves `rtol` at its default"
    assert [told in problem for problem in tolerance_problems(page)] == [True] * wrong
