"""A new chapter: its file, its place in the navigation, and the link that leads to it.

What has to be written is marked TODO; the test of the page finds each one that is left.
"""

import ast
import re
from pathlib import Path

from engine.pages.checking import SECTIONS
from engine.project import Project
from engine.site.lists import Chapter, chapters, write_readme

# What belongs into each section, for whoever writes it.
_HINTS = {
    "The question": "what does a programmer want to know, and why does it matter?",
    "The smallest case": "three tokens, by hand, every number printed.",
    "The formula": "the formula, each letter named, and its source.",
    "See it": "a block that draws a figure; its link, with what is seen and a caption.",
    "The code": "what each piece does, between the pieces.",
    "Check it": "compare with torch, with the twin, or with a closed form.",
    "Break it": "change one thing, and show what goes wrong.",
    "Mistakes people make": "three, each with how it shows.",
    "Paper, textbook, code": "where they differ.",
    "Exercises": "two or more, each with a folded solution that runs.",
    "Interview questions": "three or more, with folded answers.",
    "Checklist": "what the reader can do now: the goals again, to be ticked.",
    "References": "the paper, with its number.",
}

# The keys that begin with # are to be written, or to be removed.
_HEAD = """---
kind: chapter
description: TODO one sentence for search engines, of 30 to 200 characters
concept: TODO a few words for the table in README
question: TODO what does it answer?
builds_on: [{before}]
goals:
  - TODO what the reader can do afterwards
paper: TODO Section 3
modules: [{modules}]
# keywords: TODO words that readers search for and the page lacks: [rope, rotary]
# paper_link: TODO its address, or no such line for Attention Is All You Need
# copy: TODO the files to take away; no such line for all, [] for none
# demo: TODO lines of Python that show the copy at work, or no such line
---

# {title}"""


def make_chapter(
    project: Project, name: str, module: str, after: str | None = None
) -> list[str]:
    """Write a chapter, put it into the navigation, and link it.

    Args:
        project: which gets the chapter.
        name: of its file, without `.md`: `rms-norm`.
        module: the file that it teaches, `tformer/nn/norm.py`, or its dotted name.
        after: the chapter before it, without `.md`; the last one, if not given.

    Returns:
        What was written, each with its file.

    Raises:
        ValueError: the name is taken or badly formed, the module is not in the package,
            or there is no chapter `after`.
    """
    path = project.docs / "chapters" / f"{name}.md"
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"NAME ({name!r}) must be words of a-z, joined by hyphens")
    if path.exists():
        raise ValueError(f"{project.relative(path)} is there already")
    file = module if module.endswith(".py") else module.replace(".", "/") + ".py"
    inside = file.startswith(f"{project.package}/")
    if not inside or not (project.root / file).is_file():
        raise ValueError(f"MODULE ({module!r}) must be a file of {project.package}/")
    known = {chapter.stem: chapter for chapter in chapters(project)}
    before = known.get(after or next(reversed(known), ""))
    if before is None:
        names = ", ".join(known) or "none"
        raise ValueError(f"AFTER ({after!r}) must be a chapter: {names}")
    title = name.replace("-", " ").capitalize()
    following = _lead_to(project.docs / before.file, f"[{title}]({name}.md)")
    path.write_text(_text(project, title, file, before, following), "utf-8")
    line = _into_navigation(project, before.file, f"chapters/{name}.md")
    done = [
        f"{project.relative(path)}: a chapter; write what is marked TODO",
        f"mkdocs.yml:{line}: its place in the navigation",
        f"{project.relative(project.docs / before.file)}: leads to it",
    ]
    readme = project.root / "README.md"
    if readme.is_file() and write_readme(Project(project.root)):
        done.append("README.md: its row; `make lists` writes it again")
    return done


def _lead_to(path: Path, link: str) -> str:
    """Let a chapter lead to the new one; return the paragraph that led on before."""
    text = path.read_text("utf-8")
    if found := re.search(r"^Next: .+(?:\n.+)*", text, re.M):
        start, end, new = *found.span(), f"Next: {link}."
    else:  # above the references, where other chapters have it
        heading = re.search(r"^## References\s*$", text, re.M)
        start = end = heading.start() if heading else len(text)
        new = f"Next: {link}.\n\n"
    path.write_text(text[:start] + new + text[end:], "utf-8")
    return text[start:end]


def _into_navigation(project: Project, before: str, new: str) -> int:
    """Write the new chapter into mkdocs.yml; return its line."""
    path = project.root / "mkdocs.yml"
    lines = path.read_text("utf-8").split("\n")
    entry = re.compile(rf"(\s*- )(?:.*: )?{re.escape(before)}\s*(?:#.*)?$")
    for number, line in enumerate(lines):
        if found := entry.match(line):
            lines.insert(number + 1, f"{found.group(1)}{new}")
            path.write_text("\n".join(lines), "utf-8")
            return number + 2
    raise ValueError(f"mkdocs.yml has no line of its own for {before}")


def _text(
    project: Project, title: str, file: str, before: Chapter, following: str
) -> str:
    """Return the page: front matter, and every section with what it is for."""
    folder, _, rest = file.removeprefix(f"{project.package}/").partition("/")
    twin = f"{project.package}/reference/{rest or folder}"
    has_twin = (project.root / twin).is_file() and twin != file
    code = _embedded(project, file)
    if has_twin:
        numpy = _embedded(project, twin)
        code = ["", "### NumPy", *numpy, "", "### PyTorch", *code]
    modules = f"{file}, {twin}" if has_twin else file
    lines = _HEAD.format(before=before.name, modules=modules, title=title).split("\n")
    for section in SECTIONS:
        lines += ["", f"## {section}", "", f"TODO: {_HINTS[section]}"]
        if section == "Checklist" and following:
            lines += ["", following]
        if section == "The code":
            lines += code
    return "\n".join([*lines, ""])


def _embedded(project: Project, file: str) -> list[str]:
    """Return blocks that embed the imports of a file, and each public definition."""
    body = ast.parse((project.root / file).read_text("utf-8")).body
    found = [n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    names = [name for name in found if not name.startswith("_")]
    if any(isinstance(node, ast.Import | ast.ImportFrom) for node in body):
        names.insert(0, "imports")
    blocks = (
        ["", f'```python title="{file}"', f'--8<-- "{file}:{x}"', "```"] for x in names
    )
    return [line for block in blocks for line in block]
