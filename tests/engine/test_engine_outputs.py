"""Outputs are compared, floats to the digits shown, and written into the pages."""

import re

import pytest

from engine.making import rewrite_outputs
from engine.run.outputs import same_output, with_outputs
from small_project import Write, run

PAGE = """\
# Outputs

```python
print("one", 1 / 3)
```

```{.text .output}
```

=== "Tab"

    !!! note

        ```python
        print("two")
        print()
        print("  lines")
        ```

        Words between them.

        ```{.text .output title="shown"}
        old
        longer

        than the new
        ```

> ```python
> print("three")
> ```
>
> ```{.text .output}
> 3
> ```

```python
print(0.12345)
```

~~~{.text .output}
0.1235
~~~

``` {.python .annotate}
print("four")
```

After it.

> ```py
> print("five")
> ```
> Quoted.

```text
of no block
```

```python
quiet = print
```
"""
NEW = (
    PAGE.replace("```{.text .output}\n```", "```{.text .output}\none 0.33333\n```", 1)
    .replace(
        "        old\n        longer\n\n        than the new\n",
        "        two\n\n          lines\n",
    )
    .replace("> 3\n", "> three\n")
    .replace('"four")\n```\n', '"four")\n```\n\n```{.text .output}\nfour\n```\n')
    .replace(
        '("five")\n> ```\n',
        '("five")\n> ```\n>\n> ```{.text .output}\n> five\n> ```\n>\n',
    )
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_only_stale_outputs_change(write: Write, newline: str) -> None:
    page = write(PAGE)
    page.path.write_bytes(PAGE.replace("\n", newline).encode())
    printed = {n: result.stdout for n, result in enumerate(run(page))}
    text, count = with_outputs(page, printed)
    assert count == 5
    wanted = NEW.replace("one 0.33333", f"one {1 / 3}").replace("\n", newline)
    assert text == wanted
    page.path.write_bytes(text.encode())
    again = type(page)(page.project, page.path)
    assert with_outputs(again, printed) == (text, 0)


def test_command_rewrites_pages_and_leaves_a_page_that_fails(write: Write) -> None:
    good = write(PAGE, "good.md")
    failing = PAGE + "\n```python\n1 / 0\n```\n"
    bad = write(failing, "bad.md")
    problem, *more = rewrite_outputs(good.project, [good.path, bad.path])
    assert not more, more
    assert re.match(r"docs/bad.md:\d+: ZeroDivisionError", problem)
    assert bad.path.read_text("utf-8") == failing
    assert good.path.read_text("utf-8") == NEW.replace("0.33333", str(1 / 3))


def test_an_output_that_no_run_repeats_is_not_written(write: Write) -> None:
    page = write("""
        ```python
        import random

        print(round(random.random(), 12))
        print("kept")
        ```

        ```python
        print("true")
        ```
    """)
    (problem,) = rewrite_outputs(page.project, [page.path])
    assert "docs/page.md:1: what the block prints differs between runs: seed" in problem
    assert re.search(r"--- one run\n\+\+\+ another run\n@@.*@@\n-0.*\n\+0", problem)
    text = page.path.read_text("utf-8")
    assert text.count(".output") == 1
    assert text.endswith("```{.text .output}\ntrue\n```\n")


SAME = [
    ("", ""),
    ("a\nb", "a\nb\n"),
    ("a", "a   \n\n"),
    ("0.3333", "0.3334"),  # rounded the other way
    ("0.33", "0.3349"),
    ("1e-07", "2e-07"),
    ("1.19e-07", "1.2e-07"),
    ("tensor([1., 0.])", "tensor([1.0000, 0.0000])"),
    ("[ 0.0000, 0.5000]", "[-0.0000, 0.5000]"),
    ("[0.5000,\n 0.2500]", "[ 0.5000,\n  0.2500]"),
    ("loss: 0.1235.", "loss: 0.1234."),
]
DIFFERENT = [
    ("", "a"),
    ("a", ""),
    ("a b", "a  b"),
    ("0.3333", "0.3335"),
    ("1.0", "0.9"),
    ("1.", "2."),
    ("1.", "0."),
    ("0.5", "0.6"),
    ("1e-07", "4e-07"),
    ("1.5e+10", "1.5e+11"),
    ("tensor([1., 0.])", "tensor([0., 1.])"),
    ("[0.5000, 0.2500]", "[0.5000]"),
    ("3.11.2", "3.11.3"),
    ("v1.01", "v1.02"),
    ("nan", "0.5000"),
    ("inf", "nan"),
    ("torch.Size([2, 3])", "torch.Size([3, 2])"),
    ("1.0", "1"),
    ("-0.5000", "0.5000"),
]


@pytest.mark.parametrize(("shown", "printed"), [*SAME, *DIFFERENT])
def test_outputs_are_equal_but_for_rounding(shown: str, printed: str) -> None:
    assert same_output(shown, printed) is ((shown, printed) in SAME)
