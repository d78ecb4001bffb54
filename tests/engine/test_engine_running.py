"""Blocks run in order in one real `__main__`, and leave the process as it was."""

import contextlib
import os
import random
import sys
from pathlib import Path

import pytest

from engine.pages.reading import Page
from engine.run.compiling import BlockFailed
from engine.run.running import Runner
from small_project import Write, run


def printed(page: Page) -> list[str]:
    return [result.stdout for result in run(page)]


def test_blocks_share_a_real_main_module(write: Write) -> None:
    page = write("""
        ```python
        import sys

        print(__name__, sys.modules["__main__"].__dict__ is globals(), sys.argv[1:])
        ```

        === "In a tab"

            ```python
            import pickle

            class Here:
                pass

            print(type(pickle.loads(pickle.dumps(Here()))) is Here)
            ```
    """)
    main, arguments, folder = sys.modules["__main__"], sys.argv, Path.cwd()
    assert printed(page) == ["__main__ True []\n", "True\n"]
    assert (sys.modules["__main__"], sys.argv, Path.cwd()) == (main, arguments, folder)
    assert str(page.project.root) not in sys.path


def test_annotations_of_classes_can_be_looked_up(write: Write) -> None:
    page = write("""
        ```python
        from __future__ import annotations
        ```

        ```python
        from dataclasses import dataclass, fields
        from typing import get_type_hints

        @dataclass
        class Pair:
            left: int
            right: Pair | None = None

        print(fields(Pair)[0].type)
        hints = get_type_hints(Pair)
        print(hints["left"], hints["right"] == Pair | None)
        ```
    """)
    # The type is a string, as the import in the block above holds for all that follow.
    assert printed(page)[1] == "int\n<class 'int'> True\n"


def test_source_of_page_and_package_can_be_inspected(write: Write) -> None:
    page = write("""
        Words that are not Python.

        ```python
        import inspect

        --8<-- "tiny/scale.py:scale"
        ```

        !!! note

            ```python
            class Inside:
                '''A class of the page.'''

                def method(self):
                    return 1

            def double(x):
                return 2 * x
            ```

        ```python
        from dataclasses import dataclass
        --8<-- "tiny/scale.py:Scaler"

        class Mixed:
            width = 1.0

            --8<-- "tiny/scale.py:Scaler.__call__"
        ```

        ```python
        for thing in (scale, Inside, Inside.method, double, Scaler, Mixed):
            source = inspect.getsource(thing).strip().splitlines()
            print(source[0], "...", source[-1].strip())
        print(inspect.getsourcefile(scale).endswith("scale.py"))
        ```
    """)
    assert printed(page)[-1].splitlines() == [
        "def scale(values: list[float], width: float) -> list[float]: ... "
        "return [value / math.sqrt(check_positive(width)) for value in values]",
        "class Inside: ... return 1",
        "def method(self): ... return 1",
        "def double(x): ... return 2 * x",
        "@dataclass ... return scale(values, self.width)",
        "class Mixed: ... return scale(values, self.width)",
        "True",
    ]


def test_a_class_in_pieces_with_blank_lines_between_is_the_packages(
    write: Write,
) -> None:
    page = write("""
        ```python
        from dataclasses import dataclass

        --8<-- "tiny/scale.py:19:23"

            --8<-- "tiny/scale.py:Scaler.__call__"

        print(Scaler.__call__.__code__.co_filename)
        ```
    """)
    assert printed(page) == [f"{page.project.root}/tiny/scale.py\n"]


def test_a_class_whose_pieces_are_out_of_order_runs(write: Write) -> None:
    page = write("""
        ```python
        from dataclasses import dataclass

        --8<-- "tiny/scale.py:19:21"
            --8<-- "tiny/scale.py:Scaler.__call__"

            --8<-- "tiny/scale.py:23:23"
            --8<-- "tiny/scale.py:10:10"

        print(Scaler(3.0).width, Scaler.ROOT)
        Scaler(3.0)([])
        ```
    """)
    scale = page.project.root / "tiny" / "scale.py"
    with pytest.raises(BlockFailed) as failure:
        run(page)
    assert str(failure.value).startswith(f"{scale}:28: ValueError: values must not")
    assert "It had printed:\n3.0 2" in str(failure.value)


