"""Commands on folders that others have made or use, and beside peers."""

import os
import shutil

import pytest
import torch.distributed as dist

from tformer.runs.folder import RunFolder
from tformer.runs.settings import RunSettings

DEEP = "[" * 200_000


@pytest.fixture
def copied(runs, tmp_path):
    """A finished run, to be changed."""
    return shutil.copytree(runs["reverse"], tmp_path / "run")


@pytest.mark.parametrize(
    "words",
    [
        ["translate", "reverse", "abc"],
        ["generate", "gpt", "--max-new-tokens", 3],
        ["evaluate", "reverse", "--count", 3],
        ["attend", "reverse", "abc", "-o", "a.svg"],
        ["info", "reverse"],
    ],
)
def test_no_command_waits_for_peers(tformer, runs, tmp_path, monkeypatch, words):
    """Variables that torchrun sets stay in the shells that it starts."""

    def refuse(*_, **__):
        raise AssertionError("it waits for other processes")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dist, "init_process_group", refuse)
    peers = "RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1"
    for variable in peers.split():
        monkeypatch.setenv(*variable.split("="))
    command, name, *rest = words
    assert tformer(command, runs[name], *rest).code == 0


class TestTrain:
    def test_a_folder_of_the_user_outlives_a_run_that_fails(
        self, tformer, small, tmp_path
    ):
        huge = small(d_model=10**7, d_ff=10**7)
        said = tformer("train", "copy", *huge, "-o", tmp_path)
        assert (said.code, "not enough memory" in said.err) == (1, True)
        assert list(tmp_path.iterdir()) == []

    def test_a_run_that_another_process_begins_outlives_this_one(
        self, tformer, small, tmp_path
    ):
        other = RunFolder.create(tmp_path, RunSettings.of("copy"))
        before = other.config.read_bytes()
        for words in (["copy", *small(), "-o", tmp_path], ["--resume", tmp_path]):
            assert tformer("train", *words).code == 1
            assert other.config.read_bytes() == before
        assert "another process is training here" in tformer("train", *words).err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such pipes on Windows")
class TestEndless:
    """No file of a folder is read that may have no end, as a pipe or a device."""

    @pytest.fixture(params=["a pipe", "a link to a pipe"])
    def endless(self, request):
        """Put a pipe in the place of a file: who opened it would wait for ever."""

        def replace(path):
            path.unlink()
            place = path.with_name("pipe") if "link" in request.param else path
            os.mkfifo(place)
            if place != path:
                path.symlink_to(place)

        return replace

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("metrics.jsonl", ["info"]),
            ("result.json", ["train", "--resume"]),
            ("model/config.json", ["evaluate"]),
            ("model/model.safetensors", ["evaluate"]),
        ],
    )
    def test_of_a_finished_run(self, tformer, copied, endless, name, words):
        endless(copied / name)
        said = tformer(*words, copied)
        assert (said.code, "is not a regular file" in said.err) == (1, True)
        assert name in said.err

    @pytest.mark.parametrize("name", ["state.json", "training.safetensors"])
    def test_of_a_checkpoint(self, tformer, copied, endless, name):
        (copied / "result.json").unlink()
        newest = max((copied / "checkpoints").iterdir())
        endless(newest / name)
        said = tformer("train", "--resume", copied)
        assert (said.code, "is not a regular file" in said.err) == (1, True)
