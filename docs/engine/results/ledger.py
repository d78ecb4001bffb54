"""Each part of a language model, put into one small GPT or the block of today."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from engine.results.columns import LOSS, mean, spread
from engine.results.groups import Group
from engine.tables import MISSING, SPACE, fold, paired, signed
from engine.tables import table as write_table
from tformer.models.families.custom import PARTS

# What the two models are built with, where it is not what a GPT has by itself.
BASES: dict[str, dict[str, Any]] = {
    "gpt": {"feed_forward": "gelu"},
    "today": {"positions": "rotary", "norm": "rms", "feed_forward": "swiglu"},
}
# What else a row may change; with a tuned setting a run is none of the ledger.
ALSO = ("d_ff", "optimizer")
TIME = "evaluations.step-time.result.ratio"  # as tests/baselines/step_times.py wrote it
CLOSE = 0.05  # a step that takes so much more or less time counts as equal
UNSTEADY = 10  # seeds that end so many times as far apart as the base's
SEEN = 0.25  # larger differences would make the others of the picture too small
KINDS = ("helps", "does not show", "hurts")
# A setting is called by its name and its value, "rotary positions", but for these.
WORDS = {
    "positions sinusoidal": "sinusoids",
    "positions alibi": "ALiBi",
    "positions t5": "T5's relative bias",
    "norm layer": "LayerNorm",
    "norm rms": "RMSNorm",
    "norm rms_plus_one": "RMSNorm, 1 + w",
    "placement sandwich": "sandwich norm",
    "placement pre": "pre-norm",
    "placement post": "post-norm",
    "feed_forward relu": "ReLU",
    "feed_forward gelu": "GELU",
    "feed_forward gelu_tanh": "GELU by tanh",
    "feed_forward relu2": "ReLU²",
    "feed_forward swiglu": "SwiGLU",
    "feed_forward geglu": "GeGLU",
    "feed_forward reglu": "ReGLU",
    "feed_forward glu": "GLU",
    "optimizer adamw": "AdamW",
    "optimizer muon": "Muon",
    "qk_norm": "QK-norm",
    "kv_heads 1": "1 key/value head",
    "kv_heads": "{} key/value heads",
    "window": "window of {}",
    "global_every": "1 in {} global",
    "softcap": "scores capped at {:g}",
    "logit_cap": "logits capped at {:g}",
    "top_k": "{} a token",
    "shared_experts": "{} shared",
    "d_ff": "of width {}",
    "kv_rank": "latents of {} (MLA)",
}


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
    def fewer(self) -> bool:
        """Whether there are fewer of them than seeds of the base."""
        return len(self.apart) < len(self.base)

    @property
    def mean(self) -> float:
        """The mean of these differences."""
        return statistics.mean(self.apart) if self.apart else 0


def name_of(base: Mapping[str, Any], changed: Mapping[str, Any]) -> tuple[str, str]:
    """Say what was put in, and what of the base it stands in for, if anything."""
    if changed == BASES["today"]:
        return "the block of today", "all three"
    unset = {name: part.default for name, part in PARTS.items()}
    unset |= {"d_ff": None, "optimizer": "adamw"}
    names = [n for n in unset if base.get(n, unset[n]) != changed.get(n, unset[n])]
    put = [called(n, changed.get(n, unset[n])) for n in names]
    instead = [called(n, base.get(n, unset[n])) for n in names]
    return ", ".join(filter(None, put)), ", ".join(filter(None, instead))


def called(setting: str, value: Any) -> str:
    """Say what a setting is called; nothing if it is none, or off."""
    if value is None or value is False:
        return ""
    name = setting.replace("_", " ")
    rule = name if value is True else f"{'no' if value == 'none' else value} {name}"
    return WORDS.get(f"{setting} {value}", WORDS.get(setting, rule)).format(value)


def of_ledger(group: Group) -> bool:
    """Whether runs belong to the ledger: nothing but parts was changed."""
    run, known = group.first, {*PARTS, *ALSO, "steps", "model"}
    parted = run.task == "text" and group.own and run.of_parts
    return parted and run.changes.keys() <= known


def built_with(group: Group) -> dict[str, Any]:
    """Name the parts of some runs that are not a GPT's."""
    changed = group.first.changes.items()
    return {name: x for name, x in changed if name not in ("steps", "model")}


def differences(group: Group, base: Group) -> list[float]:
    """Compute the loss of each seed minus that of the same seed of the base."""
    losses = {run.seed: run[LOSS] for run in base}
    return [run[LOSS] - losses[run.seed] for run in group if run.seed in losses]


def verdict(apart: Sequence[float]) -> str:
    """Say whether a difference shows: whether its interval is on one side of 0."""
    if len(apart) < 2:
        return MISSING
    mean, half = paired(apart)
    return KINDS[(mean - half > 0) - (mean + half < 0) + 1]


