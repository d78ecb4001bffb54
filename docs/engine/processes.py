"""Run pages in processes of their own, two at a time."""

import multiprocessing
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

from engine.cache import Cache
from engine.page import Page
from engine.project import Project

if TYPE_CHECKING:
    from engine.worker import Outcome

AT_ONCE = 2


def run_pages(
    project: Project, pages: list[Page], *, cached: bool = True
) -> Iterator[tuple[Page, "Outcome"]]:
    """Yield the outcome of each page as it comes.

    Each page with Python gets a process that is forked from one that imported torch
    and matplotlib, which takes most of the time that a short page needs, and nothing of
    the project: every page imports the package anew, as it is now. With `cached`,
    blocks are not run again where what they left behind still holds.
    """
    from engine.worker import Outcome, work

    context = _context(project, pages, cached)
    waiting = _jobs(pages)
    running: dict[Connection, tuple[list[Page], BaseProcess]] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            job = waiting.pop(0)
            receiver, sender = context.Pipe(duplex=False)
            arguments = project.root, [page.path for page in job], cached, sender
            process: BaseProcess = context.Process(
                target=work, args=arguments, daemon=True
            )
            process.start()
            sender.close()
            running[receiver] = job, process
        for ready in wait(list(running)):
            assert isinstance(ready, Connection)
            job, process = running[ready]
            page = job.pop(0)
            try:
                outcome = ready.recv()
            except EOFError:
                process.join()
                problem = f"its process died with exit code {process.exitcode}"
                outcome = Outcome([project.tidy(f"{page.top}: {problem}")], failed=True)
                waiting += [job] if job else []
                job = []
            if not job:
                process.join()
                del running[ready]
            yield page, outcome


def _jobs(pages: list[Page]) -> list[list[Page]]:
    """Give a process to each page with Python, and one to all others together."""
    alone = [[page] for page in pages if page.has_python]
    together = [page for page in pages if not page.has_python]
    return [*alone, together] if together else alone


def _context(
    project: Project, pages: list[Page], cached: bool
) -> ForkServerContext | SpawnContext:
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    cache = Cache(project)
    to_run = [
        page
        for page in pages
        if page.has_python and not (cached and cache.results(page) is not None)
    ]
    preload = ["engine.worker"]
    if to_run:
        preload.append("matplotlib.pyplot")
        if project.needs_torch and any(project.package in page.text for page in to_run):
            preload.append("torch")
    context.set_forkserver_preload(preload)
    return context
