"""Hold the blocks that were found against the page that readers see, both ways."""

from collections import Counter

from engine.fences import PYTHON, SESSIONS
from engine.lines import squeeze
from engine.page import Page
from engine.rendered import Rendered


def unseen_code(page: Page, rendered: Rendered) -> list[str]:
    """Return a problem for each code block on one side only.

    All languages are compared, so that Python in an indented block, in a `<pre>` or in
    a fence that the site does not take for one is missed by neither side.
    """
    shown = Counter(
        (code.language in PYTHON | SESSIONS, squeeze(code.text))
        for code in rendered.code
    )
    found = Counter((fence.is_python, squeeze(fence.code)) for fence in page.fences)
    problems = [
        f"{page.top}: the page shows {_what(python)} that the engine did not find, as "
        f"no fence begins it or its fence is not understood:\n{_indent(text)}"
        for python, text in (shown - found).elements()
    ]
    problems += [
        f"{_place(page, text)}: the engine found {_what(python)} that the page does "
        f"not show as one:\n{_indent(text)}"
        for python, text in (found - shown).elements()
    ]
    return problems


def _what(python: bool) -> str:
    return "a Python block" if python else "a code block"


def _place(page: Page, text: str) -> str:
    fences = (fence for fence in page.fences if squeeze(fence.code) == text)
    return str(next(fences).opening.origin)


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
