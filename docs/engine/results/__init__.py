"""The page of results: gathered from the folders of runs, and never typed.

`python -m engine results RUN …` keeps what a run was asked and what came of it in
docs/results/, one file a run, and writes docs/results.md from all files that are there.
The words of the page stand in `page.md.jinja`, and which table has which columns.
"""

from collections.abc import Iterable
from pathlib import Path

from engine.results import choice, columns, groups, ledger
from engine.results.kept import Run, keep, kept_results
from engine.tables import render, signed

__all__ = ["keep", "kept_results", "page", "write", "written"]

PAGE = "results.md"


def page(docs: Path) -> str:
    """Make the page from what is kept."""
    return written(kept_results(docs))


def written(runs: Iterable[Run]) -> str:
    """Make the page of some runs."""
    return render(
        Path(__file__).parent / "page.md.jinja",
        groups=groups.grouped(runs),
        choice=choice,
        ledger=ledger,
        table=columns.table,
        across=columns.across,
        machines=groups.machines,
        seeds_told=groups.seeds_told,
        commands=groups.commands,
        signed=signed,
    )


def write(docs: Path, runs: Iterable[Path] = ()) -> None:
    """Keep these runs, and write the page; a KeptError names file and field."""
    keep(docs, runs)
    (docs / PAGE).write_text(page(docs), "utf-8")
