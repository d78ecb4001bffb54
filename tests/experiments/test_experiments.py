"""The experiments run the code of their chapters, and kept a number for each seed."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from chapters import functions_of, keep

HERE = Path(__file__).parent
MEAN = re.compile(r"\d+\.\d+ ± \d+\.\d+")
CHAPTERS = {
    "adapting": "adapting.md",
    "balance": "balance.md",
    "block_today": "block-today.md",
    "calibrated": "gptq.md",
    "composition": "what-a-head-computes.md",
    "convolution": "state-spaces.md",
    "experts": "experts.md",
    "formats": "smaller-numbers.md",
    "induction": "what-a-head-computes.md",
    "longer_texts": "longer-texts.md",
    "mup": "mup.md",
    "muon": "muon.md",
    "needle": "long-context.md",
    "optimizer": "optimizer.md",
    "other_weights": "reading-attention.md",
    "post_training": "post-training.md",
    "raised_base": "longer-texts.md",
    "rank_collapse": "rank-collapse.md",
    "recall": "state-spaces.md",
    "recurrent": "recurrent.md",
    "relative_biases": "relative-biases.md",
    "residuals": "residuals.md",
    "sinks": "attention-sinks.md",
    "sinks_grown": "attention-sinks.md",
    "smaller_numbers": "smaller-numbers.md",
    "sparse": "sparse-attention.md",
    "starting_well": "starting-well.md",
    "teacher_forcing": "teacher-forcing.md",
    "vit": "vit.md",
}


@pytest.mark.parametrize("script", CHAPTERS)
def test_a_chapter_defines_what_its_experiment_calls(script):
    names = functions_of(CHAPTERS[script])
    called = re.findall(r'\bc\["(\w+)"\]', (HERE / f"{script}.py").read_text("utf-8"))
    assert called
    assert {*called} <= names.keys()
    assert "model" not in names, "something was trained"


@pytest.mark.parametrize("script", CHAPTERS)
def test_every_row_has_a_number_for_each_of_five_seeds_or_more(script):
    rows = import_module(f"{script}_kept").KEPT.strip().split("\n")
    names = [tuple(row.split()[:3]) for row in rows]
    assert len({*names}) == len(rows) >= 6
    for row in rows:
        numbers = [float(x) for x in row.split()[3:]]
        assert len(numbers) >= 5, row


@pytest.mark.parametrize("script", CHAPTERS)
def test_its_chapter_prints_the_command_that_runs_it(script):
    """Without the path a script does not find `engine`."""
    source = (HERE / f"{script}.py").read_text("utf-8")
    command = re.search(rf"^    (PYTHONPATH=docs python .*{script}.*)$", source, re.M)
    chapter = (HERE.parents[1] / "docs/chapters" / CHAPTERS[script]).read_text("utf-8")
    printed = re.findall(rf"`([^`\n]*/{script}\.py[^`\n]*)`", chapter)
    assert {*printed} == {command[1]}


def test_a_table_repeats_what_its_page_prints():
    """Each row's means, ± their errors, are in one line of an output, in this order."""
    rows, missing = 0, []
    for page in sorted((HERE.parents[1] / "docs/chapters").glob("*.md")):
        text = page.read_text("utf-8")
        outputs = re.findall(r"```\{\.text \.output\}\n(.*?)```", text, re.DOTALL)
        printed = [" | ".join(MEAN.findall(x)) for x in "".join(outputs).split("\n")]
        for row in re.findall(r"^\|.*±.*$", text, re.MULTILINE):
            rows += 1
            if not any(" | ".join(MEAN.findall(row)) in line for line in printed):
                missing.append(f"{page.name}: {row}")
    assert rows > 20
    assert missing == []


def test_rows_are_kept_seed_after_seed(tmp_path, capsys):
    rows = [("DPO", 0.1, "right", 0.25), ("DPO", 0.1, "right", 0.12345)]
    keep(str(tmp_path / "some.py"), rows)
    names: dict[str, str] = {}
    exec((tmp_path / "some_kept.py").read_text("utf-8"), names)
    assert names["KEPT"] == "\nDPO 0.1 right 0.250 0.123\n"
    assert "right 0.250" in capsys.readouterr().out
