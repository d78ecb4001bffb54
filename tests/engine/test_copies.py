"""The one-file copies of the chapters: short, and the package's own words."""

import ast
import dis
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from engine.copies.alone import problem_of
from engine.copies.standalone import standalone_files
from engine.pages.reading import Page
from engine.project import Project

PROJECT = Project.find(Path(__file__).parents[2])
CHAPTERS = [path for path in PROJECT.site_pages if path.parent.name == "chapters"]
READS = ("LOAD_GLOBAL", "LOAD_NAME")  # not an attribute, which may have a like name
LONGEST = {  # lines; in brackets where they are to go
    "attention": 263,  # (180)
    "heads": 478,  # (320)
    "encoder": 1024,  # (800)
    "gpt": 1321,  # (800)
    "transformer": 1762,  # (950)
}


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"copy_of_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", LONGEST)
def test_a_copy_is_short(name: str) -> None:
    page = Page(PROJECT, PROJECT.docs / "chapters" / f"{name}.md")
    lines = standalone_files(page)[0].text.count("\n")
    told = f"the copy of {name} is {lines} lines: take out as many as were added"
    assert lines <= LONGEST[name], told


def statements(source: str) -> dict[str, ast.stmt]:
    """Return what stands at the top of a file, by its text."""
    lines, found = source.split("\n"), {}
    for node in ast.parse(source).body:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(x.lineno for x in decorators)])
        found["\n".join(lines[first - 1 : node.end_lineno])] = node
    return found


def is_code(node: ast.stmt) -> bool:
    """Whether it is neither an import nor the demonstration."""
    if isinstance(node, ast.If):
        return "__main__" not in ast.unparse(node.test)
    return not isinstance(node, ast.Import | ast.ImportFrom)


def imported(source: str) -> set[str]:
    """Return the packages that a file imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [x.module or "" for x in nodes if isinstance(x, ast.ImportFrom)]
    names += [a.name for x in nodes if isinstance(x, ast.Import) for a in x.names]
    return {name.partition(".")[0] for name in names}


def global_names(code: CodeType) -> set[str]:
    """Return every name that the code of a definition reads from its module."""
    inner = (x for x in code.co_consts if isinstance(x, CodeType))
    reads = (x for x in dis.get_instructions(code) if x.opname in READS)
    return {x.argval for x in reads}.union(*map(global_names, inner))


def stands_for(value: Any, module: str) -> str:
    """Name what a module defines; what comes from elsewhere is the thing itself."""
    if getattr(value, "__module__", "").startswith(module):
        value = getattr(value, "__qualname__", value)
    return re.sub(r" at 0x\w+|\b(tformer|copy_of_[\w-]+)\.(\w+\.)*", "", repr(value))


@pytest.mark.by_day(12)
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_definitions_are_the_packages_own(chapter: Path, tmp_path: Path) -> None:
    """Each has the same text, and each name in it means the same."""
    for file in standalone_files(Page(PROJECT, chapter)):
        path, source, home = tmp_path / file.name, file.text, ""
        path.write_text(source, "utf-8")
        copy = load(path)
        libraries = {"torch", "numpy", "matplotlib"}
        libraries -= {"torch"} if path.stem.endswith("_numpy") else set()
        assert imported(source) <= {*libraries, *sys.stdlib_module_names}, path.name
        for part in re.split(r"^# ---- (tformer/\S+\.py) -+$", source, flags=re.M)[1:]:
            if part.startswith("tformer/"):
                home = part
                continue
            own = statements((PROJECT.root / home).read_text("utf-8"))
            dotted = home.removesuffix(".py").replace("/", ".")
            module = importlib.import_module(dotted)
            for text, node in statements(part).items():
                if not is_code(node):
                    continue
                assert text in own, f"{path.name}: {home} does not say\n{text}"
                for name in global_names(compile(text, home, "exec")):
                    if name in vars(module) and not name.startswith("__"):
                        theirs = stands_for(getattr(module, name), "tformer")
                        ours = stands_for(getattr(copy, name, None), copy.__name__)
                        assert ours == theirs, f"{path.name}: {name}"


def test_every_chapter_with_a_copy_has_a_demonstration() -> None:
    pages = [Page(PROJECT, path) for path in PROJECT.site_pages]
    lacking = [
        f"{page.top}: the front matter has `copy:`, and no `demo:`"
        for page in pages
        if page.meta.get("copy") and not page.meta.get("demo")
    ]
    assert not lacking, "\n".join(lacking)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import tiny.checks", "'tiny' is not a package"),
        ("def f():\n    return nowhere(1)", "not defined: nowhere"),
        ("class A:\n    def f(self):\n        return [gone for _ in '']", "gone"),
        ("raise RuntimeError('at import')", "at import"),
        ('if __name__ == "__main__":\n    1 / 0', "ZeroDivisionError"),
    ],
)
def test_what_does_not_run_alone_is_found(
    tmp_path: Path,
    project: Project,
    source: str,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(project.root))  # where the package is
    path = tmp_path / "page.py"
    path.write_text(source, "utf-8")
    assert re.search(says, problem_of("tiny", path) or "nothing was found")


def test_what_runs_alone_is_not_complained_of(tmp_path: Path) -> None:
    path = tmp_path / "page.py"
    code = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    code += "@dataclass\nclass A:\n    x: int = 1\n    y = x\n"
    code += "    def f(self):\n        return __name__, len(str(self.x)), A\n"
    path.write_text(code, "utf-8")
    assert problem_of("tiny", path) is None
