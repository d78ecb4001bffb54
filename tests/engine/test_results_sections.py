"""Intervals, commands and sections of the page of results, on numbers made here."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.results import choice, written
from engine.results.columns import COLUMNS
from engine.results.groups import command, folder_name, grouped
from engine.results.kept import Run
from engine.tables import (
    interval,
    items,
    listed,
    number,
    signed,
    span,
    wide,
    wilson,
)
from tformer.runs.settings import RunSettings

ROOT = Path(__file__).parents[2]
MACHINE = {"name": "Z80", "threads": 1, "cores": 2, "torch": "2", "python": "3"}


def result(task="dates", seed=0, *, rate=0.5, evaluations=None, files=(), **more):
    """What is kept of a run that never was."""
    baseline = more.pop("baseline", None)
    parameters = more.pop("parameters", 4321)
    settings = RunSettings.of(task, seed=seed, files=files, **more)
    kept = {
        "settings": json.loads(json.dumps(settings.flat())),
        "result": {
            **({"baseline": baseline} if baseline else {}),
            "parameters": parameters,
            "cpu_seconds": 90.0,
            "test_loss": 1.25,
            "test_bits_per_byte": 1.8,
            "test_pairs": 400,
            "test_exact_match": rate,
            "machine": MACHINE,
        },
        "looks": [{"step": 2, "validation_loss": 1.5, "validation_exact_match": rate}],
        "training": {"loss": 0.25, "tokens": 9, "tokens_per_cpu_second": 1234.5},
    }
    if evaluations:
        kept["evaluations"] = evaluations
    return Run(kept, "made.json")


def asked(rate, **more):
    return {
        "asked": {"files": [], **more},
        "result": {"pairs": 200, "exact_match": rate},
        "mistakes": [{"source": "1 | 2", "target": "2001", "written": "2010"}],
    }


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [  # Newcombe 1998, Statistics in Medicine 17, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson(right, count, low, high):
    found = wilson(right / count, count)
    assert found == pytest.approx((low, high), abs=5e-5)


def test_how_numbers_are_written():
    space = "\u00a0"
    assert number(9e-6, "#.2g") == f"9.0{space}×{space}10⁻⁶"
    assert span([2.0, 1.0], ".1f") == f"1.0{space}to{space}2.0"
    assert span([1.0, 1.0], ".1f") == "1.0"
    assert interval(0.5, 400) == f"45.12{space}to{space}54.88"
    assert choice._code("a|b") == "`a\\|b`"
    assert choice._code("") == "(nothing)"
    words = "number words up to 9,999, six languages"
    assert wide(words) == words.replace(" ", space, 2)
    assert signed(-0.0471) == "−0.047"
    assert signed(-0.0002) == "+0.000"
    assert wide("`a b` c") == "`a b` c"
    numbers = [i / 7 for i in range(40)]
    code = listed(numbers, "x")
    assert max(map(len, code.splitlines())) <= 90
    names = {}
    exec("if True:\n" + code, names)
    assert names["x"] == pytest.approx(numbers, rel=1e-4)
    exec("if True:\n" + items(["a'b", "c"], "y"), names)
    assert names["y"] == ["a'b", "c"]


def test_a_baseline_is_a_group_and_a_name_of_its_own():
    many = {"d_model": 128, "max_len": 128, "precision": "bf16", "warmup_steps": 250}
    many |= {"evaluate_examples": 1014, "batch_tokens": 4096, "learning_rate": 0.0015}
    many |= {"dropout": 0.25, "smoothing": 0.125, "evaluate_every": 700}
    runs = [
        result(seed=0, steps=40),
        result(seed=1, steps=40),
        result(seed=0, steps=40, baseline="gru"),
        result(seed=0, baseline="dateutil", parameters=0),
        result("pairs", files=("a", "b"), seed=3, steps=2800, **many),
        result("pairs", files=("a", "b"), seed=3, steps=2801, **many),
    ]
    assert sorted(map(len, grouped(runs))) == [1, 1, 1, 1, 2]
    names = [run.name for run in runs]
    assert names[:3] == ["dates-40-8-0", "dates-40-8-1", "dates-gru-40-8-0"]
    assert names[3] == "dates-dateutil-0"
    assert re.fullmatch("pairs-[0-9a-f]{8}-3", names[4])  # too many to be told
    assert len({*names}) == len({folder_name(run) for run in runs[:4]}) + 2 == 6


def test_the_interval_is_over_the_test_and_the_span_over_the_seeds():
    (group,) = grouped([result(seed=0, rate=0.4), result(seed=1, rate=0.6)])
    names = ("exact match", "95 % interval", "lowest to highest seed")
    mean, over_test, over_seeds = (COLUMNS[name](group) for name in names)
    assert mean == "50.00\u00a0%"
    assert over_test == interval(0.5, 400)  # not of 800: both seeds had one test
    assert over_seeds == span([40, 60], ".2f")


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (
            result(steps=40, warmup_steps=8, seed=3),
            "tformer train dates --steps 40 --warmup-steps 8 --seed 3 --threads 1 "
            "--out runs/dates-40-steps-3",
        ),
        (
            result(steps=40, warmup_steps=8, baseline="gru"),
            "python tests/baselines/train.py gru --task dates --steps 40 "
            "--warmup-steps 8 --seed 0 --out runs/dates-gru-40-steps-0",
        ),
        (
            result(baseline="dateutil", parameters=0),
            "python tests/baselines/rules.py dateutil --task dates "
            "--out runs/dates-dateutil-0",
        ),
        (
            result("text", files=("a.txt",), baseline="nanoGPT's recipe"),
            "python tests/baselines/nanogpt.py train a.txt --seed 0 "
            "--out runs/text-nanogpt-0",
        ),
        (
            result("pairs", files=("a", "b"), baseline="copy-source", parameters=0),
            "python tests/baselines/rules.py copy-source --files a b "
            "--out runs/pairs-copy-source-0",
        ),
    ],
)
def test_the_command_of_a_run(kept, words):
    assert command(kept) == words


def test_commands_are_taken_by_their_scripts(tmp_path):
    """Words that the page prints are read by the script that they name."""
    _, script, *words = command(result(baseline="dateutil", parameters=0)).split()
    words[words.index("--out") + 1] = str(tmp_path / "run")
    words = [sys.executable, ROOT / script, *words, "--count", "20"]
    subprocess.run(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    assert json.loads((tmp_path / "run/result.json").read_text())["test_pairs"] == 20


def test_every_section_is_there_and_says_what_was_measured():
    splits = {"new-years": asked(0.125), "long-texts": asked(0.25)}
    locales = {"locale-da": asked(0.75), "locale-ko": asked(0.0)}
    bleu = {
        "asked": {"files": ["a.de", "a.en"], "beams": 5, "length_penalty": 1.0},
        "result": {"bleu": 38.25, "bleu_interval": 1.44, "signature": "nrefs:1"},
        "mistakes": [{"source": "Ein", "target": "One", "written": "A"}],
    }
    draws = {"asked": {}, "result": {"losses": [1.9, 1.7]}, "mistakes": []}
    few = {"steps": 40, "warmup_steps": 8}
    page = written(
        [
            result(rate=0.96875, evaluations=splits),
            result(rate=0.9, evaluations=locales, **few),
            result(rate=0.8, baseline="gru", **few),
            result(rate=0.1, without=("mask",), **few),
            result("dates-new-locales", evaluations=locales, **few),
            result("dates-as-typed", evaluations={"ordinals": asked(0.375)}),
            result("text", files=("a",), evaluations={"nanogpt-estimate": draws}),
            result(
                "text", files=("a",), baseline="nanoGPT's recipe", parameters=4321 - 384
            ),
            result("pairs", files=("a", "b"), evaluations={"test": bleu}),
        ]
    )
    anchors = ["tasks", "translation", "models", "harder", "typed", "locales"]
    for anchor in [*anchors, "without", "text", "curves"]:
        assert f"{{ #{anchor} }}" in page
    rates = ("96.88", "80.00", "12.5", "75.0", "37.5", "38.2")
    for said in (*rates, "1.4 |", "`nrefs:1`"):
        assert said in page, said
    assert "1.800<br>(1.700\u00a0to\u00a01.900)" in page
    assert "differ by 384 parameters" in page
    assert "1,234" in page or "1,235" in page
    assert "`1 \\| 2`" in page
    assert "Z80" in page
