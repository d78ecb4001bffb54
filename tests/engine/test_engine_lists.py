"""Lists of chapters come from the navigation and the chapters' front matter."""

import pytest

from engine.project import Project
from engine.site.lists import (
    chapters,
    home_table,
    list_problems,
    order,
    write_readme,
)

PAGE = """---
kind: chapter
concept: {name}s
question: Why {name}?
goals: [{name}]
builds_on: [{before}]
modules: [tiny/{name}.py, tiny/reference/{name}.py]
---

# The {name} {{ #here }}
"""
README = """# tiny

| Concept | Chapter | Module |
|---|---|---|
| scales | [The scale](docs/chapters/scale.md) | [`scale`](tiny/scale.py) |
| shifts | [The shift](docs/chapters/shift.md) | [`shift`](tiny/shift.py) |

The end.
"""


@pytest.fixture
def book(project: Project) -> Project:
    """Two chapters, in the order of the navigation, and a README."""
    names = ("scale", "")
    for name, before in (names, ("shift", "scale.md")):
        text = PAGE.format(name=name, before=before)
        text += (
            "\nNext: [the shift](shift.md), which shifts.\n" if name == "scale" else ""
        )
        (project.docs / f"chapters/{name}.md").write_text(text, "utf-8")
    with (project.root / "mkdocs.yml").open("a") as file:
        file.write("nav:\n  - index.md\n  - Book:\n")
        file.write("      - chapters/scale.md\n      - chapters/shift.md # last\n")
    (project.root / "README.md").write_text(README, "utf-8")
    return Project(project.root)


def change(project: Project, file: str, old: str, new: str) -> list[str]:
    """Replace a text once; return what is wrong then."""
    path = project.root / file
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")
    return list_problems(Project(project.root))


def test_lists_follow_the_navigation(book: Project) -> None:
    assert [chapter.name for chapter in chapters(book)] == ["scale", "shift"]
    assert home_table(book)[2:] == [
        "| [The scale](chapters/scale.md) | Why scale? | [`scale`][tiny.scale] |",
        "| [The shift](chapters/shift.md) | Why shift? | [`shift`][tiny.shift] |",
    ]
    assert order(book) == [
        "1. [The scale](scale.md): Why scale?",
        "2. [The shift](shift.md): Why shift?",
    ]
    assert list_problems(book) == []


SCALE, SHIFT = "docs/chapters/scale.md", "docs/chapters/shift.md"


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("README.md", "| shifts", "| shift", "README.md: `make lists` writes its"),
        ("README.md", "\n\nThe", "\n| x | y | z |\n\nThe", "README.md: `make lists`"),
        (
            *(SCALE, "(shift.md)", "(scale.md)"),
            f"{SCALE}:12: the chapter needs one line `Next: [The shift](shift.md)`",
        ),
        (
            *(SCALE, "Next: [the shift](shift.md), which shifts.", ""),
            f"{SCALE}:13: the chapter needs one line `Next:",
        ),
        (
            *(SHIFT, "concept: shifts\n", ""),
            f"{SHIFT}:1: the front matter says no `concept:`",
        ),
        (
            *(SCALE, "[the shift]", "[the shirt]"),
            f"{SCALE}:12: the link is called otherwise: Next: [The shift](",
        ),
        (
            *(SCALE, "builds_on: []", "builds_on: [shift.md]"),
            f"{SCALE}:1: builds on shift.md, which mkdocs.yml puts after",
        ),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(
    book: Project, file: str, old: str, new: str, message: str
) -> None:
    problems = change(book, file, old, new)
    assert [problem[: len(message)] for problem in problems] == [message]


def test_readme_is_written(book: Project) -> None:
    assert not write_readme(book)
    (book.docs / "chapters/scale.md").unlink()
    assert change(book, "mkdocs.yml", "      - chapters/scale.md\n", "")
    assert write_readme(Project(book.root))
    text = (book.root / "README.md").read_text("utf-8")
    gone = (
        "| scales | [The scale](docs/chapters/scale.md) | [`scale`](tiny/scale.py) |\n"
    )
    assert text == README.replace(gone, "")


def test_a_chapter_that_the_navigation_lacks_comes_first(book: Project) -> None:
    text = PAGE.format(name="root", before="scale.md")
    (book.docs / "chapters/root.md").write_text(text, "utf-8")
    page = text.replace("kind: chapter", "kind: page")
    (book.docs / "chapters/words.md").write_text(page, "utf-8")
    old = "Next: [the shift](shift.md), which shifts."
    assert change(book, "docs/chapters/scale.md", old, "Next: [Root](root.md)") == [
        "mkdocs.yml: add chapters/root.md after chapters/scale.md"
    ]


def test_readme_without_a_table_says_so(book: Project) -> None:
    with pytest.raises(ValueError, match=r"^README\.md has no table '\| Concept"):
        change(book, "README.md", "| Concept |", "| Topic |")
