"""This project's own pages: what holds over all of them together."""

import re
from pathlib import Path

from engine.making import read_pages
from engine.pages.checking import PYTHON_WIDTH, SECTIONS
from engine.pages.listing import project_problems, todo_problems, unshown_names
from engine.project import ENGINE, Project

PROJECT = Project(Path(__file__).parents[2])


def test_pages_are_in_order_and_every_public_name_is_in_a_chapter() -> None:
    pages, problems = read_pages(PROJECT, PROJECT.pages)
    problems += project_problems(PROJECT, pages)
    assert not problems, "\n".join(problems)
    assert unshown_names(PROJECT, pages) == []


def test_the_documents_say_how_wide_python_may_be() -> None:
    for name in ("CHAPTER_HABITS.md", "CONTRIBUTING.md"):
        text = (PROJECT.root / ".github" / name).read_text("utf-8")
        assert f"{PYTHON_WIDTH} columns" in " ".join(text.split()), name


def test_a_new_chapter_begins_with_every_section_marked_todo() -> None:
    path = ENGINE / "pages" / "chapter.md"
    text = path.read_text("utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert tuple(headings) == SECTIONS
    assert len(todo_problems(path, text)) == len(SECTIONS) + 13