def test_nothing_below_a_failure_is_run(write: Write) -> None:
    page = write("""
        ```python
        first = 1
        ```
        ```python
        first / 0
        ```
        ```python
        first = 2
        ```
    """)
    with contextlib.closing(Runner(page)) as runner:
        with pytest.raises(BlockFailed, match=r"not run, since the block at .*md:4"):
            runner.result(page.blocks[2])
        assert runner.result(page.blocks[0]).stdout == ""
        assert sorted(runner.ran) == [0, 1]


def test_one_block_alone_runs_those_above_it_once(write: Write) -> None:
    page = write("""
        ```python
        calls = ["first"]
        ```
        <!--pytest.mark.skip(reason="would add to the list")-->
        ```python
        calls.append("left out")
        ```
        ```python
        calls.append("last")
        print(calls)
        ```
    """)
    with contextlib.closing(Runner(page)) as runner:
        for _ in range(2):
            assert runner.result(page.blocks[2]).stdout == "['first', 'last']\n"
        assert runner.left_out == {1: "would add to the list"}


def test_a_failure_shows_what_was_printed_before(write: Write) -> None:
    page = write("""
        ```python
        print("loss 0.7")
        raise RuntimeError("stop")
        ```
    """)
    with pytest.raises(
        BlockFailed, match=r"page.md:3: RuntimeError.*\n(.|\n)*loss 0.7"
    ):
        run(page)


def test_a_page_has_an_empty_folder_of_its_own(write: Write) -> None:
    page = write("""
        ```python
        import os
        print(os.listdir())
        open("kept.txt", "w").close()
        ```
        ```python
        print(os.listdir())
        ```
    """)
    here = sorted(os.listdir())
    assert printed(page) == ["[]\n", "['kept.txt']\n"]
    assert printed(page) == ["[]\n", "['kept.txt']\n"]
    assert sorted(os.listdir()) == here


def test_random_numbers_of_a_page_without_a_seed_differ(write: Write) -> None:
    page = write("""
        ```python
        import random
        import numpy as np
        print(random.random(), np.random.rand())
        ```
    """)
    outputs = set()
    for _ in range(2):
        random.seed(0)
        sys.modules["numpy"].random.seed(0)
        outputs |= set(printed(page)[0].split())
    assert len(outputs) == 4


def test_torch_has_one_thread_and_no_seed(write: Write) -> None:
    torch = pytest.importorskip("torch")
    page = write("""
        ```python
        import torch
        print(torch.get_num_threads(), torch.rand(1).item())
        ```
    """)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    outputs = set()
    for _ in range(2):
        torch.manual_seed(0)
        count, number = printed(page)[0].split()
        outputs.add(number)
        assert count == "1"
    assert len(outputs) == 2
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)


def test_print_options_end_with_the_page(write: Write) -> None:
    page = write("""
        ```python
        import numpy as np
        import torch

        print(np.array([1 / 3]), torch.tensor([1 / 3, 1e-9]))
        np.set_printoptions(precision=2)
        torch.set_printoptions(precision=2, sci_mode=False)
        print(np.array([1 / 3]), torch.tensor([1 / 3, 1e-9]))
        ```
    """)
    first, second = printed(page), printed(page)
    assert first == second
    default, chosen = first[0].splitlines()
    assert "0.33333333" in default
    assert chosen == "[0.33] tensor([0.33, 0.00])"


def test_what_a_subprocess_prints_is_printed(write: Write) -> None:
    page = write("""
        ```python
        import os, subprocess, sys
        print("before")
        subprocess.run([sys.executable, "-c", "print('below')"], check=True)
        if not os.fork():
            os.write(1, b"forked\\n")
            os._exit(0)
        os.wait()
        print("after")
        ```
    """)
    assert printed(page) == ["before\nbelow\nforked\nafter\n"]


@pytest.mark.parametrize(
    ("wait", "end"),
    [(0, "thread.join()\n```\n\n```python\n"), (0.2, ""), (0.2, "```\n```python\n1")],
)
def test_an_exception_in_a_thread_fails_its_page(
    write: Write, wait: float, end: str
) -> None:
    page = write(f"""\
```python
import threading, time

def work():
    time.sleep({wait})
    raise RuntimeError("in a thread")

thread = threading.Thread(target=work)
thread.start()
{end}
```
""")
    with pytest.raises(BlockFailed, match=r"page.md:6: RuntimeError: in a thread"):
        run(page)
