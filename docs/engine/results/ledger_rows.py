"""The rows of the ledger: runs that differ in a part, and what they are held to."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from engine.results.groups import OWN, Group, means, model, steps, task
from engine.results.ledger_words import name_of
from engine.results.numbers import MISSING, paired
from tformer.runs import parts

# What the two models are built with, where it is not what a GPT has by itself.
BASES: dict[str, dict[str, Any]] = {
    "gpt": {"feed_forward": "gelu"},
    "today": {"positions": "rotary", "norm": "rms", "feed_forward": "swiglu"},
}
# What else a row may change; with a tuned setting a run is none of the ledger.
ALSO = {"d_ff", "optimizer", "steps", "model"}
TIME = "step-time"  # the evaluation that tests/baselines/step_times.py writes
CLOSE = 0.05  # a step that takes so much more or less time counts as equal
KINDS = ("helps", "does not show", "hurts")


class Row(NamedTuple):
    """A part, the runs with it, and what they are compared with."""

    name: str
    instead: str  # of what
    at: str  # the base, by its name in BASES
    runs: Group
    base: Group
    timed: Group  # in the time of the GPT; empty if there is no such run
    base_timed: Group

    @property
    def apart(self) -> list[float]:
        """The loss minus that of the base, seed by seed."""
        return differences(self.runs, self.base)

    @property
    def kind(self) -> str:
        """What the interval of the difference says."""
        return verdict(self.apart)


def of_ledger(group: Group) -> bool:
    """Whether runs belong to the ledger: nothing but parts was changed."""
    changed = group[0]["changes"].keys()
    return (
        task(group) == "text"
        and model(group[0]) == OWN
        and group[0]["settings"]["model"] == parts.MODEL
        and changed <= {*parts.OF_GPT, *ALSO}
    )


def built_with(group: Group) -> dict[str, Any]:
    """Name the parts of some runs that are not a GPT's."""
    changed = group[0]["changes"]
    return {name: x for name, x in changed.items() if name not in ("steps", "model")}


def differences(group: Group, base: Group) -> list[float]:
    """Compute the loss of each seed minus that of the same seed of the base."""
    losses = {run["settings"]["seed"]: run["result"]["test_loss"] for run in base}
    return [
        run["result"]["test_loss"] - losses[run["settings"]["seed"]]
        for run in group
        if run["settings"]["seed"] in losses
    ]


def verdict(apart: Sequence[float]) -> str:
    """Say whether a difference shows: whether its interval is on one side of 0."""
    if len(apart) < 2:
        return MISSING
    mean, half = paired(apart)
    return KINDS[(mean - half > 0) - (mean + half < 0) + 1]


def ledger(groups: Sequence[Group]) -> list[Row]:
    """Gather the rows: those of the GPT first, each base's sorted by difference."""
    chosen = [g for g in groups if of_ledger(g)]
    by_parts: dict[str, list[Group]] = {}
    for g in chosen:
        by_parts.setdefault(_key(built_with(g)), []).append(g)
    if not all(_key(base) in by_parts for base in BASES.values()):
        return []
    most = steps(by_parts[_key(BASES["gpt"])][0])
    equal = {
        key: next((g for g in some if steps(g) == most), [])
        for key, some in by_parts.items()
    }
    rows = []
    for key, runs in equal.items():
        if not runs or key == _key(BASES["gpt"]):
            continue
        closest = nearest(built_with(runs))
        base = equal[_key(BASES[closest])]
        name, instead = name_of(BASES[closest], built_with(runs))
        rows.append(
            Row(
                name,
                instead,
                closest,
                runs,
                base,
                _timed(runs, by_parts[key], most),
                _timed(base, by_parts[_key(BASES[closest])], most),
            )
        )
    order = list(BASES)
    return sorted(
        rows,
        key=lambda r: (
            order.index(r.at),
            statistics.mean(r.apart) if r.apart else 0,
        ),
    )


def _key(changed: dict[str, Any]) -> str:
    return repr(sorted(changed.items()))


def nearest(changed: dict[str, Any]) -> str:
    """Name the base from which the fewest settings differ; of today's the GPT."""
    if changed == BASES["today"]:
        return "gpt"

    def distance(base: dict[str, Any]) -> int:
        names = base.keys() | changed.keys()
        return sum(base.get(name) != changed.get(name) for name in names)

    return min(BASES, key=lambda name: distance(BASES[name]))


def _timed(runs: Group, same: Iterable[Group], most: int) -> Group:
    """Choose the runs that took the time of the GPT's steps."""
    took = ratio(runs)
    if took is None:
        return []
    if abs(round(took, 2) - 1) <= CLOSE + 1e-9:  # as the table shows it
        return runs
    wanted = most / took
    near = [g for g in same if abs(steps(g) / wanted - 1) <= CLOSE]
    return near[0] if near else []


def ratio(group: Group) -> float | None:
    """Return the time of a step, that of the GPT being 1, if it was measured."""
    found = means(group, "evaluations", TIME, "result", "ratio")
    return statistics.mean(found) if found else None
