"""The folder of a run: who may write in it, and what is taken away."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from small_run import (
    SHORT,
    begin_or_resume,
    same_run,
    small_settings,
    small_text_settings,
    train_here,
    what_counts,
)
from tformer.runs import data, run
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.run import Run

IN_USE = "another process is training here"


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def is_free(path: Path) -> bool:
    folder = RunFolder.open(path)
    try:
        folder.lock()
    except RunError:
        return False
    folder.unlock()
    return True


class TestLock:
    def test_nobody_else_comes_in_while_the_data_are_read(self, tmp_path, monkeypatch):
        """Two that write the same ids would leave zeros among them."""
        path, write, tried = tmp_path / "run", data.write_token_stream, []

        def write_and_look(*arguments):
            tried.append(None)
            if len(tried) > 1:  # the other one came in
                return None
            before = contents(path)
            with pytest.raises(RunError, match=IN_USE):
                Run(RunFolder.open(path), progress=False).train()
            assert contents(path) == before
            return write(*arguments)

        monkeypatch.setattr(data, "write_token_stream", write_and_look)
        train_here(path, small_text_settings(tmp_path, steps=3))
        assert tried == [None]

    def test_it_is_held_from_the_first_byte_to_the_last(self, tmp_path, monkeypatch):
        path, seen = tmp_path / "run", []

        def look(*_):
            seen.append(is_free(path))

        write = run.write_json
        monkeypatch.setattr(run, "write_json", lambda *a: (look(), write(*a)))
        folder = RunFolder.create(path, small_settings(steps=6))
        look()
        training = Run(folder, progress=False, callback=look)
        training.train()
        assert seen == [False] * 8
        assert is_free(path)
        assert training.train() == training.train()  # it is done, and says so

    @pytest.mark.parametrize("moment", ["before", "while"])
    def test_it_is_given_back_when_the_run_fails(self, tmp_path, moment):
        path = tmp_path / "run"
        folder = RunFolder.create(path, small_settings())
        if moment == "before":
            folder.config.write_text("{")
            with pytest.raises(ValueError, match="is not JSON"):
                Run(folder).train()
        else:
            fail = Mock(side_effect=ZeroDivisionError)
            with pytest.raises(ZeroDivisionError):
                Run(folder, progress=False, callback=fail).train()
        assert is_free(path)


class TestBeginning:
    @pytest.mark.parametrize(
        ("done", "said"), [(False, IN_USE), (True, "has a run in it")]
    )
    def test_of_two_that_begin_at_once_the_faster_keeps_its_files(
        self, tmp_path, monkeypatch, done, said
    ):
        """The slower has looked, and found the folder free, before the faster came."""
        path, mkdir, faster = tmp_path / "run", Path.mkdir, []

        def meanwhile(*arguments, **options):
            monkeypatch.setattr(Path, "mkdir", mkdir)
            faster.append(RunFolder.create(path, small_settings(seed=1)))
            if done:
                faster[0].unlock()
            return mkdir(*arguments, **options)

        monkeypatch.setattr(Path, "mkdir", meanwhile)
        with pytest.raises(RunError, match=said):
            RunFolder.create(path, small_settings(seed=2))
        assert {file.name for file in path.iterdir()} == {"config.json", "lock"}
        assert faster[0].settings().seed == 1
        assert is_free(path) == done

    @pytest.mark.parametrize("left", ["lock", "config.json.new"])
    def test_what_a_kill_leaves_is_no_hindrance(self, tmp_path, left):
        (tmp_path / left).touch()
        assert RunFolder.create(tmp_path, small_settings()).settings().steps == 37

    def test_a_folder_in_use_is_not_overwritten(self, tmp_path):
        (tmp_path / "letter.txt").write_text("dear")
        with pytest.raises(RunError, match="is not empty"):
            RunFolder.create(tmp_path, small_settings())
        with pytest.raises(RunError, match="has no run in it"):
            RunFolder.open(tmp_path)
        with pytest.raises(OSError, match="File exists"):
            RunFolder.create(tmp_path / "letter.txt", small_settings())


class TestDiscard:
    def test_what_this_process_made_goes_and_nothing_else(self, tmp_path):
        (tmp_path / "mine").mkdir()
        settings = small_text_settings(tmp_path, num_heads=3)
        folder = RunFolder.create(tmp_path / "mine/a/run", settings)
        with pytest.raises(ValueError, match="d_model"):
            Run(folder, progress=False).train()
        assert (folder.path / "data").exists()
        folder.discard()
        assert list((tmp_path / "mine").iterdir()) == []
        RunFolder.create(tmp_path / "mine", small_settings()).discard()
        assert list((tmp_path / "mine").iterdir()) == []

    @pytest.mark.parametrize("trains", [False, True])
    def test_a_run_of_somebody_else_stays(self, tmp_path, trains):
        path = tmp_path / "run"
        mine = RunFolder.create(path, small_settings())
        mine.unlock()
        other = RunFolder.open(path)
        if trains:
            other.lock()
        before = contents(path)
        (mine if trains else other).discard()
        assert contents(path) == before

    def test_a_run_that_has_made_a_step_stays(self, tmp_path):
        folder = RunFolder.create(tmp_path / "run", SHORT)
        fail = Mock(side_effect=ZeroDivisionError)
        with pytest.raises(ZeroDivisionError):
            Run(folder, progress=False, callback=fail).train()
        before = contents(tmp_path / "run")
        folder.discard()
        assert contents(tmp_path / "run") == before


class TestMoved:
    @pytest.mark.parametrize("step", [6, 8])
    def test_the_run_stops_and_goes_on_where_it_is_now(self, whole, tmp_path, step):
        path, new = tmp_path / "run", tmp_path / "elsewhere"
        training = begin_or_resume(path, SHORT)
        training.callback = lambda report: report.step == step and path.rename(new)
        with pytest.raises(RunError, match=f"{path} was moved while the run wrote"):
            training.train()
        assert [file.name for file in tmp_path.iterdir()] == ["elsewhere"]
        train_here(new, SHORT)
        same_run(new, whole)

    @pytest.mark.parametrize("late", ["test_scores", "save_checkpoint"])
    def test_at_the_very_end_too(self, stopped, monkeypatch, late):
        """While the model is written it is said after the last file."""
        new, call = stopped.with_name("elsewhere"), getattr(run, late)

        def move(*arguments, **options):
            stopped.rename(new)
            return call(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(run, late, move)
            with pytest.raises(RunError, match="was moved"):
                begin_or_resume(stopped, SHORT).train()
        assert stopped.exists() == (late == "save_checkpoint")
        assert train_here(new, SHORT)["steps"] == 12

    def test_without_its_lock_it_stops_as_others_may_come_in(self, tmp_path):
        path = tmp_path / "run"
        training = begin_or_resume(path, SHORT)

        def other(report):
            if report.step == 4:
                (path / "lock").unlink()
                assert is_free(path)

        training.callback = other
        with pytest.raises(RunError, match="or its lock was removed"):
            training.train()
        assert [line["step"] for line in what_counts(path)] == [1, 2, 3, 4]
