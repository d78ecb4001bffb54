"""All that can be wrong with a page, in one place for pytest and for the generator."""

import ast
import functools
import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from textwrap import indent

from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]

from engine.copies.needed import editable_problems
from engine.pages.blocks import PYTHON, SESSIONS, Fence, Line, squeeze
from engine.pages.depth import HEADING, core_problems
from engine.pages.listing import unlisted_problem
from engine.pages.numbers import number_problems
from engine.pages.reading import Page, Rendered, render
from engine.run.figures import image_problems


def page_problems(page: Page) -> list[str]:
    """Return what is wrong with a page before any of its blocks is run."""
    rendered = render(page)
    return [
        *unseen_code(page, rendered),
        *header_problems(page),
        *section_problems(page),
        *image_problems(page, rendered),
        *text_problems(page),
        *counted_problems(page),
        *tolerance_problems(page),
        *core_problems(page),
        *editable_problems(page),
        *(number_problems(page) if page.is_chapter else []),
    ]


def unseen_code(page: Page, rendered: Rendered) -> list[str]:
    """Return a problem for each code block on one side only.

    All languages are compared, so that Python in an indented block, in a `<pre>` or in
    a fence that the site does not take for one is missed by neither side.
    """
    shown = Counter(
        (language in PYTHON | SESSIONS, squeeze(text))
        for language, text in rendered.code
    )
    found = Counter((fence.is_python, squeeze(fence.code)) for fence in page.fences)
    tab, kinds = "    ", {True: "a Python block", False: "a code block"}
    problems = [
        f"{page.top}: the page shows {kinds[python]} that the engine did not find, as "
        f"no fence begins it or its fence is not understood:\n{indent(text, tab)}"
        for python, text in (shown - found).elements()
    ]
    places = {squeeze(x.code): x.opening.origin for x in reversed(page.fences)}
    return problems + [
        f"{places[text]}: the engine found {kinds[python]} that the page does not show "
        f"as one:\n{indent(text, tab)}"
        for python, text in (found - shown).elements()
    ]


SECTIONS = (
    "The question",
    "The smallest case",
    "The formula",
    "See it",
    "The code",
    "Check it",
    "Break it",
    "Mistakes people make",
    "Paper, textbook, code",
    "Exercises",
    "Interview questions",
    "Checklist",
    "References",
)
_PROMISED = {  # in the front matter
    "description": "what it shows, in one sentence",
    "builds_on": "what to read before, as in `builds_on: [attention.md]`, or `[]`",
    "goals": "a list of what a reader can do afterwards",
    "paper": "where the paper tells it, as in `paper: Section 3.2.1`",
    "modules": "the files that it teaches, as in `modules: [package/file.py]`",
}
PYTHON_WIDTH, CODE_WIDTH = 100, 119  # columns
_HEADING = re.compile(r"##\s+(.*?)\s*(?:#*|\{.*\})\s*$")
GENERATED = "api"  # a folder of pages that only a build makes
_LINK = re.compile(
    r"\]\(\s*<?(?P<target>[^)\s>]+)|^\s*\[[^\]^]+\]:\s+<?(?P<other>[^\s>]+)"
)
_NOT_OURS = re.compile(r"[a-z][a-z0-9+.-]*:|[#/]")


def header_problems(page: Page) -> list[str]:
    """Return what is wrong in the front matter of a chapter, or not there yet.

    A chapter is not in the navigation yet, or a TODO is left in it.
    """
    if not page.is_chapter:
        return []
    problems = [
        f"{page.top}: add `{key}:` to the front matter of the chapter: {what}"
        for key, what in _PROMISED.items()
        if key not in page.meta or (not page.meta[key] and key != "builds_on")
    ]
    goals = page.meta.get("goals") or []
    if not isinstance(goals, list) or not all(isinstance(x, str) for x in goals):
        rule = "must be a list of texts; a text with a colon is quoted"
        problems.append(f"{page.meta_line('goals')}: `goals:` {rule}: {goals!r}")
    problems += filter(None, [unlisted_problem(page)])
    roots = {"modules": page.project.root, "builds_on": page.path.parent}
    problems += [
        f"{page.meta_line(key)}: the front matter names {name}, which is not there"
        for key, root in roots.items()
        for name in page.meta.get(key) or []
        if not (root / name).is_file()
    ]
    return problems + [
        f"{page.path}:{n}: TODO is left: {line.strip()}"
        for n, line in enumerate(page.text.split("\n"), 1)
        if re.search(r"\bTODO\b", line)
    ]


