"""The one-file code of this project's chapters: it runs alone, prints, and is short."""

from pathlib import Path

import pytest

from engine.alone import DEMONSTRATION, problem_of
from engine.making import read_pages
from engine.project import Project
from engine.reading import Page
from engine.standalone import standalone_files

PROJECT = Project(Path(__file__).parents[2])
# Whole files, docstrings included, of the chapters that say `copy:`.
LONGEST = {"attention": 150, "heads": 240, "gpt": 420, "transformer": 600}


@pytest.fixture(scope="module")
def chapters() -> list[Page]:
    pages, problems = read_pages(PROJECT, PROJECT.pages)
    assert not problems, "\n".join(problems)
    return [page for page in pages if page.is_chapter]


def test_every_copy_runs_alone_and_prints(chapters: list[Page], tmp_path: Path) -> None:
    """All in one process, since most of the time goes into the import of torch."""
    paths = []
    for chapter in chapters:
        for file in standalone_files(chapter):
            paths.append(tmp_path / file.name)
            paths[-1].write_text(file.text, "utf-8")
    problem = problem_of(PROJECT.package, *paths)
    assert problem is None, problem


def test_every_chapter_that_offers_a_copy_has_a_demonstration(
    chapters: list[Page],
) -> None:
    offers = [page for page in chapters if page.meta.get("copy")]
    lacking = [
        f"{PROJECT.relative(page.path)}:{page.meta_line('copy').line}: add `demo: |`, "
        "a few lines of Python that print something"
        for page in offers
        if DEMONSTRATION not in standalone_files(page)[0].text
    ]
    assert not lacking, "\n".join(lacking)


def test_copies_are_short(chapters: list[Page]) -> None:
    long = []
    for page in chapters:
        if page.meta.get("copy") and page.name in LONGEST:
            length = standalone_files(page)[0].text.count("\n")
            if length > LONGEST[page.name]:
                where = PROJECT.relative(page.path)
                most = LONGEST[page.name]
                long.append(f"{where}: its copy has {length} lines, not {most}")
    assert not long, "\n".join(long)
