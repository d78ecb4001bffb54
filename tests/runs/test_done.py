"""Runs without checkpoints: one that is done, and one that has lost them."""

import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from small_run import begin_or_resume, change, go_on, small_settings
from tformer.runs.folder import RunError, read_kept_json


class TestDone:
    """A run that is done, and whose checkpoints were removed to make room."""

    @pytest.fixture
    def done(self, whole, tmp_path) -> Path:
        path = Path(shutil.copytree(whole, tmp_path / "run"))
        shutil.rmtree(path / "checkpoints")
        return path

    def test_it_is_not_trained_anew(self, done):
        names = ("metrics.jsonl", "model/model.safetensors", "result.json")
        before = [(done / name).read_bytes() for name in names]
        assert go_on(done) == read_kept_json(done / "result.json")
        assert [(done / name).read_bytes() for name in names] == before

    def test_nor_with_other_settings_in_its_place(self, done):
        before = (done / "model/model.safetensors").read_bytes()
        change(done, d_model=20)
        with pytest.raises(RunError, match=r"d_model 20, but model was ma"):
            go_on(done)
        assert (done / "model/model.safetensors").read_bytes() == before

    def test_nor_where_its_result_is_gone(self, done):
        (done / "result.json").unlink()
        before = (done / "metrics.jsonl").read_bytes()
        with pytest.raises(RunError, match="has a model, and no checkpoint to go on"):
            go_on(done)
        assert (done / "metrics.jsonl").read_bytes() == before

    def test_nor_where_its_manifest_was_changed(self, done):
        manifest = done / "model/config.json"
        manifest.write_text(manifest.read_text().replace('"seed": 0', '"seed": 1'))
        change(done, seed=1)
        with pytest.raises(ValueError, match=r"model/config.json was changed"):
            go_on(done)

    def test_with_a_checkpoint_that_is_not_of_the_last_step_it_goes_on(
        self, whole, tmp_path
    ):
        path = Path(shutil.copytree(whole, tmp_path / "run"))
        shutil.rmtree(path / "checkpoints/step-00000012")
        assert go_on(path) == read_kept_json(path / "result.json")


class TestUnfinished:
    """A run that is not done, and whose checkpoints are gone: a disk not mounted."""

    @pytest.mark.parametrize("left", ["nothing", "an empty folder", "a file"])
    def test_it_is_not_begun_anew_over_its_metrics(self, stopped, left):
        checkpoints = stopped / "checkpoints"
        checkpoints.rename(stopped.parent / "elsewhere")
        if left == "an empty folder":
            checkpoints.mkdir()
        if left == "a file":
            checkpoints.touch()
        before = (stopped / "metrics.jsonl").read_bytes()
        with pytest.raises(
            RunError, match=r"has made 7 steps, and .*checkpoints has no"
        ):
            go_on(stopped)
        assert (stopped / "metrics.jsonl").read_bytes() == before
        if left != "nothing":
            checkpoints.rmdir() if checkpoints.is_dir() else checkpoints.unlink()
        (stopped.parent / "elsewhere").rename(checkpoints)
        assert go_on(stopped)["steps"] == 12

    def test_before_its_first_checkpoint_it_is(self, tmp_path):
        training = begin_or_resume(tmp_path / "run", small_settings(steps=9))
        training.callback = Mock(side_effect=[None, None, ZeroDivisionError])
        with pytest.raises(ZeroDivisionError):
            training.train()
        assert go_on(tmp_path / "run")["steps"] == 9
