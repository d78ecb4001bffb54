"""A chapter's notebook reads well, holds the outputs, and runs without the package."""

import contextlib
import copy
import json
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from engine.copies.alone import problem_of
from engine.copies.as_markdown import flat_lines, notebook_markdown
from engine.copies.notebooks import notebooks
from engine.pages.reading import Page
from engine.project import Project
from engine.run.running import Runner
from engine.run.working import all_of, package_imported_anew
from small_project import SMALL, Write

INSTALLING = '%pip install --quiet "tiny @ git+https://github.com/example/tiny"'
BUILD = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "tiny"
version = "1"
[tool.hatch.build.targets.wheel]
packages = ["tiny"]
"""


def make(page: Page) -> dict[str, Any]:
    anew = package_imported_anew(page.project)
    with anew, contextlib.closing(Runner(page)) as runner:
        return json.loads(notebooks(all_of(runner))[page.name])


@pytest.fixture(scope="module")
def chapter(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("notebook") / "small"
    shutil.copytree(SMALL, root)
    page = Page(Project(root), root / "docs" / "chapters" / "scale.md")
    book = make(page)
    assert make(page) == book  # the same at every run
    return book


def sources(book: dict[str, Any], kind: str) -> list[str]:
    return ["".join(x["source"]) for x in book["cells"] if x["cell_type"] == kind]


def printed(cell: dict[str, Any]) -> str:
    streams = [x for x in cell.get("outputs", []) if x["output_type"] == "stream"]
    return "".join("".join(x["text"]) for x in streams)


def test_text_is_that_of_a_notebook(chapter: dict[str, Any]) -> None:
    first, *others = sources(chapter, "markdown")
    assert "A copy of <https://example.org/tiny/chapters/scale/>" in first
    text = "\n".join(others)
    for line in (
        "$$\nx_{i} = \\frac{a}{b}\n$$",
        "\n**Why?**",
        "<sup>1</sup> A picture made of words.",
        "```python\ndef __call__(self",
    ):
        assert line in text, line
    for mark in ("--8<--", "pytest", "*[SVG]", "in tabs", "!!!", "===", "](../", "{ #"):
        assert mark not in text, mark


def test_code_is_that_of_the_page_and_has_its_figures(chapter: dict[str, Any]) -> None:
    installing, *code = sources(chapter, "code")
    assert installing == INSTALLING
    assert code[0].endswith("for value in values]")
    assert code[2].startswith('text = """\n  two lines\n\n"""')
    assert code[-2].endswith("Scaler(4.0)([1.0]);")  # or Jupyter would show its value
    assert code[-1] == 'print("quoted")'
    outputs = [x for cell in chapter["cells"] for x in cell.get("outputs", [])]
    (figure,) = (x["data"] for x in outputs if "data" in x)
    assert figure["text/plain"] == ["A line that rises to 0.5"]
    assert figure["image/svg+xml"][0].startswith("<svg")


@pytest.mark.nightly
def test_jupyter_runs_it_without_the_package(
    chapter: dict[str, Any],
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first line is pip's: it looks here for what it would find elsewhere."""
    (project.root / "pyproject.toml").write_text(BUILD, "utf-8")
    (there := tmp_path / "packages").mkdir()
    monkeypatch.setenv("PIP_TARGET", str(there))
    monkeypatch.setenv("PYTHONPATH", str(there))
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "0")  # hatchling is here: pip means 1
    book = nbformat.reads(json.dumps(chapter), as_version=4)
    installing = next(cell for cell in book.cells if cell.source == INSTALLING)
    installing.source = INSTALLING.replace(
        "tiny @ git+https://github.com/example/tiny", str(project.root)
    )
    asks = nbformat.v4.new_code_cell("import tiny.stored; print(tiny.__file__)")
    book.cells.append(asks)
    expected = [printed(cell) for cell in chapter["cells"]]
    kernel = tmp_path / "elsewhere"
    kernel.mkdir()
    NotebookClient(book, resources={"metadata": {"path": str(kernel)}}).execute()
    installing.outputs = []  # pip says that the kernel may have to start again
    assert [printed(cell) for cell in book.cells[:-1]] == expected
    assert printed(asks).startswith(str(there))
    assert '"execute_result"' not in json.dumps(book)


def test_it_runs_alone_and_says_where_it_does_not(
    chapter: dict[str, Any], project: Project, tmp_path: Path
) -> None:
    path = tmp_path / "scale.ipynb"
    path.write_text(json.dumps(chapter), "utf-8")
    assert problem_of("tiny", path, project.root) is None
    assert "'tiny' is not a package" in (problem_of("tiny", path) or "")
    cells = copy.deepcopy(chapter["cells"])
    installing, *rest = [x for x in cells if x["cell_type"] == "code"]
    path.write_text(json.dumps({"cells": rest}), "utf-8")  # nothing installs it
    assert "'tiny' is not a package" in (problem_of("tiny", path, project.root) or "")
    rest[1]["outputs"][0]["text"] = ["something else\n"]
    path.write_text(json.dumps({"cells": [installing, *rest]}), "utf-8")
    assert "cell 3 prints\n[0.7071" in (problem_of("tiny", path, project.root) or "")


def test_a_page_without_the_package_has_no_copy_of_it(write: Write) -> None:
    assert sources(make(write("```python\nx = 1\n```\n")), "code") == ["x = 1"]


def test_boxes_inside_boxes_open_up(write: Write) -> None:
    page = write("""
        Before.

        ??? question "Why?"

            In the question.

            ===+ "One tab"

                !!! tip

                    In the tip.

                ```python
                x = 1
                ```

                After code.

            Still the question.

        1. A list

            with a part of its own.

        After.
    """)
    lines = [text for _, text in flat_lines(page) if text]
    assert lines == [
        "Before.",
        "**Why?**",
        "In the question.",
        "**One tab**",
        "**Tip**",
        "In the tip.",
        "After code.",
        "Still the question.",
        "1. A list",
        "    with a part of its own.",
        "After.",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("## Title { #id }", "## Title"),
        ("[a](index.md){ .md-button } b", "[a](https://example.org/tiny/) b"),
        ("[a](chapters/b.md#c)", "[a](https://example.org/tiny/chapters/b/#c)"),
        ('<figure class="live" data-live="masks" markdown>', None),
        ("</figure>", None),
        ("`<figure>` in the text", "`<figure>` in the text"),
        ("[a](#c)", "[a](https://example.org/tiny/page/#c)"),
        ("[a](labs/lab.ipynb)", "[a](https://example.org/tiny/labs/lab/)"),
        ("[`a`](chapters/b.md)", "[`a`](https://example.org/tiny/chapters/b/)"),
        ("[a](https://x.org/b.md)", "[a](https://x.org/b.md)"),
        ("[ref]: chapters/b.md", "[ref]: https://example.org/tiny/chapters/b/"),
        (r"\(x_{.5}\) and `\(y\)`", r"$x_{.5}$ and `\(y\)`"),
        (r"\(\operatorname{.x}\)", r"$\operatorname{.x}$"),
        ("`#!python x = 1`", "`x = 1`"),
        ("word[^note] and [^2]", "word<sup>note</sup> and <sup>2</sup>"),
        ("a <!-- hidden --> b", "a  b"),
        (
            "![alt](assets/a.png){ width=3 }",
            "![alt](https://example.org/tiny/assets/a.png)",
        ),
        ("{ .lead }", ""),
        ("a dictionary {a: 1}", "a dictionary {a: 1}"),
    ],
)
def test_markdown(write: Write, line: str, expected: str | None) -> None:
    assert notebook_markdown(write("# Page\n"), line) == expected
