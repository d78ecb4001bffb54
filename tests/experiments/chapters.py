"""What the experiments share: the functions of a chapter, and a kept file."""

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from engine.pages.blocks import find_fences
from engine.pages.reading import Page
from engine.project import Project

ROOT = Path(__file__).parents[2]
# Way, setting, and what was measured; a number for each seed.
Kept = dict[tuple[str, str, str], list[float]]


def functions_of(chapter: str) -> dict[str, Any]:
    """Define what the blocks of a chapter define, and run nothing else of them.

    Imports, functions and constants with names in capitals are defined, so that an
    experiment runs the very code that its chapter shows.
    """
    page = Page(Project(ROOT), ROOT / "docs/chapters" / chapter)
    # Before snippets are put in: what the experiment keeps may not be there yet.
    fences = [x for x in find_fences(page.body) if x.is_python]
    own = [fence.code for fence in fences if "title=" not in fence.opening]
    tree = ast.parse("\n".join(own))
    tree.body = [node for node in tree.body if _defines(node)]
    names: dict[str, Any] = {}
    exec(compile(tree, chapter, "exec"), names)
    return names


def _defines(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        targets = [x for target in node.targets for x in ast.walk(target)]
        return all(x.id.isupper() for x in targets if isinstance(x, ast.Name))
    definitions = ast.FunctionDef | ast.ClassDef
    return isinstance(node, ast.Import | ast.ImportFrom | definitions)


def as_on_the_page() -> None:
    """Compute as the chapters do: in double precision, by one thread."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)


def keep(script: str, rows: Iterable[tuple[str, object, str, float]]) -> None:
    """Write the rows of all seeds beside the script, as a constant KEPT.

    Args:
        script: its `__file__`.
        rows: way, setting, what was measured, and its number; seed after seed.
    """
    kept: Kept = {}
    for way, setting, what, number in rows:
        print(way, setting, what, f"{number:.3f}", flush=True)
        kept.setdefault((way, str(setting), what), []).append(number)
    lines = [
        " ".join([*name, *(f"{x:.3f}" for x in numbers)])
        for name, numbers in kept.items()
    ]
    file = Path(script)
    told = f"What `{file.name}` measured: way, setting, what; a number for each seed."
    text = "\n".join(['"""' + told + '"""', "", 'KEPT = """', *lines, '"""', ""])
    file.with_name(f"{file.stem}_kept.py").write_text(text, "utf-8")
