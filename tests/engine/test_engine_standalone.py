"""One file holds what a chapter offers, word for word, and runs without the package."""

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from engine.copies.alone import problem_of
from engine.copies.standalone import Standalone, standalone_files
from engine.pages.blocks import PageError
from engine.pages.reading import Page
from engine.project import Project
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
    assert file.text.splitlines()[:3] == [
        "# Scale, the code of the chapter in one file.",
        "# https://example.org/tiny/chapters/scale/ · MIT licence",
        "",
    ]
    assert file.text.count("def scale(") == file.text.count("class Scaler") == 1
    parts = ("check_positive(v", "# The sq", "@dataclass")
    assert sorted(parts, key=file.text.index) == [*parts]
    assert "def root" not in file.text  # not shown, not needed
    assert "8<--" not in file.text
    assert not re.search(r"^(from|import) .*tiny", file.text, re.M)
    assert problem(file, tmp_path) is None
    assert twin.name == "scale_numpy.py"
    assert "import numpy as np" in twin.text
    assert problem(twin, tmp_path) is None


def test_a_piece_brings_what_it_needs_and_no_more(write: Write) -> None:
    (file,) = standalone_files(embed(write, "scale.py:root"))
    assert "ROOT = 2\n\n\ndef root(" in file.text
    assert "class Scaler" not in file.text
    assert "import math" not in file.text
    assert namespace(file)["root"](16.0) == 4.0
    (file,) = standalone_files(embed(write, "scale.py:Scaler.__call__"))
    assert "def root" not in file.text
    assert namespace(file)["Scaler"](4.0)([2.0]) == [1.0]


def test_what_is_never_run_or_not_offered_is_in_no_copy(write: Write) -> None:
    left_out = '<!--pytest.mark.skip(reason="shown again")-->\n'
    fence = '```python\n--8<-- "tiny/scale.py:root"\n```\n'
    assert len(standalone_files(write(fence))) == 1
    assert standalone_files(write(left_out + fence)) == []
    assert standalone_files(write(f"---\ncopy: []\n---\n{fence}")) == []


def copied(
    write: Write, copy: str, demo: str = "", name: str = "chapters/page.md"
) -> list[Standalone]:
    lines = "".join(f"  {line}\n" for line in demo.split("\n"))
    text = f"---\ncopy: [{copy}]\ndemo: |\n{lines}---\n# Page\n"
    return standalone_files(write(text, name))


def test_imports_of_every_kind_are_merged(
    write: Write, project: Project, tmp_path: Path
) -> None:
    module(project, "all/__init__.py", "from tiny.all.one import first\n")
    module(
        project,
        "all/one.py",
        '"""One."""\n__all__ = ["first"]\nimport os.path\n\n'
        "def first():\n    return os.sep\n",
    )
    module(
        project,
        "user.py",
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING\n"
        "from tiny.all import first\n"
        "import math as m, json\n"
        "from os import sep as slash\n"
        "if TYPE_CHECKING:\n    from tiny.stored import stored_width as width\n\n"
        "def use(value: width = 1.0) -> tuple:\n"
        "    from math import ceil\n\n"
        "    return first(), slash, ceil(value), m.floor(value)\n",
    )
    (file,) = standalone_files(embed(write, "user.py"))
    assert namespace(file)["use"](2.5) == ("/", "/", 3, 2)
    assert "import json" not in file.text  # never used
    assert "stored_width" not in file.text  # for type checkers only
    assert "__all__" not in file.text
    assert problem(file, tmp_path) is None


@pytest.mark.parametrize(
    ("above", "body", "elsewhere", "name"),
    [
        ("def _f():\n    return 1\n", "_f()", "def _f():\n    pass\n", "_f"),
        ("from json import loads\n", "loads", "from marshal import loads\n", "loads"),
        ("", "sum([1])", "def sum(x):\n    return 2\n", "sum"),
    ],
)
def test_a_name_may_not_mean_two_things(
    write: Write, project: Project, above: str, body: str, elsewhere: str, name: str
) -> None:
    module(project, "a.py", f"from tiny.b import b\n{above}\na = b, {body}\n")
    module(project, "b.py", f"{elsewhere}\nb = {name}\n")
    with pytest.raises(PageError, match=rf"page.md:1: `{name}` is .+, and .+: one"):
        standalone_files(embed(write, "a.py"))


CANNOT = r"tiny/a.py:[12] has an import that one file"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("import tiny.checks as x", CANNOT),
        ("from tiny.checks import check_positive as x", CANNOT),
        ("from .checks import check_positive as x", CANNOT),
        ("def x():\n    from tiny.checks import check_positive", CANNOT),
        ("from tiny.checks import x", "a.py:1: tiny.checks does not define x"),
    ],
)
def test_an_import_that_one_file_cannot_hold_is_an_error(
    write: Write, project: Project, line: str, says: str
) -> None:
    module(project, "a.py", f"{line}\na = x\n")
    with pytest.raises(PageError, match=says):
        standalone_files(embed(write, "a.py"))


def test_what_is_missing_is_found(write: Write, tmp_path: Path) -> None:
    (file,) = copied(write, "tiny/scale.py", "print(Scaler()([1.0]), root(4.0))")
    parts = file.text.split("\n\n\n")
    code = [x for x in parts if re.match(r"def|class|@|[A-Z]", x) or "\ndef" in x]
    assert len(code) == 5
    for part in code:
        less = Standalone(file.name, file.text.replace(part, ""), [])
        assert "not defined" in (problem(less, tmp_path) or "")


def test_a_copy_is_what_the_front_matter_names(
    write: Write, project: Project, tmp_path: Path
) -> None:
    file, twin = copied(
        write,
        "tiny/scale.py:Scaler, tiny/reference/scale.py",
        "import json\nfrom dataclasses import dataclass\n\n"
        "for width in (1.0, 4.0):\n    print(json.dumps(Scaler(width)([2.0])))",
    )
    assert file.text.endswith(
        '\n\nif __name__ == "__main__":\n    for width in (1.0, 4.0):\n'
        "        print(json.dumps(Scaler(width)([2.0])))\n"
    )
    head = file.text.split("# ----")[0]
    assert "import json\nimport math\nfrom dataclasses import dataclass\n" in head
    assert "def root" not in file.text
    assert problem(file, tmp_path) is None
    assert "def scale(values: ndarray" in twin.text
    assert "__main__" not in twin.text


@pytest.mark.parametrize(
    ("copy", "demo", "says"),
    [
        ("tiny/gone.py", "", "docs/chapters/page.md:2: `copy:` names tiny/gone.py, "),
        ("tiny/scale.py:Scale", "", "is not defined there; near it: Scaler, scale"),
        ("tiny/scale.py", "root = 2", "`root` is tiny/scale.py:root, and a name of"),
        ("tiny/scale.py", "print(", "page.md:3: `demo:` is no Python, in its line"),
    ],
)
def test_a_copy_of_nothing_and_a_wrong_demonstration_are_errors(
    write: Write, project: Project, copy: str, demo: str, says: str
) -> None:
    with pytest.raises(PageError) as error:
        copied(write, copy, demo)
    assert says in project.tidy(str(error.value))


def test_a_table_that_is_filled_later_comes_along_full(
    write: Write, project: Project
) -> None:
    module(
        project,
        "table.py",
        "TABLE = {}\nOTHER = {}\nTABLE['a'] = len\nOTHER['b'] = abs\n"
        "def use(x):\n    return TABLE['a'](x)\n",
    )
    (file,) = copied(write, "tiny/table.py:use")
    assert namespace(file)["use"]("abc") == 3
    assert "OTHER" not in file.text
