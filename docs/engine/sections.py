"""The parts that a chapter has, in the order that all chapters share."""

import re

from engine.lines import Origin
from engine.page import Page
from engine.rendered import Rendered

SECTIONS = (
    "The question",
    "The smallest case",
    "The formula",
    "The code",
    "See it",
    "Check it",
    "Break it",
    "Mistakes people make",
    "Paper, textbook, code",
    "Exercises",
    "Interview questions",
    "Checklist",
    "References",
)
_PROMISED = ("minutes", "goals", "description")  # in the front matter


def section_problems(page: Page, rendered: Rendered) -> list[str]:
    """Return what a chapter lacks, or has in another place than other chapters."""
    if not page.is_chapter:
        return []
    problems = [
        f"{page.top}: the front matter of a chapter says `{key}:`"
        for key in _PROMISED
        if not page.meta.get(key)
    ]
    problems += _missing_files(page)
    headings = rendered.headings
    problems += [
        f"{page.top}: the section `## {name}` is missing"
        for name in SECTIONS
        if name not in headings
    ]
    problems += [
        f"{_place(page, name)}: `## {name}` is no section of a chapter; use ### in one"
        for name in headings
        if name not in SECTIONS
    ]
    there = [name for name in headings if name in SECTIONS]
    wanted = sorted(set(there), key=SECTIONS.index)
    for name, expected in zip(there, [*wanted, "nothing more"], strict=False):
        if name != expected:
            problem = f"`## {name}` stands where `## {expected}` belongs"
            problems.append(f"{_place(page, name)}: {problem}")
            break
    return problems


def _place(page: Page, name: str) -> Origin:
    heading = re.compile(rf"\s*##\s+{re.escape(name)}\s*(#*|\{{.*\}})\s*$")
    return next((x.origin for x in page.prose() if heading.match(x)), page.top)


def _missing_files(page: Page) -> list[str]:
    modules = [
        (name, page.project.root / name) for name in page.meta.get("modules", [])
    ]
    pages = [(name, page.path.parent / name) for name in page.meta.get("builds_on", [])]
    return [
        f"{page.top}: the front matter names {name}, which is not there"
        for name, path in modules + pages
        if not path.is_file()
    ]
