"""What is kept of an evaluation, and where it may not be kept."""

import json
import os

import pytest
import torch
from typer.testing import CliRunner

from tformer.cli.app import app
from tformer.runs.evaluations import save_evaluation, saved_evaluations
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.run import Run
from tformer.runs.settings import RunSettings

SIZES = {"d_model": 10, "num_heads": 2, "num_layers": 1, "d_ff": 14}
FEW = {"examples": 90, "steps": 3, "warmup_steps": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = RunSettings.of(
        "dates", seed=5, test_examples=7, evaluate_examples=5, **SIZES, **FEW
    )
    path = tmp_path_factory.mktemp("runs") / "dates"
    Run(RunFolder.create(path, settings), progress=False).train()
    return path


def evaluate(run, *words):
    return CliRunner().invoke(app, ["evaluate", str(run), "--device", "cpu", *words])


def test_what_is_printed_is_kept_with_wrong_answers(run):
    words = ["--split", "new-years", "--count", "30", "--save", "new-years", "--json"]
    done = evaluate(run, *words)
    assert done.exit_code == 0, done.output
    kept = saved_evaluations(RunFolder.open(run))["new-years"]
    assert kept["result"] == json.loads(done.stdout)
    assert kept["asked"]["split"] == "new-years"
    assert kept["asked"]["count"] == 30
    assert kept["result"]["exact_match"] == 0  # after three steps
    assert len(kept["mistakes"]) == 20
    for mistake in kept["mistakes"]:
        year = int(mistake["target"][:4])
        assert not 1900 <= year <= 2099
        assert mistake["written"] != mistake["target"]
        assert mistake["source"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 101, "a b"])
def test_a_name_leads_nowhere_else(run, name):
    before = sorted(run.rglob("*"))
    done = evaluate(run, "--count", "2", "--save", name)
    assert done.exit_code != 0
    assert isinstance(done.exception, RunError)
    assert f"the name {name!r} must be" in str(done.exception)
    assert sorted(run.rglob("*")) == before


def test_a_model_without_a_folder_has_no_place(run):
    done = evaluate("dates", "--count", "2", "--save", "x")
    assert isinstance(done.exception, RunError)
    assert "--save has no place" in str(done.exception)


@pytest.mark.skipif(os.name == "nt", reason="Windows makes links for few")
def test_no_link_is_followed(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/mine.json").write_text("precious")
    (tmp_path / "run/evaluations").symlink_to(tmp_path / "other")
    kept = {"asked": {}, "result": {}, "mistakes": [], "device": torch.device("cpu")}
    with pytest.raises(RunError, match="evaluations is a link: a run writes into its"):
        save_evaluation(RunFolder(tmp_path / "run"), "mine", **kept)
    assert (tmp_path / "other/mine.json").read_text() == "precious"


def test_a_folder_that_is_a_file_is_named(tmp_path):
    folder = RunFolder(tmp_path)
    (tmp_path / "evaluations").write_text("")
    with pytest.raises(RunError, match=r"x\.json cannot be written"):
        save_evaluation(
            folder, "x", asked={}, result={}, mistakes=[], device=torch.device("cpu")
        )
