"""What holds over all pages, and between them and the package."""

import re
import textwrap

import pytest

from engine.markers import marker_problems
from engine.page import Page
from engine.project import Project
from engine.project_rules import project_problems, unshown_names
from small_project import Write


def test_the_small_project_is_in_order(project: Project) -> None:
    pages = [Page(project, path) for path in project.pages]
    assert project_problems(project, pages) == []


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("# --8<-- [start:a]\nx = 1\n", "m.py:1: `a` never ends"),
        ("x = 1\n# --8<-- [end:a]\n", "m.py:2: no section `a` begins above this end"),
        ("# --8<-- [start:a]\n# --8<-- [end:b]\n", "m.py:2: no section `b` begins"),
        (
            "# --8<-- [start:a]\n# --8<-- [end:a]\n"
            "# --8<-- [start:a]\n# --8<-- [end:a]\n",
            "m.py:3: a second section `a`",
        ),
        ("# --8<-- [strat:a]\n", "m.py:1: not a snippet marker"),
        ("# --8<--[start:a]\n", "m.py:1: not a snippet marker"),
        ("# -8<- [Start:a]\n# --8<-- [end: a ]\n", None),
        (
            "# --8<-- [start:a]\n# --8<-- [start:b]\n"
            "# --8<-- [end:b]\n# --8<-- [end:a]",
            None,
        ),
    ],
)
def test_markers(project: Project, source: str, says: str | None) -> None:
    (project.root / "tiny" / "deep").mkdir()
    (project.root / "tiny" / "deep" / "m.py").write_text(source, "utf-8")
    problems = "\n".join(marker_problems(project))
    assert problems == "" if says is None else says in problems


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
    init = project.root / "tiny" / "__init__.py"
    init.write_text('__all__ = ["scale", "Scaler", "hidden"]\n', "utf-8")
    page = write(
        textwrap.dedent("""
            ---
            kind: chapter
            ---
            Scaler is in the text only.
            ```python
            from tiny.scale import scale
            ```
        """).lstrip()
    )
    assert unshown_names(project, [page]) == ["Scaler", "hidden"]


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
