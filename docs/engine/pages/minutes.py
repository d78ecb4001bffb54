"""How long a page takes to read: what of it is seen, at a rate.

Counted are the words of the text, captions and formulas, and the lines of code and
output. Not counted is what a reader has to open first: solutions, the code of pictures,
the tab behind another, all but the first line of a docstring of the package.
"""

import re

from engine.pages.blocks import Fence, indent_of
from engine.pages.reading import Page

WORDS_A_MINUTE = 200  # a text that explains; a novel has 250
SECONDS_A_LINE = 3  # of code
SECONDS_AN_OUTPUT = 1  # a line of it
STEP = 5  # minutes: nobody reads to the minute

_FOLDED = re.compile(r"\?\?\?(?!\+)\s")
_TAB = re.compile(r"===(?P<first>\+?)!?\s")
_WORD = re.compile(r"\w[\w'’.-]*")
_DOCSTRING = re.compile(r'^\s*[a-zA-Z]?"""(?:(?!""").)*?"""', re.MULTILINE | re.DOTALL)
_IMAGE = re.compile(r'!\[[^\]]*\]\([^)\s"]*\s*"?|!\[[^\]]*\]')
_TARGET = re.compile(r"\]\([^)]*\)|\{[^}]*\}|<!--.*?-->|^\*\[.*$")


def minutes(page: Page) -> int:
    """Return the time to read a page, in steps of five minutes."""
    hidden = hidden_lines(page)
    inside = {n for f in page.fences for n in range(f.start, f.end + 1)}
    words = sum(
        len(_WORD.findall(_TARGET.sub(" ", _IMAGE.sub(" ", line))))
        for n, line in enumerate(page.lines)
        if n not in hidden | inside
    )
    fences = [fence for fence in page.fences if fence.start not in hidden]
    code = sum(_lines(page, fence) for fence in fences if not fence.is_output)
    outputs = sum(len(fence.lines) for fence in fences if fence.is_output)
    seconds = code * SECONDS_A_LINE + outputs * SECONDS_AN_OUTPUT
    return max(STEP, round((words / WORDS_A_MINUTE + seconds / 60) / STEP) * STEP)


def _lines(page: Page, fence: Fence) -> int:
    """Count the lines of code that are seen; docstrings of the package are folded."""
    lines = [line for line in fence.lines if line.strip()]
    if all(line.origin.file == page.path for line in lines):
        return len(lines)
    folded = _DOCSTRING.finditer(fence.code)
    return len(lines) - sum(_filled(each[0]) - 1 for each in folded)


def _filled(text: str) -> int:
    return sum(bool(line.strip()) for line in text.split("\n"))


def hidden_lines(page: Page) -> set[int]:
    """Return the indices of the lines that a reader has to open first."""
    hidden: set[int] = set()
    boxes: list[tuple[int, bool]] = []  # the indent of each, and whether it is folded
    inside = {n for f in page.fences for n in range(f.start, f.end + 1)}
    behind = _behind(page, inside)
    for index, line in enumerate(page.lines):
        if line.strip():
            while boxes and indent_of(line) <= boxes[-1][0] and index not in inside:
                boxes.pop()
        if any(folded for _, folded in boxes):
            hidden.add(index)
        text = line.strip()
        if index not in inside and (_FOLDED.match(text) or _TAB.match(text)):
            boxes.append((indent_of(line), index in behind or not _TAB.match(text)))
    return hidden


def _behind(page: Page, inside: set[int]) -> set[int]:
    """Return the lines that begin a tab which another tab stands before."""
    sets: list[list[tuple[int, bool]]] = []
    current: dict[int, list[tuple[int, bool]]] = {}  # by indent
    for index, line in enumerate(page.lines):
        if not line.strip() or index in inside:
            continue
        indent, tab = indent_of(line), _TAB.match(line.strip())
        for other in [x for x in current if x > indent or (x == indent and not tab)]:
            del current[other]
        if tab:
            if indent not in current:
                current[indent] = []
                sets.append(current[indent])
            current[indent].append((index, bool(tab["first"])))
    behind: set[int] = set()
    for tabs in sets:
        shown = next((index for index, first in tabs if first), tabs[0][0])
        behind |= {index for index, _ in tabs if index != shown}
    return behind
