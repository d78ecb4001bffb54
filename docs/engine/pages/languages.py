"""Each fence names its language, by a name that the site knows."""

import difflib
import functools

from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]

from engine.pages.blocks import PYTHON, SESSIONS, Fence
from engine.pages.reading import Page


def language_problems(page: Page) -> list[str]:
    """Return a problem for each fence without a language, or with an unknown one.

    The Python of such a fence would be neither highlighted nor run.
    """
    problems = [
        (fence, _problem(fence)) for fence in page.fences if not _is_known(fence)
    ]
    return [f"{fence.opening.origin}: {problem}" for fence, problem in problems]


def _is_known(fence: Fence) -> bool:
    return fence.language in PYTHON | SESSIONS or fence.language in _names()


def _problem(fence: Fence) -> str:
    begun = fence.opening.strip()
    if not fence.language:
        return f"{begun} names no language: write python, sh or text behind it"
    known = sorted({"python", "text", *_names()}, key=lambda x: x != "python")
    near = difflib.get_close_matches(fence.language, known, n=1, cutoff=0.5)
    advice = near[0] if near else "python, sh or text"
    return f"{begun}: the language `{fence.language}` is unknown: write {advice}"


@functools.cache
def _names() -> set[str]:
    """Return all names by which Pygments knows a language."""
    return {name for _, names, *_ in get_all_lexers() for name in names}
