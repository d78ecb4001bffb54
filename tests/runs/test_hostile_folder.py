"""The folder of a run that somebody else has made: it writes nowhere but in itself."""

import os
from pathlib import Path

import pytest

from small_run import (
    SHORT,
    begin_or_resume,
    small_settings,
    small_text_settings,
    train_here,
)
from tformer.files import open_new
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.metrics import Metrics, read_metrics
from tformer.runs.run import Run

FILES = ["metrics.jsonl", "result.json", "model/config.json", "model/model.safetensors"]
DRAWINGS = ["loss.svg", "learning_rate.svg", "attention.svg"]
DEEP = "[" * 200_000


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


class TestLinks:
    @pytest.mark.parametrize("end", [".new", ""])
    def test_no_file_is_written_through_a_link(self, stopped, victim, end, drawings):
        names = [*FILES, *DRAWINGS]
        if not end:
            names.remove("model/config.json")  # which see below
        for name in names:
            path = stopped / f"{name}{end}"
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            path.symlink_to(os.path.relpath(victim, path.parent))
        train_here(stopped, SHORT)
        assert victim.read_text() == "precious"
        for name in names:
            assert (stopped / name).is_file()
            assert not (stopped / name).is_symlink()

    @pytest.mark.parametrize("name", ["loss.svg", "attention.svg"])
    def test_a_drawing_that_cannot_be_written_is_told(self, stopped, name, drawings):
        """As where the disk is full just then."""
        (stopped / name).unlink(missing_ok=True)
        (stopped / name).mkdir()
        with pytest.warns(UserWarning, match=f"a drawing was left out: .*{name}"):
            result = train_here(stopped, SHORT)
        assert result["steps"] == 12

    def test_what_is_no_manifest_is_neither_followed_nor_replaced(
        self, stopped, victim
    ):
        (stopped / "model").mkdir()
        (stopped / "model/config.json").symlink_to(victim)
        with pytest.raises(FileExistsError, match="is no checkpoint's"):
            train_here(stopped, SHORT)
        assert victim.read_text() == "precious"
        (stopped / "model/config.json").unlink()
        assert train_here(stopped, SHORT)["steps"] == 12

    def test_nor_are_the_data(self, tmp_path, victim):
        path = tmp_path / "run"
        folder = RunFolder.create(path, small_text_settings(tmp_path))
        (path / "data").mkdir()
        for name in ("tokens.bin", "tokens.bin.json", "vocabulary.json"):
            (path / f"data/{name}.new").symlink_to(victim)
        Run(folder, progress=False)
        assert victim.read_text() == "precious"

    @pytest.mark.parametrize("name", ["checkpoints", "data", "model"])
    def test_a_folder_that_is_a_link_is_refused(self, stopped, tmp_path, name):
        other = tmp_path / "other"
        for each in ("step-00000001", "step-00000002", ".a.new", ".b.old"):
            (other / each).mkdir(parents=True)
        if (stopped / name).exists():
            (stopped / name).rename(tmp_path / "gone")
        (stopped / name).symlink_to(other)
        with pytest.raises(RunError, match=f"{stopped / name} is a link"):
            train_here(stopped, SHORT)
        assert len(list(other.iterdir())) == 4

    def test_nor_one_that_comes_while_the_run_goes_on(self, stopped, tmp_path):
        """In a folder of checkpoints that is another run's, that one's would go."""
        path = tmp_path / "second"
        training = begin_or_resume(path, small_settings(steps=12, keep=1))

        def swap(report):
            if report.step == 5:
                (path / "checkpoints").rename(tmp_path / "gone")
                (path / "checkpoints").symlink_to(stopped / "checkpoints")

        training.callback = swap
        with pytest.raises(RunError, match="checkpoints is a link"):
            training.train()
        names = {path.name for path in (stopped / "checkpoints").iterdir()}
        assert names == {"step-00000006", "step-00000007"}

    def test_a_lock_that_is_a_link_is_refused(self, stopped, victim):
        (stopped / "lock").unlink()
        (stopped / "lock").symlink_to(victim)
        with pytest.raises(RunError, match="lock is a link"):
            train_here(stopped, SHORT)
        assert victim.read_text() == "precious"

    @pytest.mark.parametrize("name", [".step-00000009.new", ".step-00000006.old"])
    def test_a_checkpoint_that_is_a_link_goes_and_not_what_it_names(
        self, stopped, tmp_path, name
    ):
        other = tmp_path / "other"
        other.mkdir()
        (other / "letter.txt").write_text("dear")
        (stopped / "checkpoints" / name).symlink_to(other)
        train_here(stopped, SHORT)
        assert (other / "letter.txt").read_text() == "dear"
        names = {path.name for path in (stopped / "checkpoints").iterdir()}
        assert names == {"step-00000009", "step-00000012"}

    def test_a_new_file_is_opened_where_nothing_is(self, tmp_path, victim):
        for target in (victim, tmp_path / "nothing"):
            path = tmp_path / "new"
            path.unlink(missing_ok=True)
            path.symlink_to(target)
            with open_new(path) as file:
                file.write(b"abc")
            assert path.read_bytes() == b"abc"
        assert victim.read_text() == "precious"
        assert not (tmp_path / "nothing").exists()


