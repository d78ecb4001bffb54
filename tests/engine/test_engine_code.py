"""The package's code on a page: its docstrings fold, its titles lead to the source."""

import ast
import html
import re

import markdown
import pytest

from engine.pages.blocks import squeeze
from engine.pages.minutes import hidden_lines, minutes
from engine.project import Project
from engine.site.code import Embedded, covering, embedded, folded, linked
from small_project import Write

CODE = '''\
def scale(x: float) -> float:
    """Scale `x` < 2 by "half".

    Args:
        x: a number.
    """
    note = """not a docstring
    of two lines"""
    return x / 2  # "so"


class Scaler:
    """One line."""

    def __call__(self, x):
        """Do it.
        More."""
        return scale(x)
'''


def highlighted(code: str) -> str:
    extensions = ["pymdownx.highlight", "pymdownx.superfences"]
    page = markdown.markdown(f"```python\n{code}```", extensions=extensions)
    return re.search(r"<code>(.*)</code>", page, re.S)[1]


def text_of(code_html: str, without: str) -> str:
    """Return the text that is left when elements of a class are not shown."""
    shown = re.sub(rf'<span class="[^"]*{without}">[^<]*</span>', "", code_html)
    return html.unescape(re.sub(r"<[^>]*>", "", shown))


def test_a_folded_block_holds_its_whole_source() -> None:
    code = folded(highlighted(CODE))
    assert code.count('class="fold-box"') == 2
    assert text_of(code, without="fold-end") == CODE
    assert "Docstring: 4 more lines" in code
    assert "Docstring: 1 more line" in code


def test_what_is_seen_of_a_folded_block_is_python() -> None:
    code = folded(highlighted(CODE))
    parts = re.split(r'<span class="fold-rest">.*?</span></span>', code, flags=re.S)
    seen = text_of("".join(parts), without="none")
    tree = ast.parse(seen)
    assert ast.get_docstring(tree.body[0]) == 'Scale `x` < 2 by "half".'
    assert "Args" not in seen
    assert "of two lines" in seen


def test_a_docstring_with_an_apostrophe_or_of_one_line_is_left_alone() -> None:
    for code in ('"""One."""\nx = 1\n', 'x = """a\nb"""\n'):
        assert folded(highlighted(code)) == highlighted(code)


PAGE = """
    # A page

    ```python title="tiny/scale.py"
    --8<-- "tiny/scale.py:scale"
    ```

    ```python title="mine.py"
    x = 1
    ```
"""


def test_the_title_leads_to_the_lines_and_to_the_tests(
    write: Write, project: Project
) -> None:
    page = write(PAGE, "chapters/page.md")
    (piece,) = embedded(page).values()
    assert piece.names == ("scale",)
    lines = (project.root / piece.file).read_text("utf-8").split("\n")
    source = "\n".join(lines[piece.first - 1 : piece.last])
    assert squeeze(source) == squeeze(page.blocks[0].fence.code)
    folder = project.root / "tests"
    folder.mkdir()
    for name in ("test_scale.py", "test_scale_far.py", "test_scaled.py"):
        (folder / name).write_text("from tiny import scale", "utf-8")
    (folder / "test_scale_other.py").write_text("x = rescale", "utf-8")
    assert covering(project, piece) == [
        "tests/test_scale.py",
        "tests/test_scale_far.py",
    ]
    shown = markdown.markdown(
        "\n".join(page.lines), extensions=["pymdownx.highlight", "pymdownx.superfences"]
    )
    done = linked(shown, page)
    on_github = f"{project.repo_url}/blob/HEAD"
    at = f"{on_github}/tiny/scale.py#L{piece.first}-L{piece.last}"
    assert f'<a href="{at}">tiny/scale.py</a>' in done
    assert (
        '/tests/test_scale.py" title="What tests it: tests/test_scale.py">tests</a>'
        in done
    )
    assert ">far</a>" in done
    assert '<span class="filename">mine.py</span>' in done


def test_a_module_without_tests_has_no_link_to_any(project: Project) -> None:
    assert covering(project, Embedded("tiny/scale.py", 1, 2, ("scale",))) == []


TIMED = """# Ten words

{words}

??? success "Solution"

    {words}

    ```python
    x = 1
    y = 2
    ```

=== "Second"

    {words}

===+ "First"

    {words}

```python
{lines}
```
"""


@pytest.mark.parametrize(
    ("words", "lines", "wanted"), [(10, 3, 5), (2_000, 3, 20), (10, 400, 20)]
)
def test_the_time_to_read_counts_what_is_seen(
    write: Write, words: int, lines: int, wanted: int
) -> None:
    text = TIMED.format(words="word " * words, lines="x = 1\n" * lines)
    page = write(text, "chapters/page.md")
    hidden = hidden_lines(page)
    seen = [line for n, line in enumerate(page.lines) if n not in hidden]
    assert sum("word word" in line for line in seen) == 2
    assert "    y = 2" not in seen
    assert minutes(page) == wanted


def test_a_folded_docstring_takes_no_time(write: Write, project: Project) -> None:
    long = "\n".join(f"    Line {n}." for n in range(400))
    source = f'def scale(x):\n    """Scale.\n\n{long}\n    """\n    return x\n'
    (project.root / "tiny" / "scale.py").write_text(source, "utf-8")
    assert minutes(write(PAGE, "chapters/page.md")) == 5
