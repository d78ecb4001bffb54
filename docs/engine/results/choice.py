"""Which runs the tables of the page are of, and what it says of them besides.

The functions are called in `page.md.jinja`, with all groups of runs or with some.
"""

import difflib
import re
from collections.abc import Sequence
from typing import Any

from engine.results.columns import COLUMNS, SPLITS, TITLES, title
from engine.results.groups import NANO, Group
from engine.results.kept import OWN, Run
from engine.results.ledger import of_ledger
from engine.tables import MISSING, percent, table, wilson

Groups = Sequence[Group]
TEXTS = {"test": "test of 2016", "val": "validation"}  # what a file is called for
SHOWN, SENTENCES = 4, 6  # wrong answers of a split, and of the translation
BUDGET = 600  # seconds of one processor, looks at the validation text included


def of_task(groups: Groups, task: str, own: bool = False) -> list[Group]:
    """Choose the runs of a task with all parts, by any model or by ours."""
    found = [g for g in groups if g.first.task == task and not g.first.off]
    return [g for g in found if g.own or not own]


def presets(groups: Groups) -> list[Group]:
    """Choose the runs of our model that were made as the preset of a task says."""
    found = [g for g in groups if g.own and not g.first.changes]
    return [g for g in found if g.first.task not in ("text", "pairs")]


def fewest(groups: Groups) -> tuple[int, float]:
    """Return the size of the smallest test, and what it cannot rule out, in percent."""
    least = min(run["result.test_pairs"] for g in groups for run in g)
    return least, 100 * (1 - wilson(1.0, least)[0])


def _as_long(groups: Groups, these: Groups) -> list[Group]:
    """Choose those of as many steps as one of `these`."""
    return [g for g in groups if g.first.steps in {x.first.steps for x in these}]


def models(groups: Groups) -> list[Group]:
    """Choose all models of the dates: ours of as many steps as the others."""
    of_dates = of_task(groups, "dates")
    others = [g for g in of_dates if not g.own]
    ours = [g for g in of_dates if g.own]
    found = others + _as_long(ours, [g for g in others if g.trained])
    return sorted(found, key=_order) if len(found) > 1 else []


def _order(group: Group) -> int:
    return [*TITLES, group.first.model].index(group.first.model)


def harder(groups: Groups) -> list[Group]:
    """Choose those that were asked dates with one thing that the training had not."""
    names = [name for name in SPLITS.values() if name and not name.startswith("locale")]
    found = of_task(groups, "dates")
    found = [g for g in found if any(run.evaluations.keys() & names for run in g)]
    return sorted(found, key=lambda g: (_order(g), -g.first.steps))


def typed(groups: Groups) -> list[Group]:
    """Choose those that learned dates as people type them."""
    return of_task(groups, "dates-as-typed", own=True)


def locales(groups: Groups) -> list[Group]:
    """Choose the runs without four locales, and those with all that are as long."""
    held_out = of_task(groups, "dates-new-locales")
    return held_out + _as_long(of_task(groups, "dates", own=True), held_out)


def without(groups: Groups) -> list[Group]:
    """Choose the dates learned without a part, and those with all that are as long."""
    of_dates = [g for g in groups if g.own and g.first.task == "dates"]
    return _as_long(of_dates, [g for g in of_dates if g.first.off])


def text(groups: Groups) -> list[Group]:
    """Choose our settings for a text, and nanoGPT's own recipe."""
    found = [g for g in of_task(groups, "text") if "steps" not in g.first.changes]
    return [g for g in found if g.first.model == NANO or not g.first.changes]


def more_parameters(groups: Groups) -> int:
    """Return by how many parameters our model is larger than nanoGPT's."""
    sizes = {g.first.model: g.first["result.parameters"] for g in groups}
    return sizes[OWN] - sizes[NANO] if {OWN, NANO} <= sizes.keys() else 0


def others(groups: Groups) -> list[Group]:
    """Choose the runs that are of no row of the ledger."""
    return [g for g in groups if not of_ledger(g)]


def recipes(groups: Groups) -> tuple[list[Group], list[Group], list[Group]]:
    """Choose all recipes, ours and nanoGPT's; none without both of these."""
    found = [g for g in others(groups) if g.first.task == "text"]
    found = [g for g in found if g.mean("result.cpu_seconds") <= BUDGET]
    found.sort(key=lambda g: g.mean("result.test_loss"))
    ours = [g for g in found if g.own and g.first.changes]
    theirs = [g for g in found if g.first.model == NANO]
    theirs.sort(key=lambda g: g.first.steps)
    return (found, ours, theirs) if ours and theirs else ([], [], [])


