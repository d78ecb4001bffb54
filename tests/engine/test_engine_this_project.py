"""This project's own pages: what holds over all of them together."""

from pathlib import Path

from engine.making import read_pages
from engine.pages.checking import project_problems, unshown_names
from engine.project import Project

PROJECT = Project(Path(__file__).parents[2])


def test_markers_and_names_are_in_order() -> None:
    pages, problems = read_pages(PROJECT, PROJECT.pages)
    problems += project_problems(PROJECT, pages)
    assert not problems, "\n".join(problems)


def test_every_public_name_is_in_a_chapter() -> None:
    pages, _ = read_pages(PROJECT, PROJECT.pages)
    assert unshown_names(PROJECT, pages) == []
