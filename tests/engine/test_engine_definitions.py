"""Pages name definitions, which the syntax tree finds in the package."""

import re
import textwrap

import markdown
import pytest

from engine.definitions import NoDefinition, find_spans
from engine.pages.blocks import PageError
from engine.project import Project
from small_project import Write

SOURCE = textwrap.dedent('''\
    """What the file is for.

    More of it.
    """

    import math
    from typing import TYPE_CHECKING, overload

    if TYPE_CHECKING:
        from os import PathLike

    # How large.
    # In metres.
    SIZE: float = 1.0
    a, b = 1, 2
    LATE = math.pi
    import sys


    @overload
    def area(side: int) -> int: ...
    @overload
    def area(side: float) -> float: ...


    # The formula.
    @staticmethod
    def area(side):
        return side * side  # metres


    class Square:
        """A square."""

        side: float

        def __init__(self, side):
            self.side = side

        # Called by others.
        def forward(self):
            def inner():
                return 1

            return inner()

        class Corner:
            angle = 90


    class Plain:
        def __init__(self):
            self.x = 1

        def use(self):
            return self.x
''')


def shown(names: str) -> str:
    lines = SOURCE.split("\n")
    spans = find_spans(SOURCE, names)
    return "\n".join("\n".join(lines[first - 1 : last]) for first, last in spans)


@pytest.mark.parametrize(
    ("names", "first", "last"),
    [
        ("imports", "import math", "    from os import PathLike"),
        ("SIZE", "# How large.", "SIZE: float = 1.0"),
        ("a", "a, b = 1, 2", "a, b = 1, 2"),
        ("area", "# The formula.", "    return side * side  # metres"),
        ("Square", "class Square:", "        angle = 90"),
        ("Square.forward", "    # Called by others.", "        return inner()"),
        ("Square.forward.inner", "        def inner():", "            return 1"),
        ("Square.Corner.angle", "        angle = 90", "        angle = 90"),
        ("Square.class", "class Square:", "        self.side = side"),
        ("Plain.class", "class Plain:", "        self.x = 1"),
        ("Square.Corner.class", "    class Corner:", "        angle = 90"),
        ("LATE,SIZE", "LATE = math.pi", "SIZE: float = 1.0"),
    ],
)
def test_every_selector_gives_its_lines(names: str, first: str, last: str) -> None:
    lines = shown(names).split("\n")
    assert (lines[0], lines[-1]) == (first, last)


def test_imports_end_where_code_begins() -> None:
    assert "import sys" not in shown("imports")
    assert "metres" not in shown("imports")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ("aera", "`aera` is not defined there; near it: area"),
        ("forward", "`forward` is not defined there; near it: Square.forward"),
        ("Square.inner", "`Square.inner` is not defined there"),
        ("zzz", "near it: nothing"),
        ("area.class", "`area.class` is not defined there"),
        ("SIZE,gone_for_good", "`gone_for_good` is not defined there"),
    ],
)
def test_an_unknown_name_is_told_with_those_near_it(names: str, says: str) -> None:
    with pytest.raises(NoDefinition, match=re.escape(says)):
        find_spans(SOURCE, names)


def test_neighbours_keep_the_blank_lines_of_the_file(write: Write) -> None:
    page = write('```python\n--8<-- "tiny/scale.py:ROOT,scale,root"\n```\n')
    text = "\n".join(page.blocks[0].lines)
    assert "ROOT = 2\n\n\n# The square root keeps" in text
    assert "for value in values]\n\n\ndef root(" in text
    assert "class Scaler" not in text


def test_the_site_shows_what_the_tests_run(project: Project, write: Write) -> None:
    page = write('--8<-- "tiny/scale.py:Scaler.__call__"\n')
    options = {"engine.definitions": project.extensions["engine.definitions"]}
    converter = markdown.Markdown(
        extensions=["engine.definitions"], extension_configs=options
    )
    html = converter.convert("\n".join(page.body))
    assert "return scale(values, self.width)" in html
    assert "class Scaler" not in html
    with pytest.raises(NoDefinition, match=r"scale.py: `Scaler.gone` is not defined"):
        converter.convert('--8<-- "tiny/scale.py:Scaler.gone"')


def test_an_error_names_page_and_line(write: Write, project: Project) -> None:
    with pytest.raises(PageError) as error:
        _ = write('# Title\n\n    --8<-- "tiny/scale.py:Scaler,rot"\n').lines
    assert project.tidy(str(error.value)) == (
        "docs/page.md:3: tiny/scale.py: `rot` is not defined there; near it: root"
    )