def ledger(groups: Sequence[Group]) -> list[Row]:
    """Gather the rows: those of the GPT first, each base's sorted by difference."""
    parted = [(built_with(g), g) for g in groups if of_ledger(g)]

    def same(parts: dict[str, Any]) -> list[Group]:
        """Return the runs with these parts, of all numbers of steps."""
        return [g for others, g in parted if others == parts]

    bases = {name: same(base) for name, base in BASES.items()}
    if not all(bases.values()):
        return []
    most, rows = bases["gpt"][0].first.steps, []
    for parts, g in parted:
        if g.first.steps == most and parts != BASES["gpt"]:
            at = nearest(parts)
            base = next((x for x in bases[at] if x.first.steps == most), Group())
            names, timed = name_of(BASES[at], parts), _timed(g, same(parts))
            rows.append(Row(*names, at, g, base, timed, _timed(base, bases[at])))
    return sorted(rows, key=lambda r: (list(BASES).index(r.at), r.mean))


def nearest(changed: dict[str, Any]) -> str:
    """Name the base from which the fewest settings differ; of today's the GPT."""
    if changed == BASES["today"]:
        return "gpt"

    def distance(name: str) -> int:
        base = BASES[name]
        return sum(base.get(n) != changed.get(n) for n in base.keys() | changed.keys())

    return min(BASES, key=distance)


def _timed(runs: Group, same: Iterable[Group]) -> Group:
    """Choose the runs that took the time of the GPT's steps."""
    took = runs.values(TIME)
    if not took:
        return Group()
    if abs(round(statistics.mean(took), 2) - 1) <= CLOSE + 1e-9:  # as the table has it
        return runs
    wanted = runs.first.steps / statistics.mean(took)
    near = [g for g in same if abs(g.first.steps / wanted - 1) <= CLOSE]
    return near[0] if near else Group()


def _told(values: Sequence[float]) -> str:
    if len(values) < 2:
        return signed(values[0]) if values else MISSING
    mean, half = paired(values)
    return f"{signed(mean)}{SPACE}±{SPACE}{half:.3f}"


def table(rows: Iterable[Row]) -> str:
    """Write the table of some rows."""
    columns = {
        "put in": lambda r: r.name,
        "in place of": lambda r: r.instead or MISSING,
        "loss": lambda r: spread(r.runs.values(LOSS)),
        "difference": lambda r: _told(r.apart),
        "": lambda r: verdict(r.apart),
        "parameters": lambda r: f"{r.runs.first['result.parameters']:,}",
        "step": lambda r: mean(TIME, ".2f")(r.runs),
        "equal time": lambda r: _told(differences(r.timed, r.base_timed)),
    }
    return write_table(columns, rows, left=["in place of"])


def loss(group: Group) -> str:
    """Write the mean of the loss, and in brackets the lowest and the highest seed."""
    return spread(group.values(LOSS)).replace("<br>", " ")


def named(rows: Iterable[Row], kind: str) -> str:
    """List the rows of which the interval says so."""
    found = [
        f"{r.name}{' in place of ' * bool(r.instead)}{r.instead}"
        f"{' in the block of today' * (r.at == 'today')} ({signed(r.mean)})"
        for r in rows
        if verdict(r.apart) == kind
    ]
    return "; ".join(found) or "nothing"


def unsteady(rows: Iterable[Row]) -> list[str]:
    """List rows that do not show as their seeds end far apart, and where they end."""
    told = []
    for r in (row for row in rows if verdict(row.apart) == "does not show"):
        ends, base = (group.values(LOSS) for group in (r.runs, r.base))
        if max(ends) - min(ends) > UNSTEADY * (max(base) - min(base)) > 0:
            above = ", each above all of the base's" * (min(ends) > max(base))
            told.append(f"{r.name}, {min(ends):.3f} to {max(ends):.3f}{above}")
    return told


def drawn(rows: Iterable[Row]) -> tuple[list[tuple[str, float, float]], list[str]]:
    """Give the points of the picture, and name those that are too far to be drawn."""
    near, far = [], []
    for r in rows:
        if len(r.apart) > 1 and abs(r.mean) <= SEEN:
            mean, half = paired(r.apart)
            name = fold(r.name + ", today" * (r.at == "today"), 32)
            near.append((name, mean, half))
        elif len(r.apart) > 1:
            far.append(f"{r.name} {signed(r.mean)}")
    return near, far


def every_group(rows: Sequence[Row]) -> list[Group]:
    """List the runs of all rows, the GPT's, and those of equal time."""
    timed = [r.timed for r in rows if r.timed and r.timed is not r.runs]
    return [*(r.runs for r in rows), rows[0].base, *timed]