class TestValues:
    def test_brackets_in_brackets_are_no_config(self, tmp_path):
        folder = RunFolder.create(tmp_path / "run", small_settings())
        folder.config.write_text(DEEP)
        with pytest.raises(ValueError, match=r"config.json is not JSON, or truncated"):
            folder.settings()

    def test_brackets_in_brackets_are_no_metrics(self, tmp_path):
        path = tmp_path / "metrics.jsonl"
        path.write_text(f'{{"step": 1}}\n{{"step": 2, "loss": {DEEP}\n{{"step": 3}}\n')
        assert read_metrics(path) == [{"step": 1}, {"step": 3}]

    @pytest.mark.parametrize("depth", range(900, 1000, 33))
    def test_a_line_that_can_just_be_read_is_kept_as_it_is(self, tmp_path, depth):
        path = tmp_path / "metrics.jsonl"
        line = f'{{"step": 1, "x": {"[" * depth}{"]" * depth}}}\n'
        path.write_text(line + '{"step": 9}\n')
        Metrics(path, start=1).close()
        assert path.read_text() in (line, "")  # "" where it is too deep to be read

    @pytest.mark.parametrize(
        "time", ["null", '"3"', "true", "1e999", "-5", "1" + "0" * 400, "NaN"]
    )
    def test_a_time_that_is_none_counts_nothing(self, tmp_path, time):
        path = tmp_path / "metrics.jsonl"
        lines = '{{"step": 1, "seconds": 3.5}}\n{{"step": 2, "seconds": {}}}\n'
        path.write_text(lines.format(time))
        metrics = Metrics(path, start=2)
        assert 3.5 <= metrics.seconds()["seconds"] < 4.5
        assert 0 <= metrics.seconds()["cpu_seconds"] < 1
        metrics.close()

    def test_a_loss_that_is_none_spoils_a_drawing_only(self, tmp_path, drawings):
        path = tmp_path / "run"
        run = begin_or_resume(path, small_settings(steps=6))

        def spoil(report):
            if report.step == 3:
                with (path / "metrics.jsonl").open("a") as file:
                    file.write('{"step": 3, "loss": []}\n')

        run.callback = spoil
        with pytest.warns(UserWarning, match="a drawing was left out"):
            assert run.train()["steps"] == 6


def test_names_of_checkpoints_are_numbers(tmp_path):
    from tformer.runs.checkpoints import refusal, saved_states

    for name in ("step-100000000", "step-99999999", "step-٣", "step-1x"):
        (tmp_path / name).mkdir()
    names = [path.name for path in saved_states(Path(tmp_path))]
    assert names == ["step-99999999", "step-100000000"]
    said = str(refusal(tmp_path / "step-100000000", ValueError("it is damaged")))
    assert "Remove it to go on from step-99999999, the one before it" in said
    assert "Remove" not in str(refusal(tmp_path / "step-99999999", ValueError()))
