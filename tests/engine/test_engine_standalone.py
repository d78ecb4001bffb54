"""One file holds what a chapter embeds, and runs where the package is not."""

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
    head = file.text.splitlines()[:3]
    assert head[0] == "# Scale: the code of the chapter in one file."
    assert head[1] == "# https://example.org/tiny/chapters/scale/ · MIT licence"
    assert head[2] == ""
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
    assert "ROOT = 2\n\ndef root(" in file.text
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

_TABLE = {}


def traced(function):
    return function


def fast_root(value):
    return _tabled(value)


def _tabled(value):
    return _TABLE.setdefault(value, check_positive(value) ** 0.5)


class Fast:
    pass


def fast_sum(x):
    check_fast(x)
    return x


def check_fast(x):
    if x is None:
        raise ValueError(f"x ({x}) must be a number")
"""
PLAIN = """\
\"\"\"What stands in a copy instead of our own.\"\"\"

from math import fsum as fast_sum
from math import sqrt as fast_root  # noqa: F401

from tiny.scale import ROOT

check_fast = traced = None


class Fast:
    \"\"\"Plain, and slow.\"\"\"

    kind = ROOT
"""


@pytest.fixture
def plain(project: Project) -> Path:
    """Write what stands in for the fast code of `tiny.fast`."""
    module(project, "fast.py", FAST)
    path = project.docs / "includes" / "plain.py"
    path.write_text(PLAIN, "utf-8")
    return path


def copied(
    write: Write, copy: str, demo: str = "", name: str = "chapters/page.md"
) -> list[Standalone]:
    lines = "".join(f"  {line}\n" for line in demo.split("\n"))
    text = f"---\ncopy: [{copy}]\ndemo: |\n{lines}---\n# Page\n"
    return standalone_files(write(text, name))


def test_a_copy_has_what_stands_in_for_fast_code(
    write: Write, project: Project, tmp_path: Path, plain: Path
) -> None:
    module(
        project,
        "user.py",
        "from tiny.fast import Fast, check_fast, fast_root, traced\n\n\n"
        "class Mine(Fast):\n"
        "    @traced\n"
        "    def use(self, x):\n"
        "        check_fast(x)\n"
        "        return fast_root(x), self.kind\n\n\n"
        "def late(values):\n"
        "    from tiny.fast import fast_sum as add\n\n"
        "    return add(values)\n",
    )
    (file,) = copied(write, "tiny/user.py", "print(Mine().use(1.0), late([2.0]))")
    assert "from math import fsum as fast_sum, sqrt as fast_root\n" in file.text
    assert "add = fast_sum" in file.text
    for gone in ("_tabled", "traced", "check_fast", "None", "_TABLE", "tiny.fast"):
        assert gone not in file.text, gone
    names = namespace(file)
    assert names["Mine"]().use(4.0) == (2.0, 2)
    assert names["late"]([1.0, 2.0]) == 3.0
    assert problem(file, tmp_path) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("def x(fast_sum):\n    return fast_sum", "return fast_sum"),
        ('x = [fast_sum for fast_sum in "ab"]', 'x = [fast_sum for fast_sum in "ab"]'),
        ("class x:\n    fast_sum = 1\n    y = fast_sum", "    y = fast_sum"),
    ],
)
def test_a_name_of_its_own_takes_nothing(
    write: Write, project: Project, plain: Path, line: str, said: str
) -> None:
    module(project, "user.py", f"from tiny.fast import fast_sum\n\n{line}\n")
    (file,) = copied(write, "tiny/user.py")
    assert said in file.text
    assert "fsum" not in file.text


@pytest.mark.parametrize(
    "line",
    [
        "class x:\n    a = 1\n    def __call__(s):\n        return fast_sum([1])",
        "x = lambda a=fast_sum: a([1])",
        "def x(F):\n    return [fast_sum(y) for y in F]",
        "@fast_sum\ndef x():\n    pass",
    ],
)
def test_a_name_of_the_module_takes_what_it_names(
    write: Write, project: Project, plain: Path, line: str
) -> None:
    module(project, "user.py", f"from tiny.fast import fast_sum\n\n{line}\n")
    (file,) = copied(write, "tiny/user.py")
    assert "from math import fsum as fast_sum" in file.text


def test_what_a_chapter_offers_is_the_packages_own(
    write: Write, project: Project, plain: Path
) -> None:
    (file,) = copied(write, "tiny/fast.py:fast_root")
    assert "def fast_root(value):\n    return _tabled(value)" in file.text
    assert "_TABLE = {}" in file.text
    assert "sqrt" not in file.text


def test_what_a_chapter_offers_serves_what_stands_in_too(
    write: Write, project: Project, plain: Path
) -> None:
    both = "\n\ndef fast_pair(x):\n    return Fast, x\n"
    module(project, "fast.py", FAST + both)
    plain.write_text(PLAIN + both, "utf-8")
    module(project, "user.py", "from tiny.fast import fast_pair as pair\nx = pair\n")
    (file,) = copied(write, "tiny/user.py, tiny/fast.py:Fast")
    assert file.text.count("class Fast:") == 1
    assert "Plain, and slow" not in file.text


def test_what_is_left_out_must_be_called_alone(
    write: Write, project: Project, plain: Path
) -> None:
    user = "from tiny.fast import check_fast\n\nx = check_fast(1)\n"
    module(project, "user.py", user)
    with pytest.raises(PageError, match="leaves check_fast out, which is not called"):
        copied(write, "tiny/user.py")


def test_what_comes_along_says_its_first_sentence(
    write: Write, project: Project
) -> None:
    module(
        project,
        "long.py",
        'def helped():\n    """Help.\n\n    At length.\n    """\n    return 1\n\n\n'
        'def shown():\n    """Show.\n\n    In full.\n    """\n    return helped()\n\n\n'
        "class Unused:\n    def x(self):\n        return shown()\n",
    )
    (file,) = copied(write, "tiny/long.py:shown")
    assert '"""Help."""' in file.text
    assert "At length" not in file.text
    assert "In full." in file.text
    assert "class Unused" not in file.text


def test_a_method_that_nothing_names_is_left_out(
    write: Write, project: Project
) -> None:
    module(
        project,
        "parts.py",
        "class Part:\n    def used(self):\n        return 1\n\n"
        "    def unused(self):\n        return 2\n\n    def __len__(self):\n"
        "        return 3\n\n\ndef whole():\n    return Part().used()\n",
    )
    (file,) = copied(write, "tiny/parts.py:whole")
    assert "def used" in file.text
    assert "def __len__" in file.text
    assert "unused" not in file.text
    (file,) = copied(write, "tiny/parts.py")
    assert "def unused" in file.text


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
