"""The package's code on a page: its docstrings fold, its titles lead to the source."""

import ast
import html
import re

import markdown

from engine.pages.blocks import squeeze
from engine.project import Project
from engine.site.code import embedded, folded, linked, unmarked
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


def test_a_folded_block_holds_its_whole_source_and_shows_python() -> None:
    code = folded(highlighted(CODE))
    assert code.count('class="fold-box"') == 2
    assert text_of(code, without="fold-end") == CODE
    assert "Docstring: 4 more lines" in code
    assert "Docstring: 1 more line" in code

    parts = re.split(r'<span class="fold-rest">.*?</span></span>', code, flags=re.S)
    seen = text_of("".join(parts), without="none")
    tree = ast.parse(seen)
    assert ast.get_docstring(tree.body[0]) == 'Scale `x` < 2 by "half".'
    assert "Args" not in seen
    assert "of two lines" in seen


PAGE = """
    # A page

    ```python title="tiny/scale.py"
    --8<-- "tiny/scale.py:scale"
    ```

    ```python title="mine.py"
    x = 1
    ```
"""


def test_the_title_leads_to_the_lines(write: Write, project: Project) -> None:
    page = write(PAGE, "chapters/page.md")
    ((text, piece),) = embedded(page).items()
    file, first, last = re.fullmatch(r"(.*)#L(\d+)-L(\d+)", piece).groups()
    lines = (project.root / file).read_text("utf-8").split("\n")
    assert squeeze("\n".join(lines[int(first) - 1 : int(last)])) == text
    assert text == squeeze(page.blocks[0].fence.code)
    shown = markdown.markdown(
        "\n".join(page.lines), extensions=["pymdownx.highlight", "pymdownx.superfences"]
    )
    done = linked(shown, page)
    at = f"{project.repo_url}/blob/HEAD/{piece}"
    assert f'<a href="{at}">tiny/scale.py</a>' in done
    assert '<span class="filename">mine.py</span>' in done


def test_marks_that_have_no_colour_of_their_own_are_left_out():
    code = highlighted("def scale(x): return x\n")
    plain = unmarked(code)
    for mark in ('class="n"', 'class="w"'):
        assert mark in code
        assert mark not in plain
    assert re.sub("<[^>]*>", "", plain) == re.sub("<[^>]*>", "", code)
    assert '<span class="k">return</span> x' in plain
