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


LEFT = """
    ```python
    import os, random, sys
    import matplotlib.pyplot as plt
    import numpy as np
    import torch

    print(__name__, sys.modules["__main__"].__dict__ is globals(), sys.argv[1:])
    print(os.listdir(), torch.get_num_threads(), plt.get_backend(), plt.get_fignums())
    print(np.array([1 / 3]), torch.tensor([1 / 3, 1e-9]))
    print(plt.rcParams["figure.figsize"])
    open("kept.txt", "w").close()
    np.set_printoptions(precision=2)
    torch.set_printoptions(precision=2, sci_mode=False)
    torch.set_default_dtype(torch.float64)
    plt.rcParams["figure.figsize"] = (1, 1)
    ```

    === "In a tab"

        ```python
        import pickle

        class Here:
            pass

        print(type(pickle.loads(pickle.dumps(Here()))) is Here, os.listdir())
        print(np.array([1 / 3]), torch.tensor([1 / 3, 1e-9]))
        print(plt.rcParams["figure.figsize"])
        plt.figure()
        ```

    ```python
    print(random.random(), np.random.rand(), torch.rand(1).item())
    ```
"""


def test_a_page_is_a_program_and_nothing_of_it_is_left(write: Write) -> None:
    """Its own `__main__`, folder, settings and random numbers; each run begins anew."""
    page = write(LEFT)

    def process() -> tuple[object, ...]:
        torchs = torch.get_num_threads(), torch.get_default_dtype()
        return sys.modules["__main__"], sys.argv, Path.cwd(), sys.path[:], torchs

    before, files = process(), sorted(os.listdir())
    numbers = set()
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        first, second, drawn = printed(page)
        said = first.splitlines()
        assert said[:2] == ["__main__ True []", "[] 1 agg []"]
        assert "0.33333333" in said[2]
        assert said[3] == "[4.8, 2.9]"
        assert second.splitlines() == [
            "True ['kept.txt']",
            "[0.33] tensor([0.33, 0.00])",
            "[1.0, 1.0]",
        ]
        numbers |= set(drawn.split())
    assert len(numbers) == 6
    assert process() == before
    assert sorted(os.listdir()) == files


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
        for thing in (scale, Inside, Inside.method, double):
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
        "True",
    ]


def test_a_class_in_pieces_is_the_packages_and_out_of_order_it_fails(
    write: Write,
) -> None:
    head, call = (
        '--8<-- "tiny/scale.py:19:23"',
        '--8<-- "tiny/scale.py:Scaler.__call__"',
    )
    shown = "print(Scaler.__call__.__code__.co_filename)"
    above = "```python\nfrom dataclasses import dataclass\n\n"
    page = write(f"{above}{head}\n\n    {call}\n\n{shown}\n```\n")
    scale = page.project.root / "tiny" / "scale.py"
    assert printed(page) == [f"{scale}\n"]
    page = write(f"{above}{head}\n\n    x = 1\n```\n")
    with pytest.raises(BlockFailed, match="a statement is put together from pieces"):
        run(page)


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
