"""A translation, measured by BLEU."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

from engine.results.groups import COST, OWN, Group, cost, machines, model, steps, task
from engine.results.models import TITLES
from engine.results.numbers import MISSING, table

SHOWN = 6
TEXTS = {"test": "test of 2016", "val": "validation"}  # what a file is called for
# What a tutorial that many have read publishes for the same data: B. Trevett,
# pytorch-seq2seq, 6 - Attention is All You Need. Words in lower case, cut by spaCy.
TUTORIAL = {"Transformer": 36.09, "convolutional": 33.3, "GRU with attention": 28.2}
TUTORIAL_PARAMETERS = 9_038_853


def section(groups: Sequence[Group]) -> str:
    """Write the tables of the translation."""
    chosen = [g for g in groups if task(g) == "pairs"]
    trained = [g for g in chosen if model(g[0]) == OWN]
    if not trained:
        return ""
    rows = [
        row
        for g in (*trained, *[g for g in chosen if g not in trained])
        for run in g
        for row in _bleu(run)
    ]
    rows.sort(key=lambda row: row[1] == TEXTS["val"])
    run = trained[0][0]
    s = run["settings"]
    published = "; ".join(f"{name} {bleu:g}" for name, bleu in TUTORIAL.items())
    text = (
        "\n## A translation { #translation }\n\nGerman into English, on the captions "
        "of Multi30k: 29,000 pairs to train on, 1,014 for validation, 1,000 in the "
        f"test of 2016. {s['num_layers']} + {s['num_layers']} layers of width "
        f"{s['d_model']}, a vocabulary of {s['vocab_size']:,} byte pairs for both "
        f"languages, learned from the training alone; {steps(trained[0]):,} steps, "
        f"{len(trained[0])} seed{'s'[: len(trained[0]) != 1]}. This task is not solved "
        "by any model. All choices were made on the validation texts. *BLEU* scores a "
        "translation by the words and groups of words that it shares with that of a "
        "person, from 0 to 100. It is sacreBLEU's, on the texts as they are, upper "
        "case and punctuation included; ± is half of its 95 % interval, from 1,000 "
        "resamples of the sentences. Another seed would differ too.\n\n"
    )
    told = (
        "\nA tutorial that many have read (B. Trevett, pytorch-seq2seq, part 6) "
        f"publishes for the same test: {published}; its Transformer has "
        f"{TUTORIAL_PARAMETERS:,} parameters. It puts all words into lower case and "
        "cuts them with spaCy, so its BLEU and this one are not the same measure.\n\n"
    )
    spent = [
        [f"seed {run['settings']['seed']}", *cost([run])] for g in trained for run in g
    ]
    return (
        text
        + table(["written by", "text", "BLEU", "±", "seed"], rows, right=range(2, 5))
        + f"\nSignature: `{_signature(run)}`.\n"
        + told
        + table(["training", *COST], spent, right=range(1, 5))
        + "\nThe training loss counts smoothed labels and dropout; without both, the "
        f"loss on the validation is {run['looks'][-1]['validation_loss']:.2f}.\n"
        + _processes(run)
        + machines(trained)
        + _examples(run)
    )


def _bleu(run: dict[str, Any]) -> list[list[str]]:
    """Return a row for each text that a run translated, and each way of writing."""
    found = []
    for each in run.get("evaluations", {}).values():
        if "bleu" not in each["result"]:
            continue
        asked, result = each["asked"], each["result"]
        stem = asked["files"][0].partition(".")[0]
        beams, half = asked.get("beams", 1), result.get("bleu_interval")
        how, seed = TITLES[model(run)], MISSING
        if model(run) == OWN:
            how += ", greedy" if beams == 1 else f", {beams} beams"
            if beams > 1:
                how += f", length penalty {asked['length_penalty']:g}"
            seed = str(run["settings"]["seed"])
        told = MISSING if half is None else f"{half:.1f}"
        row = [how, TEXTS.get(stem, stem), f"{result['bleu']:.1f}", told, seed]
        found.append((beams, row))
    return [row for _, row in sorted(found)]


def _processes(run: dict[str, Any]) -> str:
    count = run["result"]["machine"].get("processes", 1)
    if count == 1:
        return ""
    return (
        f"\nThe run ended on {count} processes, each with a part of every batch: time "
        "and speed are those of the first alone.\n"
    )


def _signature(run: dict[str, Any]) -> str:
    evaluations = run.get("evaluations", {}).values()
    found = {e["result"]["signature"] for e in evaluations if "bleu" in e["result"]}
    return "`, `".join(sorted(found)) or MISSING


def _examples(run: dict[str, Any]) -> str:
    """Show what it writes where that is not what a person wrote."""
    for name, each in run.get("evaluations", {}).items():
        if name.startswith("test") and each.get("mistakes"):
            shown = [
                f"- *{_plain(m['source'])}*<br>\n"
                f"  A person: {_plain(m['target'])}<br>\n"
                f"  The model: {_marked(m['target'], m['written'])}"
                for m in each["mistakes"][:SHOWN]
            ]
            return (
                "\nThe first sentences of the test where it does not write what the "
                "person did. Its other words are in bold.\n\n" + "\n".join(shown) + "\n"
            )
    return ""


def _plain(text: str) -> str:
    """Write a text of a file so that Markdown takes it as it is."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text) or "(nothing)"


def _marked(right: str, written: str) -> str:
    """Write a text, with the words in bold that another has not."""
    there, words = right.split(), written.split()
    match = difflib.SequenceMatcher(None, there, words, autojunk=False)
    parts = []
    for kind, _, _, first, last in match.get_opcodes():
        text = _plain(" ".join(words[first:last])) if first < last else ""
        if text:
            parts.append(text if kind == "equal" else f"**{text}**")
    return " ".join(parts) or "(nothing)"
