"""What a first contribution gets wrong fails in the test of its page, and says how."""

import re

import pytest

from engine.pages.checking import text_problems
from engine.project import Project
from small_project import Write, problems_of

CHAPTER = "chapters/scale.md"
OUTPUT = "```{.text .output}\n    14\n    ```"
UNSEEDED = "import random\n\nprint(random.random())\nprint(scale(values, 2.0))"
ALT = "![A line that rises from 0.25 to 0.5]"
FIGURE = "../figures/scale-line.svg"
MISTAKES: dict[str, tuple[str, str, str]] = {  # what is changed, to what, and what says
    "a number from nowhere": (
        "Why divide?",
        "Why divide by 77.5?",
        "'77.5' is printed by no block and has no source, in “Why divide by 77.5?”",
    ),
    "kind misspelt": ("question: How?", "kind: chaptre", ":2: `kind: chaptre` is un"),
    "a goal with a colon": (
        "[scale numbers]",
        "[say: this]",
        "quoted: {'say': 'this'}",
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
    "a wide line": (
        "values = [1.0,",
        f"values = [1.{'0' * 94},",
        ": 120 columns",
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


def test_the_chapter_itself_is_in_order(project: Project) -> None:
    assert problems_of(project, project.docs / CHAPTER) == []


def test_a_chapter_in_no_list_is_found(project: Project) -> None:
    with (project.root / "mkdocs.yml").open("a") as file:
        file.write("nav: [index.md, chapters/other.md]\n")
    assert problems_of(Project(project.root), project.docs / CHAPTER) == [
        "mkdocs.yml: add chapters/scale.md after chapters/other.md"
    ]


def test_the_kind_is_that_of_the_folder(project: Project, write: Write) -> None:
    assert write("# Words", "chapters/a.md").is_chapter
    assert not write("# Words", "a.md").is_chapter
    assert write("---\nkind: chapter\n---\n# Words", "a.md").is_chapter
    assert not write("---\nkind: page\n---\n# Words", "chapters/a.md").is_chapter
    assert problems_of(project, project.docs / "chapters" / "a.md") == []
    write("# Words", "chapters/a.md")
    found = "\n".join(problems_of(project, project.docs / "chapters" / "a.md"))
    assert len(re.findall(r"a.md:1: (add|the section)", found)) == 5 + 13


@pytest.mark.parametrize(
    "text",
    [
        "[a](index.md) [b](chapters/scale.md#code) [c](#here) [d](https://x.org/y.md)",
        "[e](notebooks/scale.ipynb) [f](downloads/scale_numpy.py) [g](api/any.md)",
        "`[h](gone.md)` and ``[i](gone.md)``",
        "```text\n[j](gone.md)\n```",
        "![k](figures/page.svg)",
    ],
)
def test_links_that_lead_somewhere(write: Write, text: str) -> None:
    assert text_problems(write(text + "\n")) == []


@pytest.mark.parametrize(
    "target", ["gone.md", "notebooks/gone.ipynb", "downloads/gone.py", "../LICENSE"]
)
def test_links_that_lead_nowhere(write: Write, target: str) -> None:
    (problem,) = text_problems(write(f"\n\nWords and [a link]({target}).\n"))
    assert problem.endswith(f"page.md:1: {target} is not there")


@pytest.mark.parametrize(
    ("fence", "width", "fails"),
    [
        ("python", 100, False),
        ("python", 101, True),
        ("sh", 119, False),
        ("sh", 120, True),
        ("{.text .output}", 150, False),  # as wide as what was printed
    ],
)
def test_code_is_not_too_wide(
    write: Write, fence: str, width: int, fails: bool
) -> None:
    text = f"```{fence}\n{'#' * width}\n```\n"
    before = "```python\nx = 1\n```\n" if "output" in fence else ""
    assert bool(text_problems(write(before + text))) is fails
