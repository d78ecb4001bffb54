"""What holds over all pages, and between them and the package."""

import re
from pathlib import Path

import pytest

from engine.making import read_pages
from engine.pages.checking import PYTHON_WIDTH, SECTIONS
from engine.pages.listing import unshown_names
from engine.project import ENGINE, Project
from small_project import Write

PROJECT = Project(Path(__file__).parents[2])


def test_names_that_no_chapter_shows_are_found(write: Write, project: Project) -> None:
    """What torch calls so, and what stands in the text only, is not shown."""
    names = ", ".join(f"{x} as {x}" for x in ("A", "B", "C", "D", "E", "Text"))
    (project.root / "tiny/__init__.pyi").write_text(f"from tiny.nn import {names}\n")
    lines = "nn.A; torch.nn.B\nfrom torch.nn import C\nfrom tiny.nn import D\ntiny.nn.E"
    page = write(f"Text.\n```python\n{lines}\n```\n", "chapters/page.md")
    assert unshown_names(project, [page]) == ["A", "B", "C", "Text"]


def test_every_public_name_is_in_a_chapter() -> None:
    pages, problems = read_pages(PROJECT, PROJECT.pages)
    assert not problems, "\n".join(problems)
    assert unshown_names(PROJECT, pages) == []


def test_the_documents_say_how_wide_python_may_be() -> None:
    for name in ("CHAPTER_HABITS.md", "CONTRIBUTING.md"):
        text = (PROJECT.root / ".github" / name).read_text("utf-8")
        assert f"{PYTHON_WIDTH} columns" in " ".join(text.split()), name


def test_a_new_chapter_begins_with_every_section_marked_todo() -> None:
    text = (ENGINE / "pages" / "chapter.md").read_text("utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert tuple(headings) == SECTIONS
    assert len(re.findall(r"TODO.*", text)) == len(SECTIONS) + 13


@pytest.mark.parametrize(
    ("file", "address"),
    [
        ("index.md", "https://example.org/tiny/"),
        ("chapters/scale.md", "https://example.org/tiny/chapters/scale/"),
        ("chapters/index.md", "https://example.org/tiny/chapters/"),
        ("labs/lab.ipynb", "https://example.org/tiny/labs/lab/"),
        ("notebooks/scale.ipynb", "https://example.org/tiny/notebooks/scale.ipynb"),
        ("../README.md", "https://github.com/example/tiny/blob/HEAD/README.md"),
    ],
)
def test_addresses(project: Project, file: str, address: str) -> None:
    assert project.page_url((project.docs / file).resolve()) == address
