"""What holds over all pages together, and between them and the package."""

import ast
import re
from collections import Counter

from engine.lines import PageError
from engine.markers import marker_problems
from engine.page import Page
from engine.places import repeated_names
from engine.project import Project


def project_problems(project: Project, pages: list[Page]) -> list[str]:
    """Return what is wrong with more than one page at once, without running any."""
    problems = [
        *marker_problems(project),
        *_repeated_chapters(pages),
        *repeated_names(_readable(pages)),
    ]
    return [project.tidy(problem) for problem in problems]


def unshown_names(project: Project, pages: list[Page]) -> list[str]:
    """Return the public names of the package that no block of a chapter holds."""
    init = project.root / project.package / "__init__.py"
    public: list[str] = []
    for node in ast.parse(init.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            public = ast.literal_eval(node.value)
    code = "\n".join(
        block.fence.code
        for page in _readable(pages)
        if page.is_chapter
        for block in page.blocks
    )
    words = set(re.findall(r"\w+", code))
    return sorted(name for name in public if name not in words)


def _repeated_chapters(pages: list[Page]) -> list[str]:
    """Two chapters of one name would write over each other's files."""
    names = Counter(page.name for page in pages if page.is_chapter)
    return [
        f"{page.top}: another chapter is called {page.name} as well"
        for page in pages
        if page.is_chapter and names[page.name] > 1
    ]


def _readable(pages: list[Page]) -> list[Page]:
    """Return the pages whose blocks can be told; the others say so themselves."""
    readable = []
    for page in pages:
        try:
            _ = page.blocks
        except PageError:
            continue
        readable.append(page)
    return readable
