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


def test_a_piece_brings_what_it_needs_and_no_more(write: Write) -> None:
    (file,) = standalone_files(embed(write, "scale.py:root"))
    assert "ROOT = 2\n\n\ndef root(" in file.text
    assert "class Scaler" not in file.text
    assert "import math" not in file.text
    assert namespace(file)["root"](16.0) == 4.0


def test_part_of_a_class_brings_the_class(write: Write) -> None:
    (file,) = standalone_files(embed(write, "scale.py:Scaler.__call__"))
    assert "def root" not in file.text
    assert namespace(file)["Scaler"](4.0)([2.0]) == [1.0]


def test_a_piece_grows_by_what_another_module_needs(
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


FAST = """\
\"\"\"Faster.\"\"\"

from tiny.checks import check_positive

# What a copy has instead.
PLAIN = {
    "fast_root": "math.sqrt",
    "fast_scale": "tiny.scale.scale",
    "Fast": "tiny.fast.Plain",
    "fast_sum": "torch.nn.functional.sum",
}
_TABLE = {}


def fast_root(value):
    return _tabled(value)


def _tabled(value):
    return _TABLE.setdefault(value, check_positive(value) ** 0.5)


def fast_scale(values, width):
    return [value / _tabled(width) for value in values]


class Fast:
    pass


class Plain:
    kind = "plain"


def fast_sum(x):
    return x
"""


def copied(
    write: Write, copy: str, demo: str = "", name: str = "chapters/page.md"
) -> list[Standalone]:
    lines = "".join(f"  {line}\n" for line in demo.split("\n"))
    text = f"---\ncopy: [{copy}]\ndemo: |\n{lines}---\n# Page\n"
    return standalone_files(write(text, name))


def test_a_copy_has_what_stands_in_for_fast_code(
    write: Write, project: Project, tmp_path: Path
) -> None:
    module(project, "fast.py", FAST)
    module(
        project,
        "user.py",
        "from tiny.fast import Fast, fast_root as quick, fast_scale\n\n\n"
        "class Mine(Fast):\n"
        "    def use(self, fast_root):\n"
        "        ümlaut, other = quick(4.0), fast_scale([1.0], 4.0)\n"
        "        return ümlaut, other, self.kind, fast_root\n\n\n"
        "def late(quick):\n"
        "    from tiny.fast import fast_scale as f, fast_root\n"
        "    return f([quick], 4.0), fast_root(9.0)\n",
    )
    (file,) = copied(write, "tiny/user.py", "print(Mine().use(1), late(2.0))")
    assert "class Mine(Plain):" in file.text
    assert "ümlaut, other = sqrt(4.0), scale([1.0], 4.0)" in file.text
    assert "from math import sqrt" in file.text
    for gone in ("PLAIN", "_tabled", "fast_scale", "class Fast", "What a copy has"):
        assert gone not in file.text
    names = namespace(file)
    assert names["Mine"]().use(1) == (2.0, [0.5], "plain", 1)
    assert names["late"](2.0) == ([1.0], 3.0)
    assert problem(file, tmp_path) is None


@pytest.mark.parametrize("way", ["copy", "embedded"])
def test_a_copy_of_a_fast_module_is_what_stands_in(
    write: Write, project: Project, way: str
) -> None:
    module(project, "fast.py", FAST)
    if way == "copy":
        (file,) = copied(write, "tiny/fast.py")
    else:
        (file,) = standalone_files(embed(write, "fast.py"))
    assert "def scale(" in file.text
    assert "class Plain" in file.text
    assert "_TABLE" not in file.text
    assert "fast_" not in file.text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x = fast_sum", "x = F.sum"),
        ("def x(F):\n    return fast_sum(F)", "return nn.functional.sum(F)"),
        ("def x(fast_sum):\n    return fast_sum", "return fast_sum"),
        ("x = [fast_sum for fast_sum in 'ab']", "x = [fast_sum for fast_sum in 'ab']"),
        ("class x:\n    fast_sum = 1\n    y = fast_sum", "    y = fast_sum"),
        ("class x:\n    a = 1\n    def y(s):\n        return fast_sum", "return F.sum"),
        ("x = lambda a=fast_sum: a", "x = lambda a=F.sum: a"),
    ],
)
def test_only_what_names_the_function_is_renamed(
    write: Write, project: Project, line: str, said: str
) -> None:
    module(project, "fast.py", FAST)
    module(project, "user.py", f"from tiny.fast import fast_sum\n\n{line}\n")
    (file,) = copied(write, "tiny/user.py")
    assert said in file.text
    assert ("import torch.nn.functional as F" in file.text) is ("F.sum" in said)


