"""Measure: whether outputs agree, the peak of memory, and time, all in turn.

Time: the contenders run one after the other, round after round; what disturbs the
machine disturbs all. With one thread the processor's time is taken instead of the
clock's: it stands still while another program runs. A ratio is the median of the
ratios of the rounds.

A GPU works on after a call has returned: the clock waits for it before and after.

Memory: what torch's allocator held at most during one call, above what it held before
(torch's profiler records each allocation; on a GPU the allocator counts itself). It is
exact, and the same on each run. What MKL and oneDNN keep for themselves is not in it.
NumPy's arrays are counted by `tracemalloc`.
"""

import gc
import math
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.workload import OURS, PEER, PLAIN, Contender

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler is quiet
TOLERANCE = {"float32": 2e-4, "bfloat16": 0.06}  # of the largest number
SHORTEST = 0.004  # seconds of one sample: faster calls are repeated within it
ROUNDS = 3, 15


def measure(
    contenders: Sequence[Contender], dtype: str, seconds: float, device: str = "cpu"
) -> dict[str, dict[str, Any]]:
    """Check, then measure all contenders; return what was found, by name.

    Args:
        contenders: the first is ours, and the others must agree with it.
        dtype: how closely.
        seconds: about how long to time them all together.
        device: "cpu" or "cuda", where they compute.
    """
    found: dict[str, dict[str, Any]] = {}
    expected: list[np.ndarray] | None = None
    timed = []
    for each in contenders:
        found[each.name] = {"role": each.role, "difference": None}
        output = None
        if each.seconds is None:
            try:
                output, found[each.name]["peak_bytes"] = peak_bytes(each.run, device)
            except RuntimeError as error:  # a peer may lack a dtype; ours may not
                if each.role == OURS:
                    raise
                found[each.name]["failed"] = str(error).split("\n")[0]
                continue
        if each.checked:
            output = each.output() if each.output else output
            got = _numbers(each.run() if output is None else output)
            expected = got if expected is None else expected
            apart = found[each.name]["difference"] = difference(got, expected)
            if apart > TOLERANCE[dtype]:
                found[each.name]["disagrees"] = True
                continue
        timed.append(each)
    del expected
    for name, spent in times(timed, seconds, device).items():
        found[name] |= {
            "median": statistics.median(spent),
            "lowest": min(spent),
            "rounds": spent,
        }
    return found


def _numbers(output: Any) -> list[np.ndarray]:
    """Turn an output into float64 arrays."""
    parts = output if isinstance(output, (tuple, list)) else [output]
    return [
        np.asarray(
            x.detach().cpu().double() if isinstance(x, torch.Tensor) else x,
            dtype=np.float64,
        )
        for x in parts
    ]


def difference(got: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Compute the largest difference over the largest number; inf if shapes differ."""
    if [x.shape for x in got] != [x.shape for x in expected]:
        return float("inf")
    worst = 0.0
    for a, b in zip(got, expected, strict=True):
        apart = float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))
        worst = max(worst, float("inf") if math.isnan(apart) else apart)
    return worst


def times(
    contenders: Sequence[Contender], seconds: float, device: str = "cpu"
) -> dict[str, list[float]]:
    """Run them in turn; return the seconds of one call, a number a round."""
    one = torch.get_num_threads() == 1
    of_host = time.process_time if one else time.perf_counter
    clock = of_host if device == "cpu" else _clock_of_gpu
    numbers, one_round = {}, 0.0
    gc.collect()
    for each in contenders:
        once = _sample(each, clock, 1)
        numbers[each.name] = max(1, round(SHORTEST / max(once, 1e-6)))
        one_round += max(once * numbers[each.name], 1e-6)
    rounds = min(max(int(seconds / one_round), ROUNDS[0]), ROUNDS[1])
    spent: dict[str, list[float]] = {each.name: [] for each in contenders}
    for _ in range(rounds):
        for each in contenders:
            spent[each.name].append(_sample(each, clock, numbers[each.name]))
    return spent


def _sample(each: Contender, clock: Callable[[], float], number: int) -> float:
    if each.seconds is not None:
        return each.seconds()
    start = clock()
    for _ in range(number):
        each.run()
    return (clock() - start) / number


def _clock_of_gpu() -> float:
    torch.cuda.synchronize()
    return time.perf_counter()


def peak_bytes(run: Callable[[], Any], device: str = "cpu") -> tuple[Any, int]:
    """Run once; return what came, and the peak of memory above what was there."""
    gc.collect()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        return run(), torch.cuda.max_memory_allocated() - held
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
            output = run()
        traced = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    events = record.profiler.kineto_results.events()
    changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
    now = peak = 0
    for _, change in sorted(changes):
        now += change
        peak = max(peak, now)
    # Python's own objects are in the trace too: only arrays make it large.
    return output, peak + (traced if peak == 0 else 0)


def ratios(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Compare the fastest of ours with each other contender, round by round.

    Returns:
        `ours` and `best`, the names; `ratio`, our time over the best other's; and
        `ratios`, our time over each other's.
    """
    timed = {name: x for name, x in found.items() if "median" in x}
    own = {name: x for name, x in timed.items() if x["role"] == OURS}
    others = {name: x for name, x in timed.items() if x["role"] in (PEER, PLAIN)}
    if not own:
        raise ValueError(f"none of ours was timed: {', '.join(found)}")
    mine = min(own, key=lambda name: own[name]["median"])
    each = {
        name: statistics.median(
            a / b for a, b in zip(own[mine]["rounds"], x["rounds"], strict=True)
        )
        for name, x in others.items()
    }
    best = max(each, key=lambda name: each[name], default=None)
    return {
        "ours": mine,
        "best": best,
        "ratio": None if best is None else each[best],
        "ratios": each,
    }
