"""What a block needs of those above it, and where readers run and edit it."""

import re

import numpy as np
from bs4 import BeautifulSoup

from engine.copies.needed import editable_block, editable_problems, needed
from engine.pages.checking import page_problems
from engine.site.python import Runtime, with_place
from small_project import Write

PYTHON = Runtime("assets/python/1a/", "live/t.zip", b"", 9)
PAGE = """
    # A page

    ```python
    import matplotlib.pyplot as plt
    import numpy as np

    x = [2.6 * place for place in range(3)]  # of a picture
    plt.plot(x)
    ```

    ```python
    np.set_printoptions(precision=2)
    table = np.zeros(3)  # three
    table[1] = 4
    rows = [1]
    rows.append(2)
    print(table)
    x = np.ones(3)


    def doubled(a):  # a comment
        return 2 * a @ table
    ```

    ```python
    x = x + 1
    table.sort()
    for place in range(2):
        rows.extend([place])
    ```

    ```{.python .editable}
    for place in range(1):
        print(place, doubled(x))
    ```

    ```{.text .output}
    0 16.0
    ```
"""
NEEDED = """import numpy as np

np.set_printoptions(precision=2)
table = np.zeros(3)  # three
table[1] = 4
x = np.ones(3)
def doubled(a):  # a comment
    return 2 * a @ table

x = x + 1
table.sort()"""


def test_what_is_read_comes_along_and_what_changes_it(write: Write):
    page = write(PAGE)
    block = editable_block(page)
    assert needed(page, block) == NEEDED
    names: dict[str, object] = {}
    with np.printoptions():
        exec(f"{NEEDED}\n{block.fence.code}", names)  # it is all that the block needs
    assert editable_problems(page) == []


def test_what_readers_could_not_run_is_told(write: Write):
    editable = "```{{.python .editable}}\n{}\n```\n\n"
    output = "```{{.text .output}}\n1\n```\n\n".format()
    torch = "```python\nimport torch\n```\n\n"
    mine = "```python\nfrom tformer.reference import softmax\n```\n\n"
    numpy = "```python\nimport numpy as np\n```\n\n"
    for text, told in (
        (editable.format("1"), "shows no output"),
        (torch + editable.format("print(torch.e)") + output, "imports torch: only"),
        (
            mine + editable.format("print(softmax)") + output,
            "imports tformer.reference",
        ),
        ((numpy + editable.format("print(np.e)") + output) * 2, "second of its page"),
    ):
        page = write("# A page\n\n" + text)
        problems = [x for x in page_problems(page) if "editable block" in x]
        assert len(problems) == 1, text
        assert told in problems[0]
        line = page.blocks[-1].line
        assert problems[0].startswith(f"{page.path}:{line}: ")


def test_the_place_stands_below_the_output(write: Write):
    page = write(PAGE)
    block = '<div class="printing language-python {}highlight"><pre>{}</pre></div>\n'
    output = '<div class="language-text output highlight"><pre>{}</pre></div>\n'
    plain = block.format("", "a") + output.format("b")
    marked = block.format("editable ", "c") + output.format("d")
    html = with_place(plain + marked + plain, page, PYTHON, "../../")
    place = BeautifulSoup(html, "html.parser").find(class_="python-block")
    rest = re.sub('<div class="python-block".*?></div>', "", html, flags=re.DOTALL)
    assert rest.split() == (plain + marked + plain).split()
    assert html.index("<pre>d") < html.index("python-block") < html.rindex("<pre>a")
    assert place["data-before"] == NEEDED
    assert place["data-folder"] == "../../assets/python/1a/"
    assert place["data-bytes"] == "9"
    assert not place.contents  # without JavaScript nothing is shown
    assert place["data-python"] == "block page"


def test_a_page_without_such_a_block_is_left_alone(write: Write):
    page = write(PAGE.replace("{.python .editable}", "python"))
    assert editable_block(page) is None
    assert with_place("<p>A</p>", page, PYTHON, "") == "<p>A</p>"