def text_problems(page: Page) -> list[str]:
    """Return dead links, fences in no known language, code that a phone cannot show."""
    problems = [
        f"{fence.opening.origin}: {fence.opening.strip()}{problem}"
        for fence in page.fences
        if (problem := _language_problem(fence))
    ]
    for _, line in page.prose:
        if line.origin.file == page.path:
            for link in _LINK.finditer(re.sub(r"(`+).+?\1", "", line)):
                target = link["target"] or link["other"]
                if not _NOT_OURS.match(target) and not _leads(page, target):
                    problems.append(f"{line.origin}: {target} is not there")
    for fence in page.fences:
        most = PYTHON_WIDTH if fence.is_python else CODE_WIDTH
        problems += [
            f"{line.origin}: {len(line)} columns, and {most} at most are shown well"
            for line in fence.lines
            if len(line) > most and not fence.is_output
        ]
    return problems


@functools.cache
def _languages() -> set[str]:
    """Return all names by which the site knows a language."""
    names = {name for _, names, *_ in get_all_lexers() for name in names}
    return names | PYTHON | SESSIONS


def _language_problem(fence: Fence) -> str:
    """Say what is wrong with a fence whose Python would be neither coloured nor run."""
    if not fence.language:
        return " names no language: write python, sh or text behind it"
    if fence.language in _languages():
        return ""
    return f": the language `{fence.language}` is unknown: write python, sh or text"


def _leads(page: Page, target: str) -> bool:
    """Whether a link leads to a file that is there, or that a build makes."""
    file = re.split(r"[#?]", target)[0]
    path = Path(os.path.normpath(page.path.parent / file))
    docs = page.project.docs
    if path.exists() or not path.is_relative_to(docs):
        return path.exists()
    folder = path.relative_to(docs).parts[0]
    if folder in ("notebooks", "downloads"):
        stem = path.stem.removesuffix("_numpy")
        return any(each.stem == stem for each in page.project.site_pages)
    return folder in ("figures", GENERATED)


_COUNTS = "one|two|three|four|five|six|seven|eight|nine|ten"
_NOT_COUNTED = re.compile(r"\s*(?:#|import |from |$)")
_COUNTED = re.compile(rf"\bin ({_COUNTS}) lines\b", re.IGNORECASE)


def counted_problems(page: Page) -> list[str]:
    """Return the titles that promise code in so many lines, and show another number.

    Counted are the lines of the first Python block of its section, without imports,
    comments and empty lines. Where there is none, the lines are of text.
    """
    titles = [(n, line) for n, line in page.prose if HEADING.match(line)]
    last = len(page.lines), Line("", page.top)
    problems = []
    for (n, line), (end, _) in pairwise([*titles, last]):
        promise = _COUNTED.search(line)
        code = next((x for x in page.fences if x.is_python and n < x.start < end), None)
        if promise and code:
            lines = sum(not _NOT_COUNTED.match(x) for x in code.lines)
            if lines != _COUNTS.split("|").index(promise[1].lower()) + 1:
                counted = f"the code below has {lines}: count, or write “a few”"
                problems.append(f"{line.origin}: “{promise[1]} lines”, and {counted}")
    return problems


def tolerance_problems(page: Page) -> list[str]:
    """Return comparisons that look stricter than they are.

    `allclose(a, b, atol=1e-12)` keeps its relative tolerance of 1e-5 besides, and lets
    numbers of size 1 differ by that much.
    """
    return [
        f"{fence.opening.origin}: `atol={atol:g}` leaves `rtol` at its default: name it"
        for fence in page.fences
        if fence.is_python
        for atol in _lone_atols(fence.code)
        if atol < 1e-6
    ]


def _lone_atols(code: str) -> list[float]:
    """Return the `atol` of each comparison that does not name its `rtol`."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # its run says so
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    compare = [node for node in calls if ast.unparse(node.func).endswith("close")]
    named = [{x.arg: x.value for x in node.keywords} for node in compare]
    values = [getattr(x.get("atol"), "value", None) for x in named if "rtol" not in x]
    return [value for value in values if isinstance(value, float)]


def section_problems(page: Page) -> list[str]:
    """Return what a chapter lacks, or has in another place than other chapters."""
    if not page.is_chapter:
        return []
    found = [(_HEADING.match(line), line.origin) for _, line in page.prose]
    headings = [(match[1], origin) for match, origin in found if match]
    there = [(name, origin) for name, origin in headings if name in SECTIONS]
    wanted = sorted({name for name, _ in there}, key=SECTIONS.index)
    problems = [
        f"{page.top}: the section `## {name}` is missing"
        for name in SECTIONS
        if name not in wanted
    ]
    problems += [
        f"{origin}: `## {name}` is no section of a chapter; use ### in one"
        for name, origin in headings
        if name not in SECTIONS
    ]
    for (name, origin), expected in zip(there, [*wanted, "nothing more"], strict=False):
        if name != expected:
            belongs = f"`## {name}` stands where `## {expected}` belongs"
            return [*problems, f"{origin}: {belongs}"]
    return problems
