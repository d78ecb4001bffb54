"""Write what the blocks print into the outputs that the pages show."""

from pathlib import Path

from engine.cache import Cache
from engine.comparing import same_output
from engine.fences import Fence
from engine.generate import read_pages
from engine.page import Page
from engine.project import Project


def rewrite_outputs(project: Project, chosen: list[Path] | None = None) -> list[str]:
    """Run the pages that changed, mend their stale outputs; return what went wrong.

    A page with a block that fails stays as it is.
    """
    from engine.processes import run_pages

    pages, problems = read_pages(project, chosen or project.pages)
    cache = Cache(project)
    for page, outcome in run_pages(
        project, [page for page in pages if not cache.is_fresh(page)]
    ):
        if outcome.failed:
            problems += outcome.problems
            continue
        text, count = with_outputs(page, outcome.printed)
        if count:
            page.path.write_bytes(text.encode())
            name = project.relative(page.path)
            print(f"{name}: {count} outputs written", flush=True)
    return problems


def with_outputs(page: Page, printed: dict[int, str]) -> tuple[str, int]:
    """Return the text of a page with true outputs, and how many were not."""
    raw = page.path.read_bytes().decode("utf-8")
    newline = "\r\n" if "\r\n" in raw else "\n"
    lines = raw.split(newline)
    count = 0
    for block in reversed(page.blocks):
        output = block.output
        if output is None or block.number not in printed:
            continue
        if not same_output(output.code, printed[block.number]):
            first = output.opening.origin.line  # the index of the line below the fence
            lines[first : first + len(output.lines)] = _indented(
                output, printed[block.number]
            )
            count += 1
    return newline.join(lines), count


def _indented(output: Fence, printed: str) -> list[str]:
    lines = printed.rstrip("\n").split("\n") if printed.strip() else []
    if any(line.startswith(output.ticks) for line in lines):
        raise ValueError(f"{output.opening.origin}: the output would close its fence")
    return [f"{output.prefix}{line}".rstrip() for line in lines]
