"""All that can be wrong with a page, in one place for pytest and for the generator."""

from engine.blocks import Block
from engine.comparing import difference, same_output
from engine.completeness import unseen_code
from engine.page import Page
from engine.places import image_problems
from engine.rendered import render
from engine.running import Result
from engine.sections import section_problems


def page_problems(page: Page) -> list[str]:
    """Return what is wrong with a page before any of its blocks is run."""
    rendered = render(page)
    return [
        *unseen_code(page, rendered),
        *section_problems(page, rendered),
        *image_problems(page, rendered),
    ]


def count_line(pages: int, found: int, run: int, left_out: int) -> str:
    """Say what became of all Python blocks."""
    equal = "=" if found == run + left_out else "!="
    return (
        f"pages: {pages}, Python blocks: {found} found {equal} "
        f"{run} run + {left_out} left out with a reason"
    )


def output_problem(block: Block, result: Result) -> str | None:
    """Return how a page's output differs from what its block printed, if it does."""
    if block.output is None or same_output(block.output.code, result.stdout):
        return None
    return (
        f"{block.output.opening.origin}: the output is stale\n"
        f"{difference(block.output.code, result.stdout)}\n"
        "`make outputs` writes what the blocks print into the pages."
    )
