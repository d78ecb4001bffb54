"""One file holds what a chapter embeds, and runs where the package is not."""

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from engine.alone import problem_of
from engine.blocks import PageError
from engine.project import Project
from engine.reading import Page
from engine.standalone import Standalone, standalone_files
from small_project import Write


def embed(write: Write, *snippets: str) -> Page:
    blocks = (f'```python\n--8<-- "tiny/{name}"\n```\n' for name in snippets)
    return write("# A *chapter* { #c }\n\n" + "\n".join(blocks), "chapters/page.md")


def module(project: Project, name: str, source: str) -> None:
    path = project.root / "tiny" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(source, "utf-8")


def namespace(file: Standalone) -> dict[str, Any]:
    module = sys.modules["standalone"] = types.ModuleType("standalone")
    exec(file.text, vars(module))
    del sys.modules["standalone"]
    return vars(module)


def problem(file: Standalone, folder: Path) -> str | None:
    path = folder / file.name
    path.write_text(file.text, "utf-8")
    return problem_of("tiny", path)


def test_pieces_stand_in_their_order_each_once(
    write: Write, project: Project, tmp_path: Path
) -> None:
    page = Page(project, project.docs / "chapters" / "scale.md")
    file, twin = standalone_files(page)
    head = file.text.splitlines()[:3]
    assert head[0] == "# Scale: the code of the chapter in one file."
    assert head[1] == "# https://example.org/tiny/chapters/scale/"
    assert "MIT" in head[2]
    assert file.text.count("def scale(") == file.text.count("class Scaler") == 1
    places = [
        file.text.index(x) for x in ("check_positive(v", "# The sq", "@dataclass")
    ]
    assert places == sorted(places)
    assert "def root" not in file.text  # not shown, not needed
    assert "8<--" not in file.text
    assert not re.search(r"^(from|import) .*tiny", file.text, re.M)
    assert problem(file, tmp_path) is None
    assert twin.name == "scale_numpy.py"
    assert "import numpy as np" in twin.text
    assert problem(twin, tmp_path) is None


def test_a_piece_that_needs_more_brings_its_module(write: Write) -> None:
    (file,) = standalone_files(embed(write, "scale.py:root"))
    assert "ROOT = 2" in file.text
    assert "class Scaler" in file.text
    assert namespace(file)["root"](16.0) == 4.0


def test_part_of_a_class_brings_its_module(write: Write) -> None:
    (file,) = standalone_files(embed(write, "scale.py:Scaler.__call__"))
    assert namespace(file)["Scaler"](4.0)([2.0]) == [1.0]


def test_a_piece_that_another_module_finds_too_small_is_whole(
    write: Write, project: Project, tmp_path: Path
) -> None:
    module(project, "user.py", "from tiny.scale import root\n\n\nfourth = root(16.0)\n")
    (file,) = standalone_files(embed(write, "scale.py:scale", "user.py"))
    assert namespace(file)["fourth"] == 4.0
    assert file.text.count("def scale(") == 1
    assert problem(file, tmp_path) is None


def test_blocks_that_are_never_run_are_not_embedded(write: Write) -> None:
    page = write("""
        <!--pytest.mark.skip(reason="shown again")-->
        ```python
        --8<-- "tiny/scale.py:root"
        ```
    """)
    assert standalone_files(page) == []


def test_imports_of_every_kind_are_resolved(
    write: Write, project: Project, tmp_path: Path
) -> None:
    module(project, "all/__init__.py", "from tiny.all.one import first as renamed\n")
    module(
        project,
        "all/one.py",
        '"""One."""\n__all__ = ["first"]\nimport os.path\n\n'
        "def first():\n    return os.sep\n",
    )
    module(
        project, "all/two.py", "from . import renamed\nfrom .one import first as head\n"
    )
    module(
        project,
        "late.py",
        "from tiny.user import use\n\ndef late():\n    return use and 'late'\n\n"
        "def later():\n    return 'later'\n",
    )
    module(
        project,
        "user.py",
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING\n"
        "from tiny.all import renamed\n"
        "from tiny.all.two import head as top\n"
        "import math as m, json\n"
        "if TYPE_CHECKING:\n    from tiny.stored import stored_width as width\n\n"
        "def use(value: width = 1.0) -> tuple:\n"
        "    from tiny.late import (\n        late as a,\n        later as b,\n    )\n"
        "    return renamed(), top(), a(), b(), m.floor(value)\n",
    )
    (file,) = standalone_files(embed(write, "user.py"))
    assert namespace(file)["use"](2.5) == ("/", "/", "late", "later", 2)
    assert "import json" not in file.text  # never used
    assert "stored_width()" not in file.text  # for type checkers only
    assert "__all__" not in file.text
    assert problem(file, tmp_path) is None


def test_two_modules_may_not_define_one_name(write: Write, project: Project) -> None:
    module(
        project, "a.py", "from tiny.b import b\n\ndef _help():\n    return 1\n\na = b\n"
    )
    module(
        project, "b.py", "def _help():\n    return 2\n\ndef b():\n    return _help()\n"
    )
    with pytest.raises(
        PageError, match=r"page.md:1: tiny.b and tiny.a both define `_help`"
    ):
        standalone_files(embed(write, "a.py"))


def test_two_modules_may_not_import_one_name_from_two_places(
    write: Write, project: Project
) -> None:
    module(
        project, "a.py", "from json import loads\nfrom tiny.b import b\na = loads, b\n"
    )
    module(project, "b.py", "from marshal import loads\nb = loads\n")
    with pytest.raises(PageError, match="both define `loads`"):
        standalone_files(embed(write, "a.py"))


@pytest.mark.parametrize("line", ["import tiny.checks", "from tiny import checks"])
def test_a_module_as_a_name_is_an_error(
    write: Write, project: Project, line: str
) -> None:
    name = "tiny" if line.startswith("import") else "checks"
    module(project, "a.py", f"import math\n{line}\na = math, {name}\n")
    with pytest.raises(PageError, match=r"tiny/a.py:2 imports a module"):
        standalone_files(embed(write, "a.py"))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import tiny.checks", "tiny cannot be imported here"),
        ("def f():\n    return nowhere(1)", r"not defined: nowhere \(line 2\)"),
        ("class A:\n    def f(self):\n        return [gone for _ in '']", "gone"),
        ("raise RuntimeError('at import')", "at import"),
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
    path.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "@dataclass\nclass A:\n    x: int = 1\n    y = x\n"
        "    def f(self):\n        return __name__, len(str(self.x)), A\n",
        "utf-8",
    )
    assert problem_of("tiny", path) is None
