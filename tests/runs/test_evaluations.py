"""What is kept of an evaluation, and where it may not be kept."""

import json
import os

import filelock
import pytest
import torch
from typer.testing import CliRunner

from tformer.cli.app import app
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.metrics import save_evaluation, saved_evaluations
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


def save(path, name="mine", **result):
    nothing = {"asked": {}, "mistakes": [], "device": torch.device("cpu")}
    return save_evaluation(RunFolder(path), name, result=result, **nothing)


@pytest.mark.skipif(os.name == "nt", reason="Windows makes links for few")
@pytest.mark.parametrize("name", ["evaluations", "lock"])
def test_no_link_is_followed(tmp_path, name):
    (tmp_path / "run").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "other")
    with pytest.raises(RunError, match=f"{name} is a link: a run writes into its"):
        save(tmp_path / "run")
    assert not list((tmp_path / "other").iterdir())


def test_changed_numbers_are_refused(run):
    """Those of an evaluation, and of the result."""
    evaluate(run, "--count", "2", "--save", "bits")
    path, result = run / "evaluations/bits.json", run / "result.json"
    path.write_text(path.read_text().replace('"count": 2', '"count": 3'))
    with pytest.raises(ValueError, match=r"bits\.json was changed"):
        saved_evaluations(RunFolder.open(run))
    path.unlink()
    assert evaluate_info(run).exit_code == 0
    whole = result.read_bytes()
    result.write_bytes(whole.replace(b'"test_pairs": 7', b'"test_pairs": 8'))
    done = evaluate_info(run)
    result.write_bytes(whole)
    assert "result.json was changed" in str(done.exception)


def evaluate_info(run):
    return CliRunner().invoke(app, ["info", str(run)])


def test_info_says_which_setting_was_changed(run):
    config = run / "config.json"
    text = config.read_text()
    config.write_text(text.replace('"seed": 5', '"seed": 4'))
    with pytest.warns(
        UserWarning, match=r"config.json has seed 4, but step-00000003 w"
    ):
        assert evaluate_info(run).exit_code == 0
    config.write_text(text)


def test_one_that_waits_too_long_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("tformer.runs.metrics.PATIENCE", 0)
    save(tmp_path)
    with (
        filelock.FileLock(tmp_path / "lock"),
        pytest.raises(RunError, match="another process is training here"),
    ):
        save(tmp_path)