def points(groups: Groups, column: str, *splits: str) -> list[dict[str, Any]]:
    """Give the numbers of a picture: of each group its rates, with their intervals."""
    found = []
    for g in groups:
        name = str(COLUMNS[column](g)).replace("`", "")
        asked = [g.rates(SPLITS[split]) for split in splits or ("the test",)]
        if all(rates for rates, _ in asked):
            means = [sum(rates) / len(rates) for rates, _ in asked]
            ends = [wilson(m, n) for m, (_, n) in zip(means, asked, strict=True)]
            lows, highs = zip(*ends, strict=True)
            numbers = {"rates": means, "lows": lows, "highs": highs}
            rounded = {key: [round(x, 4) for x in xs] for key, xs in numbers.items()}
            told = f"{name} {percent(means[0], 1)}"
            found.append({"name": name, "told": told, "seeds": asked[0][0], **rounded})
    return found


def curve(group: Group) -> dict[str, list[float]]:
    """Give the numbers of a curve: the exact match of each look, over the seeds."""
    looks = [*zip(*(run["looks"] for run in group), strict=True)]
    at = [[look["validation_exact_match"] for look in each] for each in looks]
    return {
        "steps": [each[0]["step"] for each in looks],
        "means": [round(sum(x) / len(x), 4) for x in at],
        "lows": [min(x) for x in at],
        "highs": [max(x) for x in at],
    }


def locales_read(groups: Groups) -> tuple[str, str, str]:
    """List the locales of which the parser reads all dates, none, and some."""
    found: dict[str, list[str]] = {"all": [], "none": [], "some": []}
    for group in groups:
        if group.first.model == "dateutil":
            counts = group.first.get("result.test_by_locale", {})
            for name, (right, asked) in counts.items():
                kind = "all" if right == asked else "some" if right else "none"
                told = f"{name} {right} of {asked}" if kind == "some" else name
                found[kind].append(told)
    return ", ".join(found["all"]), ", ".join(found["none"]), ", ".join(found["some"])


def wrong_answers(run: Run) -> str:
    """Show wrong answers of a model, a table for each split."""
    columns = {
        "the text": lambda wrong: _code(wrong["source"]),
        "right": lambda wrong: _code(wrong["target"]),
        "written": lambda wrong: _code(wrong["written"]),
    }
    parts = [
        f"{name}:\n\n{table(columns, wrong[:SHOWN], left=columns)}"
        for name, split in SPLITS.items()
        if (wrong := run.get(f"evaluations.{split}.mistakes"))
    ]
    return "\n\n".join(parts)


def _code(text: str) -> str:
    """Write a text that a model read or wrote, in a table: `|` would end the cell."""
    return f"`{text}`".replace("|", "\\|") if text else "(nothing)"


def bleu(groups: Groups) -> str:
    """Write a row for each text that was translated, and each way of writing."""
    rows = [row for g in groups for run in g for row in _translated(run)]
    rows.sort(key=lambda row: row[1] == TEXTS["val"])
    names = ("written by", "text", "BLEU", "±", "seed")
    cells = {name: lambda row, i=i: row[i] for i, name in enumerate(names)}
    return table(cells, rows, left=["text"])


def _translated(run: Run) -> list[list[str]]:
    found = []
    for each in run.evaluations.values():
        if each.get("result.bleu") is None:
            continue
        stem = each["asked.files"][0].partition(".")[0]
        beams, half = each.get("asked.beams", 1), each.get("result.bleu_interval")
        how, seed = title(Group([run])), MISSING
        if run.model == OWN:
            how += ", greedy" if beams == 1 else f", {beams} beams"
            if beams > 1:
                how += f", length penalty {each['asked.length_penalty']:g}"
            seed = str(run.seed)
        told = MISSING if half is None else f"{half:.1f}"
        row = [how, TEXTS.get(stem, stem), f"{each['result.bleu']:.1f}", told, seed]
        found.append((beams, row))
    return [row for _, row in sorted(found)]


def seeds(groups: Groups) -> list[Group]:
    """Make a group of each run."""
    return [Group([run]) for group in groups for run in group]


def signature(run: Run) -> str:
    """Say how BLEU was computed."""
    found = {x.get("result.signature") for x in run.evaluations.values()} - {None}
    return "`, `".join(sorted(found)) or MISSING


def sentences(run: Run) -> list[tuple[str, str, str]]:
    """Choose sentences where it does not write what a person wrote."""
    tests = [x for name, x in run.evaluations.items() if name.startswith("test")]
    wrong: list[Any] = next((x["mistakes"] for x in tests if x["mistakes"]), [])
    return [
        (_plain(m["source"]), _plain(m["target"]), _marked(m["target"], m["written"]))
        for m in wrong[:SENTENCES]
    ]


def _plain(text: str) -> str:
    """Write a text of a file so that Markdown takes it as it is."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text) or "(nothing)"


def _marked(right: str, written: str) -> str:
    """Write a text, with the words in bold that another has not."""
    there, words = right.split(), written.split()
    match = difflib.SequenceMatcher(None, there, words, autojunk=False)
    parts = []
    for kind, _, _, first, last in match.get_opcodes():
        if first < last:
            text = _plain(" ".join(words[first:last]))
            parts.append(text if kind == "equal" else f"**{text}**")
    return " ".join(parts) or "(nothing)"
