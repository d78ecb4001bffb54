"""The page of results is made from runs, and says what they say."""

import copy
import itertools
import json
import re
from pathlib import Path

import pytest

from engine import results
from engine.__main__ import main
from engine.results.groups import grouped
from engine.results.kept import OWN, training
from engine.results.kept import Run as KeptRun
from engine.tables import KeptError
from tformer.models.families import gpt2
from tformer.runs.folder import RunFolder
from tformer.runs.run import Run
from tformer.runs.settings import RunSettings

DOCS = Path(results.__file__).parents[2]
KEPT = results.kept_results(DOCS)
GROUPS = grouped(KEPT)
GOALS = {"copy": 1.0, "reverse": 0.99, "addition": 0.99}
GOALS |= {"number-words": 0.999, "dates": 0.999}


def test_the_page_is_what_the_command_writes():
    """Who edits a number by hand fails here."""
    assert (DOCS / results.PAGE).read_text("utf-8") == results.page(DOCS)


def test_the_goals_are_reached_with_three_seeds_at_least():
    presets = {g.first.task: g for g in GROUPS if g.own and not g.first.changes}
    for task, least in GOALS.items():
        whole = presets[task]
        assert len({run.seed for run in whole}) == len(whole) >= 3
        assert whole.mean("result.test_exact_match") >= least
        assert all(run["result.test_pairs"] >= 2000 for run in whole)
    assert all(run["result.cpu_seconds"] <= 600 for run in presets["dates"])


def test_shakespeare_is_no_worse_than_nanogpt_says():
    texts = [k for k in KEPT if k.task == "text" and k["settings.model"] == "gpt"]
    texts = [k for k in texts if "steps" not in k.changes]
    assert len(texts) >= 5
    sizes = {"num_layers": 4, "d_model": 128, "max_len": 64, "batch_size": 12}
    model = gpt2.build(gpt2.SIZES["shakespeare-cpu"])  # 65 characters, no other token
    plain = sum(p.numel() for p in model.parameters())
    for kept in texts:
        assert {name: kept["settings"][name] for name in sizes} == sizes
        assert kept["settings"]["steps"] == 2000
        more = kept["result"]["parameters"] - plain
        if kept.model == OWN:
            assert kept["result"]["test_loss"] <= 1.88
            assert more == 3 * kept["settings"]["d_model"]
        else:
            assert more == 0


def test_no_path_of_a_machine_is_kept():
    for kept in KEPT:
        asked = (each.get("asked.files", []) for each in kept.evaluations.values())
        for file in [*kept["settings.files"], *itertools.chain(*asked)]:
            assert Path(file).name == file


def test_a_number_of_a_run_is_on_the_page(tmp_path):
    """From the run to the page, with a run so small that it takes a second."""
    sizes = {"d_model": 10, "num_heads": 2, "num_layers": 1, "d_ff": 14}
    few = {"examples": 90, "steps": 12, "warmup_steps": 3, "evaluate_every": 4}
    settings = RunSettings.of(
        "copy", seed=5, test_examples=7, evaluate_examples=5, **sizes, **few
    )
    folder = RunFolder.create(tmp_path / "run", settings)
    result = Run(folder, progress=False).train()
    results.write(tmp_path, [tmp_path / "run"])
    (file,) = (tmp_path / "results").iterdir()
    kept = json.loads(file.read_text())
    assert kept["result"] == result
    assert [look["step"] for look in kept["looks"]] == [4, 8, 12]
    assert KeptRun(kept, "").changes["d_ff"] == 14
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert kept["training"]["loss"] == pytest.approx(sum(losses) / 12)
    text = (tmp_path / "results.md").read_text()
    (command,) = re.findall(r"^tformer train(?:.*\\\n)*.*", text, re.MULTILINE)
    assert max(map(len, command.splitlines())) <= 88
    assert "tformer train copy --d-model 10" in command
    assert "--seed 5" in command
    # The row of the table is there once the run is the preset's.
    kept["settings"] = {**KEPT[0]["settings"], "task": "copy", "without": []}
    plain = copy.deepcopy(kept)
    preset = RunSettings.of("copy", seed=5)
    plain["settings"] = json.loads(json.dumps(preset.__dict__))
    plain["result"]["test_exact_match"] = 0.4321
    plain["training"]["loss"] = 0.01234
    plain["training"]["tokens_per_cpu_second"] = 98765.4
    file.write_text(json.dumps(plain))
    page = results.page(tmp_path)
    assert "43.21\u00a0%" in page
    assert "| 0.012 | 98,765 |" in page


def test_a_field_that_is_not_there_is_named_with_its_file(tmp_path):
    (tmp_path / "results").mkdir()
    kept = json.loads((DOCS / "results/dates-0.json").read_text())
    del kept["result"]["test_pairs"]
    (tmp_path / "results/dates-0.json").write_text(json.dumps(kept))
    said = r"results/dates-0\.json: there is no result.test_pairs"
    with pytest.raises(KeptError, match=said):
        results.write(tmp_path)


@pytest.mark.parametrize("command", ["results", "speed"])
def test_a_file_that_is_torn_is_named_on_the_command_line(
    tmp_path, monkeypatch, capsys, command
):
    folder = tmp_path / "docs" / command
    folder.mkdir(parents=True)
    (folder / "torn.json").write_text('{"rows": [')
    project = type("Here", (), {"docs": tmp_path / "docs"})
    monkeypatch.setattr("engine.__main__.Project.find", lambda _: project)
    with pytest.raises(SystemExit) as end:
        main([command])
    assert end.value.code == 2
    assert f"{command}/torn.json: it is no JSON" in capsys.readouterr().err


def test_the_speed_is_that_of_the_steps_alone():
    """The time of a look, and of the beginning, is nobody's training."""
    lines = [
        {"step": 1, "loss": 4.0, "tokens": 10, "cpu_seconds": 9.0},
        {"step": 2, "loss": 3.0, "tokens": 20, "cpu_seconds": 10.0},
        {"step": 2, "validation_loss": 3.0},
        {"step": 3, "loss": 2.0, "tokens": 999, "cpu_seconds": 60.0},
        {"step": 4, "loss": 1.0, "tokens": 40, "cpu_seconds": 62.0},
    ]
    told = training(lines)
    assert told["tokens_per_cpu_second"] == pytest.approx((20 + 40) / (1 + 2))
    assert told["tokens"] == 1069
    assert told["loss"] == pytest.approx(2.5)


def test_the_translation_is_better_than_a_published_one():
    runs = [k for k in KEPT if k.task == "pairs" and k.model == OWN]
    assert runs
    for kept in runs:
        test = kept["evaluations"]["test-beams-5"]
        assert test["asked"]["files"] == ["test.de", "test.en"]
        assert test["result"]["bleu"] > 37
        assert "tok:13a" in test["result"]["signature"]
        # The length penalty is the one that was best on the validation.
        validation = [
            (each["result"]["bleu"], each["asked"]["length_penalty"])
            for name, each in kept["evaluations"].items()
            if name.startswith("validation-beams")
        ]
        assert len(validation) > 1
        assert max(validation)[1] == test["asked"]["length_penalty"]
