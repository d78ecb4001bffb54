"""A new chapter: its file, with every section and key.

What has to be written is marked TODO; the test of the page finds each one that is left,
and says where mkdocs.yml must name the page.
"""

import ast
import re
from pathlib import Path

from engine.pages.checking import SECTIONS
from engine.project import Project

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
builds_on: [] # TODO what to read before: [attention.md]
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


def make_chapter(project: Project, name: str, module: str) -> Path:
    """Write a chapter, and return its file.

    Args:
        project: which gets the chapter.
        name: of its file, without `.md`: `rms-norm`.
        module: the file that it teaches: `tformer/nn/norm.py`.

    Raises:
        ValueError: the name is taken or badly formed, or the module is not there.
    """
    path = project.docs / "chapters" / f"{name}.md"
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"NAME ({name!r}) must be words of a-z, joined by hyphens")
    if path.exists():
        raise ValueError(f"{project.relative(path)} is there already")
    folder, _, rest = module.partition("/")
    if folder != project.package or not (project.root / module).is_file():
        raise ValueError(f"MODULE ({module!r}) must be a file of {project.package}/")
    twin = f"{folder}/reference/{rest.rpartition('/')[2]}"
    files = [x for x in {twin: 0, module: 0} if (project.root / x).is_file()]
    title = name.replace("-", " ").capitalize()
    parts = [_HEAD.format(modules=", ".join(reversed(files)), title=title)]
    for section in SECTIONS:
        parts.append(f"## {section}\n\nTODO: {_HINTS[section]}")
        if section == "The code":
            parts += [block for file in files for block in _embedded(project, file)]
    path.write_text("\n\n".join(parts) + "\n", "utf-8")
    return path


def _embedded(project: Project, file: str) -> list[str]:
    """Return blocks that embed the imports of a file, and each public definition."""
    body = ast.parse((project.root / file).read_text("utf-8")).body
    found = [n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    names = [name for name in found if not name.startswith("_")]
    if any(isinstance(node, ast.Import | ast.ImportFrom) for node in body):
        names.insert(0, "imports")
    return [f'```python title="{file}"\n--8<-- "{file}:{x}"\n```' for x in names]
