"""The same code in NumPy and in PyTorch, in two tabs: all of it runs, in its order."""

import json

import pytest

from engine.copies.notebooks import Ran, notebook
from engine.pages.checking import unseen_code
from engine.pages.reading import Page, render
from small_project import Write, run

TABS = """
    # A page

    === "NumPy"

        The twin:

        ```python
        def name():
            return "numpy"


        print("in the first tab:", name())
        ```

        ```{.text .output}
        in the first tab: numpy
        ```

    ===+ "PyTorch"

        ```python
        def name():
            return "torch"


        print("in the second tab:", name())
        ```

    ```python
    print("below:", name())
    ```
"""


@pytest.fixture
def page(write: Write) -> Page:
    return write(TABS, "chapters/page.md")


def test_both_tabs_run_and_the_last_ones_names_hold(page: Page) -> None:
    assert [result.stdout for result in run(page)] == [
        "in the first tab: numpy\n",
        "in the second tab: torch\n",
        "below: torch\n",
    ]
    assert unseen_code(page, render(page)) == []


def test_a_notebook_has_one_below_the_other(page: Page) -> None:
    cells = json.loads(notebook(Ran(page, run(page))))["cells"]
    texts = [(x["cell_type"], "".join(x["source"])) for x in cells]
    kinds = [kind for kind, text in texts if "A copy of" not in text]
    assert kinds == ["markdown", "code", "markdown", "code", "code"]
    prose = [text for kind, text in texts if kind == "markdown"]
    assert prose[1].endswith("**NumPy**\n\nThe twin:")
    assert prose[2] == "**PyTorch**"