@pytest.mark.parametrize(
    ("plain", "says"),
    [
        ("{'f': 'tiny.gone.f'}", "PLAIN names tiny.gone.f for f, which cannot stand"),
        ("{'f': 'tiny.fast.f'}", "PLAIN names tiny.fast.f for f, which cannot stand"),
        ("{'f': 'tiny.scale.gone'}", "tiny.scale.gone, which is not defined"),
        ("{'f': print}", "tiny/fast.py:1: PLAIN must be a dictionary of strings"),
        ("dict(f='g')", "tiny/fast.py:1: PLAIN must be a dictionary of strings"),
        ("{'f': 'math.sqrt'}", r"tiny/user.py:4: in a copy `f` becomes sqrt, which"),
    ],
)
def test_what_cannot_stand_in_is_an_error(
    write: Write, project: Project, plain: str, says: str
) -> None:
    module(project, "fast.py", f"PLAIN = {plain}\n\n\ndef f():\n    pass\n")
    user = "from tiny.fast import f\n\ndef g(sqrt):\n    return f(sqrt)\n"
    module(project, "user.py", user)
    with pytest.raises(PageError) as error:
        copied(write, "tiny/user.py")
    assert re.search(re.escape(says), str(error.value))


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
        '\n\n\nif __name__ == "__main__":\n    for width in (1.0, 4.0):\n'
        "        print(json.dumps(Scaler(width)([2.0])))\n"
    )
    head = file.text.split("# ----")[0]
    assert "import json\nimport math\nfrom dataclasses import dataclass\n" in head
    assert "def root" not in file.text
    assert problem(file, tmp_path) is None
    assert "def scale(values: ndarray" in twin.text
    assert "__main__" not in twin.text


def test_a_chapter_may_offer_no_copy(write: Write) -> None:
    block = '```python\n--8<-- "tiny/scale.py:root"\n```\n'
    offering = write(f"# Page\n\n{block}", "chapters/page.md")
    assert len(standalone_files(offering)) == 1
    silent = write(f"---\ncopy: []\n---\n# Page\n\n{block}", "chapters/page.md")
    assert standalone_files(silent) == []


@pytest.mark.parametrize(
    ("copy", "says"),
    [
        ("tiny/gone.py", "docs/chapters/page.md:2: `copy:` names tiny/gone.py, which"),
        ("tiny/scale.py:Scale", "is not defined there; near it: Scaler, scale"),
    ],
)
def test_a_copy_of_nothing_is_an_error(
    write: Write, project: Project, copy: str, says: str
) -> None:
    with pytest.raises(PageError) as error:
        copied(write, copy)
    assert says in project.tidy(str(error.value))


def test_a_demonstration_that_is_no_python_is_an_error(write: Write) -> None:
    with pytest.raises(PageError, match=r"page.md:3: `demo:` is no Python, in its li"):
        copied(write, "tiny/scale.py", "print(")


def test_a_demonstration_has_to_print(write: Write, tmp_path: Path) -> None:
    (file,) = copied(write, "tiny/scale.py", "Scaler()")
    assert "its demonstration prints nothing" in (problem(file, tmp_path) or "")
    (file,) = copied(write, "tiny/scale.py", "print(Scalar())")
    assert "names that are not defined: Scalar" in (problem(file, tmp_path) or "")


def test_a_letter_of_a_shape_hides_no_import(write: Write, project: Project) -> None:
    module(project, "fast.py", FAST)
    user = "def g(F):\n    from tiny.fast import fast_sum as f\n    return f(F)\n"
    module(project, "user.py", user)
    (file,) = copied(write, "tiny/user.py")
    assert "    f = nn.functional.sum\n    return f(F)" in file.text
    assert "from torch import nn" in file.text


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


def test_what_a_module_needs_at_import_stands_above_it(
    write: Write, project: Project, tmp_path: Path
) -> None:
    one = "from tiny.two import two\n\ndef one():\n    return two()\n\nBASE = int\n"
    module(project, "one.py", one)
    two = "from tiny.one import BASE, one\n\nclass Two(BASE):\n    x = one\n\n"
    module(project, "two.py", two + "def two():\n    return 2\n")
    (file,) = copied(write, "tiny/two.py")
    assert namespace(file)["Two"](3) == 3
    assert problem(file, tmp_path) is None


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
