"""What an import takes, each in a fresh Python: seconds of the processor."""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial

from benchmarks.workload import OURS, PEER, Contender, Workload

TIMED = "import time; s = time.process_time(); {}; print(time.process_time() - s)"
PAIRS = {  # each public name, and with it what is imported beside it
    "tformer": ("every name of tformer, beside torch", "torch"),
    "tformer.reference": ("the NumPy twin, beside NumPy", "numpy"),
}
# Where it is set our modules would be compiled each time; pip compiles a package.
NEVER_KEPT = "PYTHONDONTWRITEBYTECODE"


def seconds_of(statement: str) -> float:
    command = [sys.executable, "-c", TIMED.format(statement)]
    kept = {name: x for name, x in os.environ.items() if name != NEVER_KEPT}
    return float(subprocess.check_output(command, text=True, env=kept))


def make(mine: str, other: str) -> Sequence[Contender]:
    found = []
    for name, statement, role in (
        (f"every name of {mine}", f"from {mine} import *", OURS),
        (f"import {other}", f"import {other}", PEER),
    ):
        run = partial(seconds_of, statement)
        run()  # compiled from here on
        found.append(Contender(name, run, role, checked=False, seconds=run))
    return found


def workloads() -> list[Workload]:
    return [
        Workload(
            "import",
            name,
            "",
            partial(make, mine, other),
            short=other == "numpy",
            device="cpu",
        )
        for mine, (name, other) in PAIRS.items()
    ]
