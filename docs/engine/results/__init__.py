"""The page of results: gathered from the folders of runs, and never typed.

`python -m engine results RUN …` keeps what a run was asked and what came of it in
docs/results/, one file a run, and writes docs/results.md from all files that are there.

kept          what is kept of a run
groups        runs that differ in their seed alone, and the command of each
numbers       intervals, and numbers as people write them
page          the order of the page
ledger_rows, ledger_words
              the parts of the ledger, and what they are called
tasks, translation, models, splits, ablations, text, ledger, recipe, curves
              a section of the page each; one more needs a line in `page`
"""

from collections.abc import Iterable
from pathlib import Path

from engine.results.kept import changes, keep, kept_results, run_name, summary
from engine.results.page import render

__all__ = ["changes", "keep", "kept_results", "page", "run_name", "summary", "write"]

PAGE = "results.md"


def page(docs: Path) -> str:
    """Make the page from what is kept."""
    results = kept_results(docs)
    return render([{**kept, "changes": changes(kept["settings"])} for kept in results])


def write(docs: Path, runs: Iterable[Path] = ()) -> None:
    """Keep these runs, and write the page."""
    keep(docs, runs)
    (docs / PAGE).write_text(page(docs), "utf-8")
