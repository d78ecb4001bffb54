"""Core and depth: what a first reading of a page needs, and what is folded below it.

A fold of depth stands at the left, with its heading and anchors inside:

    /// details | What it shows, in one sentence
        type: depth
        attrs: {id: in-sixteen-bits}

    ### Why compute scores in 32 bits? { #sixteen-bits }
    …
    ///

The core is all else of the page. It stands alone, and is short.
"""

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from markdown.extensions.toc import slugify  # type: ignore[import-untyped]

from engine.pages.blocks import Block, Line, PageError, indent_of

if TYPE_CHECKING:
    from engine.pages.reading import Page

MOST_WORDS, MOST_LINES = 1_300, 80  # of a core: prose, Python
WORDS_A_MINUTE, SECONDS_A_LINE = 120, 7  # of a student who reads a chapter first
# Code that draws, which nobody has to read.
DRAWS = re.compile(r"The code of this (picture|figure|plot)")

_OPENING = re.compile(r"/// details \| (?P<title>\S.*?)\s*$")
_MARK = re.compile(r"\s*///")
HEADING = re.compile(r"#+\s+(?P<text>.*?)\s*(?:\{\s*#(?P<id>[\w-]+)[^}]*\})?\s*$")


class Depth(NamedTuple):
    """A fold: indices of its first line, of the first below its head, of its last."""

    start: int
    inside: int
    end: int
    title: str
    id: str

    @property
    def draws(self) -> bool:
        """Whether it holds but the code of a picture."""
        return bool(DRAWS.match(self.title))


class Size(NamedTuple):
    """How long a text is: words, lines of Python, and those of them that are seen."""

    words: int
    lines: int
    seen: int

    @property
    def minutes(self) -> float:
        """The time of a student who reads and runs it."""
        return self.words / WORDS_A_MINUTE + self.seen * SECONDS_A_LINE / 60


def find_depths(prose: Iterable[tuple[int, Line]]) -> list[Depth]:
    """Return the folds of a page, of whose lines only those outside of fences count."""
    found: list[Depth] = []
    lines = dict(prose)
    opened: tuple[int, int, str, str] | None = None
    for index, line in lines.items():
        if not _MARK.match(line):
            continue
        opening = _OPENING.match(line)
        if opening and opened is None:
            inside = index + 1
            while lines.get(inside, "").strip():
                inside += 1
            options = _options(line, [lines[n] for n in range(index + 1, inside)])
            opened = index, inside, opening["title"], options
        elif line.rstrip() == "///" and opened is not None:
            start, inside, title, name = opened
            found.append(Depth(start, inside, index, title, name))
            opened = None
        else:
            rule = "write `/// details | What it shows` at the left, and `///` below it"
            raise PageError(line.origin, f"{line.strip()}: no fold of depth: {rule}")
    if opened is not None:
        raise PageError(lines[opened[0]].origin, "no line `///` closes this fold")
    return found


def _options(opening: Line, lines: list[Line]) -> str:
    """Return the id of a fold."""
    try:
        said: Any = yaml.safe_load("\n".join(lines))
    except yaml.YAMLError:
        said = None
    given = said if isinstance(said, dict) else {}
    attributes = given.get("attrs")
    name = attributes.get("id") if isinstance(attributes, dict) else None
    if given.get("type") != "depth" or not name or min(map(indent_of, lines)) < 4:
        rule = "`type: depth` and `attrs: {id: …}` stand below, indented, then a blank"
        raise PageError(opening.origin, f"{opening.strip()}: {rule}")
    return str(name)


def core_blocks(page: "Page") -> list[Block]:
    """Return the blocks that stand in no fold of depth."""
    return [x for x in page.blocks if depth_at(page, x.fence.start) is None]


def depth_at(page: "Page", index: int) -> Depth | None:
    """Return the fold in which a line of a page stands."""
    return next((x for x in page.depths if x.start <= index <= x.end), None)


def size_of_core(page: "Page") -> Size:
    """Measure what stands in no fold."""
    inside = {n for x in page.depths for n in range(x.start, x.end + 1)}
    return _size(page, {*range(len(page.lines))} - inside)


def size_of(page: "Page", depth: Depth) -> Size:
    """Measure a fold, with its title."""
    return _size(page, {depth.start, *range(depth.inside, depth.end)})


def minutes_of(page: "Page") -> tuple[float, float]:
    """Return the minutes of a page's core, and of the whole page."""
    core = size_of_core(page).minutes
    read = (size_of(page, x).minutes for x in page.depths if not x.draws)
    return core, core + sum(read)


def core_problems(page: "Page") -> list[str]:
    """Return what makes the core of a page too long, and ids that two places have."""
    if not page.depths:
        return []
    core, problems = size_of_core(page), []
    for count, most, what in (
        (core.words, MOST_WORDS, "words of prose"),
        (core.lines, MOST_LINES, "lines of Python"),
    ):
        if count > most:
            told = f"the core has {count:,} {what}, and {most:,} are the most"
            problems.append(f"{page.top}: {told}: fold some of it as depth")
    ids = [x["id"] or slugify(x["text"], "-") for x in _headings(page)]
    for depth in page.depths:
        if ids.count(depth.id) or [x.id for x in page.depths].count(depth.id) > 1:
            where = page.lines[depth.start].origin
            problems.append(f"{where}: the id {depth.id} stands in two places")
    return problems


def _headings(page: "Page") -> Iterable[re.Match[str]]:
    return filter(None, (HEADING.match(line) for _, line in page.prose))


_NO_PROSE = (
    # Alternative text; a caption stays.
    (re.compile(r"!\[[^\]]*\]\([^)\s]*\s*\"?"), ""),
    (re.compile(r"<!--.*?-->|</?[a-z][^>]*>", re.DOTALL), " "),
    (re.compile(r"\]\([^)]*\)|\{ #[^}]*\}"), " "),  # targets and anchors
    (re.compile(r"^ *(?:\?\?\?|!!!|===)[^\"\n]*", re.MULTILINE), ""),  # a title stays
    (re.compile(r"\\operatorname|\\[a-z]+"), " "),
)
_WORD = re.compile(r"\w[\w'’.-]*")


def _size(page: "Page", lines: set[int]) -> Size:
    text = "\n".join(
        line.replace("/// details |", "") for n, line in page.prose if n in lines
    )
    for pattern, put in _NO_PROSE:
        text = pattern.sub(put, text)
    blocks = [x for x in page.blocks if x.fence.start in lines]
    seen = (_seen(x) for x in blocks if not _folded(page, x))
    return Size(len(_WORD.findall(text)), sum(map(_count, blocks)), sum(seen))


def _count(block: Block) -> int:
    return sum(bool(line.strip()) for line in block.lines)


def _folded(page: "Page", block: Block) -> bool:
    """Whether a block stands in a box that is closed at first."""
    prose, indent = dict(page.prose), indent_of(block.fence.opening)
    for index in range(block.fence.start - 1, -1, -1):
        line = prose.get(index, "")
        if line.strip() and indent_of(line) < indent:
            indent = indent_of(line)
            if line.strip().startswith("??? "):
                return True
        if not indent:
            return False
    return False


def _seen(block: Block) -> int:
    """Count the lines that are in sight: of a docstring the first."""
    try:
        tree = ast.parse(block.fence.code)
    except SyntaxError:  # a piece of a class
        return _count(block)
    kinds = ast.ClassDef | ast.FunctionDef | ast.Module
    hidden = 0
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            said = node.body[0]
            within = block.lines[said.lineno : said.end_lineno]
            hidden += sum(bool(line.strip()) for line in within)
    return _count(block) - hidden
