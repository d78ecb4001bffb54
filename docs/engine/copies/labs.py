"""The notebook of a lab as its readers take it away: it brings the package with it."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from engine.copies.notebooks import link_from, loading_cell, needed_data
from engine.project import Project

_LINK = re.compile(r"(?<=\]\()(?P<target>[^)\s]+)(?=[)\s])")
_FILES = """
import sys
for name, module in list(sys.modules.items()):
    if name.partition(".")[0] == {package!r}:
        print(module.__file__)
"""


def lab_alone(project: Project, path: Path) -> str:
    """Return a lab with a first code cell that gets the package, and absolute links.

    Raises:
        RuntimeError: what it imports of the package cannot be imported.
    """
    book: dict[str, Any] = json.loads(path.read_text("utf-8"))
    cells = book["cells"]
    code = ["".join(x["source"]) for x in cells if x["cell_type"] == "code"]
    for cell in cells:
        if cell["cell_type"] == "markdown":
            text = _LINK.sub(
                lambda link: link_from(project, path, link["target"]),
                "".join(cell["source"]),
            )
            cell["source"] = text.splitlines(keepends=True)
    files = imported_files(project, code) if code else []
    if files:
        cell = loading_cell(project, [*files, *needed_data(project, code, files)])
        place = [x["cell_type"] for x in cells].index("code")
        cells.insert(place, cell | {"id": "get-the-package"})
    return json.dumps(book, ensure_ascii=False, indent=1) + "\n"


def imported_files(project: Project, code: list[str]) -> list[Path]:
    """Return the files of the package that the imports in some code load."""
    lines = [
        ast.unparse(node)
        for text in code
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and project.package in ast.unparse(node)
    ]
    program = "\n".join([*lines, _FILES.format(package=project.package)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return sorted(map(Path, set(done.stdout.split("\n")) - {""}))
