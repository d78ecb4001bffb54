"""Run pages in processes of their own, two at a time."""

import multiprocessing
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

from engine.page import Page
from engine.project import Project

if TYPE_CHECKING:
    from engine.worker import Outcome

AT_ONCE = 2


def run_pages(project: Project, pages: list[Page]) -> Iterator[tuple[Page, "Outcome"]]:
    """Yield the outcome of each page as it comes.

    Each process is forked from one that imported torch and matplotlib, which takes
    most of the time that a short page needs, and nothing of the project: every page
    imports the package anew, as it is now.
    """
    from engine.worker import Outcome, work

    context = _context(project, pages)
    waiting = list(reversed(pages))
    running: dict[Connection, tuple[Page, BaseProcess]] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            page = waiting.pop()
            receiver, sender = context.Pipe(duplex=False)
            arguments = project.root, page.path, sender
            process: BaseProcess = context.Process(
                target=work, args=arguments, daemon=True
            )
            process.start()
            sender.close()
            running[receiver] = page, process
        for ready in wait(list(running)):
            assert isinstance(ready, Connection)
            page, process = running.pop(ready)
            try:
                outcome = ready.recv()
            except EOFError:
                process.join()
                problem = f"its process died with exit code {process.exitcode}"
                outcome = Outcome([project.tidy(f"{page.top}: {problem}")], failed=True)
            process.join()
            yield page, outcome


def _context(project: Project, pages: list[Page]) -> ForkServerContext | SpawnContext:
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    preload = ["engine.worker", "matplotlib.pyplot"]
    if project.needs_torch and any(project.package in page.text for page in pages):
        preload.append("torch")
    context.set_forkserver_preload(preload)
    return context
