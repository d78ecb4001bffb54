"""What holds over all pages, and between them and the package."""

import re

import pytest

from engine.pages.listing import marked_sources, project_problems, unshown_names
from engine.pages.reading import Page
from engine.project import Project
from small_project import Write


def test_the_small_project_is_in_order(project: Project) -> None:
    pages = [Page(project, path) for path in project.pages]
    assert project_problems(project, pages) == []


def test_a_marker_in_the_package_is_found(project: Project) -> None:
    path = project.root / "tiny" / "deep" / "m.py"
    path.parent.mkdir()
    path.write_text("x = 1\n    # -8<- [start:a]\n", "utf-8")
    (problem,) = marked_sources(project)
    assert problem.startswith(f"{path}:2: the package holds no snippet markers")
    path.write_text("x = 8 < -1\n", "utf-8")
    assert marked_sources(project) == []


def test_two_chapters_may_not_share_a_name(write: Write) -> None:
    text = "---\nkind: chapter\n---\n# One\n"
    pages = [
        write(text, "a/same.md"),
        write(text, "b/same.md"),
        write("# No", "c/same.md"),
    ]
    problems = project_problems(pages[0].project, pages)
    assert len(problems) == 2
    assert all("another chapter is called same as well" in x for x in problems)


def test_names_that_no_chapter_shows_are_found(write: Write, project: Project) -> None:
    """What torch calls so, and what stands in the text only, is not shown."""
    names = ", ".join(f"{x} as {x}" for x in ("A", "B", "C", "D", "E", "Text"))
    (project.root / "tiny/__init__.pyi").write_text(f"from tiny.nn import {names}\n")
    lines = "nn.A; torch.nn.B\nfrom torch.nn import C\nfrom tiny.nn import D\ntiny.nn.E"
    page = write(f"---\nkind: chapter\n---\nText.\n```python\n{lines}\n```\n")
    assert unshown_names(project, [page]) == ["A", "B", "C", "Text"]


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


def test_a_folder_without_a_site_is_an_error(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("empty")
    with pytest.raises(FileNotFoundError, match=re.escape(str(folder))):
        Project.find(folder)
