"""Blocks run in order in one real `__main__`, and leave the process as it was."""

import contextlib
import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

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


def test_a_class_in_pieces_is_the_packages_and_out_of_order_it_runs(
    write: Write,
) -> None:
    page = write("""
        ```python
        from dataclasses import dataclass

        --8<-- "tiny/scale.py:19:23"

            --8<-- "tiny/scale.py:Scaler.__call__"

        print(Scaler.__call__.__code__.co_filename)
        ```

        ```python
        --8<-- "tiny/scale.py:19:21"
            --8<-- "tiny/scale.py:Scaler.__call__"

            --8<-- "tiny/scale.py:23:23"
            --8<-- "tiny/scale.py:10:10"

        print(Scaler(3.0).width, Scaler.ROOT)
        Scaler(3.0)([])
        ```
    """)
    scale = page.project.root / "tiny" / "scale.py"
    with contextlib.closing(Runner(page)) as runner:
        assert runner.result(page.blocks[0]).stdout == f"{scale}\n"
        with pytest.raises(BlockFailed) as failure:
            runner.result(page.blocks[1])
    assert str(failure.value).startswith(f"{scale}:28: ValueError: values must not")
    assert "It had printed:\n3.0 2" in str(failure.value)


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


def test_torch_has_one_thread_and_no_page_without_a_seed_has_one(write: Write) -> None:
    page = write("""
        ```python
        import random
        import numpy as np
        import torch
        print(torch.get_num_threads())
        print(random.random(), np.random.rand(), torch.rand(1).item())
        ```
    """)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    outputs = set()
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        count, *numbers = printed(page)[0].split()
        assert count == "1"
        outputs |= set(numbers)
    assert len(outputs) == 6
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
