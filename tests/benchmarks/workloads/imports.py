"""What an import takes, each in a fresh Python: seconds of the processor."""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from benchmarks.workload import OURS, Contender, Workload

TIMED = "import time; s = time.process_time(); {}; print(time.process_time() - s)"
LATER = {"matplotlib", "tokenizers", "babel"}
ALL = "from tformer import *"  # each public name, and with it torch
TWINS = "from tformer.reference import *"  # each twin, and with them NumPy


def environment() -> dict[str, str]:
    """Let Python keep what it compiled, as the others' is: pip compiles a package.

    Where the variable is set that forbids it, our modules would be compiled each time.
    """
    never = "PYTHONDONTWRITEBYTECODE"
    return {name: x for name, x in os.environ.items() if name != never}


def seconds_of(statement: str) -> float:
    command = [sys.executable, "-c", TIMED.format(statement)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment()
    )
    return float(done.stdout)


def contender(
    name: str, statement: str, role: str = "peer", **options: Any
) -> Contender:
    measured = partial(seconds_of, statement)
    return Contender(name, measured, role, checked=False, seconds=measured, **options)


def loaded_early() -> list[str]:
    """Name those of the libraries for later that an import of all names loads."""
    code = f"import sys; {ALL}; print(*sorted({LATER} & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, text=True, env=environment()).split()


def whole() -> Sequence[Contender]:
    return [
        contender("every name of tformer", ALL, OURS, facts={"loaded": loaded_early()}),
        contender("import torch", "import torch"),
    ]


def twin() -> Sequence[Contender]:
    seconds_of(TWINS)  # compiled from here on
    return [
        contender("every name of tformer.reference", TWINS, OURS),
        contender("import numpy", "import numpy"),
    ]


def workloads() -> list[Workload]:
    return [
        Workload("import", "every name of tformer, beside torch", "", whole),
        Workload("import", "the NumPy twin, beside NumPy", "", twin, short=True),
    ]
