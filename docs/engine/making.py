"""Make figures, notebooks and one-file downloads from the pages that changed."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from engine.pages.blocks import PageError
from engine.pages.reading import Page
from engine.project import Project
from engine.run.cache import Cache, write

if TYPE_CHECKING:
    from engine.run.working import Outcome

# The folders in docs/ that hold nothing else, and what they hold.
MADE = {"figures": ".svg", "notebooks": ".ipynb", "downloads": ".py"}
Chosen = list[Path] | None  # pages; all of them, where it is None


def generate(project: Project, chosen: Chosen = None) -> list[str]:
    """Run what is not fresh, write what it gives, and return what is wrong.

    Where all pages are asked for, files that no page makes any more are removed.
    """
    pages, problems = read_pages(project, chosen or project.pages)
    cache = Cache(project)
    for page, outcome in _run_stale(cache, pages):
        name = project.relative(page.path)
        print(f"made {name}: {outcome.seconds:.1f} s", flush=True)
        problems += outcome.problems
        if not outcome.problems:
            cache.store(page, outcome.inputs, outcome.products)
    if len(pages) == len(project.pages):
        wanted = set().union(*(cache.products(page) for page in pages))
        for folder in MADE:
            _remove_others(project, folder, wanted)
    return problems


def rewrite_outputs(project: Project, chosen: Chosen = None) -> list[str]:
    """Run the pages that changed, mend their stale outputs; return what went wrong.

    A page with a block that fails stays as it is.
    """
    from engine.run.outputs import UNSEEDED, with_outputs

    pages, problems = read_pages(project, chosen or project.pages)
    for page, outcome in _run_stale(Cache(project), pages):
        if outcome.failed:
            problems += outcome.problems
            continue
        problems += (x for x in outcome.problems if UNSEEDED in x)  # and not written
        text, count = with_outputs(page, outcome.printed)
        if count:
            page.path.write_bytes(text.encode())
            name = project.relative(page.path)
            print(f"{name}: {count} outputs written", flush=True)
    return problems


def write_downloads(project: Project, chosen: Chosen = None) -> list[str]:
    """Write the one-file code of each chapter, and run no page."""
    from engine.copies.standalone import standalone_files

    pages, problems = read_pages(project, chosen or project.pages)
    written = set()
    for page in pages:
        try:
            for file in standalone_files(page) if page.is_chapter else []:
                path = project.docs / "downloads" / file.name
                write(path, file.text)
                written.add(project.relative(path))
                lines = file.text.count("\n")
                print(f"{project.relative(path)}: {lines} lines", flush=True)
        except PageError as error:
            problems.append(project.tidy(str(error)))
    if not chosen and not problems:
        _remove_others(project, "downloads", written)
    return problems


def _remove_others(project: Project, folder: str, wanted: set[str]) -> None:
    """Remove the files that no page makes any more."""
    for path in (project.docs / folder).glob(f"*{MADE[folder]}"):
        if project.relative(path) not in wanted:
            path.unlink()


def read_pages(project: Project, paths: list[Path]) -> tuple[list[Page], list[str]]:
    """Return the pages that can be read, and why others cannot."""
    pages, problems = [], []
    for path in paths:
        try:
            page = Page(project, path)
            _ = page.lines
            pages.append(page)
        except PageError as error:
            problems.append(project.tidy(str(error)))
    return pages, problems


def _run_stale(cache: Cache, pages: list[Page]) -> "Iterable[tuple[Page, Outcome]]":
    """Run the pages that changed; where none did, nothing slow is imported."""
    stale = [page for page in pages if not cache.is_fresh(page)]
    if not stale:
        return []
    from engine.run.working import run_pages

    return run_pages(stale)
