"""The folder of a run that somebody else has made: it writes nowhere but in itself."""

import os

import pytest

from small_run import (
    SHORT,
    begin_or_resume,
    go_on,
    small_settings,
    small_text_settings,
    train_here,
)
from tformer.files import open_new
from tformer.runs.checkpoints import refusal, saved_states
from tformer.runs.folder import RunError, RunFolder

FILES = ["metrics.jsonl", "result.json", "model/config.json", "model/model.safetensors"]
DRAWINGS = ["loss.svg", "learning_rate.svg"]


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


@pytest.mark.parametrize("end", [".new", ""])
def test_no_file_is_written_through_a_link(stopped, victim, end, drawings):
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


def test_a_drawing_that_cannot_be_written_is_told(stopped, drawings):
    """As where the disk is full just then."""
    (stopped / "loss.svg").unlink(missing_ok=True)
    (stopped / "loss.svg").mkdir()
    with pytest.warns(UserWarning, match=r"a drawing was left out: .*loss\.svg"):
        result = train_here(stopped, SHORT)
    assert result["steps"] == 12


def test_what_is_no_manifest_is_neither_followed_nor_replaced(stopped, victim):
    (stopped / "model").mkdir()
    (stopped / "model/config.json").symlink_to(victim)
    with pytest.raises(FileExistsError, match="is no checkpoint's"):
        train_here(stopped, SHORT)
    assert victim.read_text() == "precious"
    (stopped / "model/config.json").unlink()
    assert train_here(stopped, SHORT)["steps"] == 12


def test_nor_are_the_data(tmp_path, victim):
    path = tmp_path / "run"
    RunFolder.create(path, small_text_settings(tmp_path, steps=3)).unlock()
    (path / "data").mkdir()
    for name in ("tokens.bin", "tokens.bin.json", "vocabulary.json"):
        (path / f"data/{name}.new").symlink_to(victim)
    go_on(path)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["checkpoints", "data", "model", "lock"])
def test_a_folder_or_a_lock_that_is_a_link_is_refused(stopped, tmp_path, name):
    other = tmp_path / "other"
    for each in ("step-00000001", "step-00000002", ".a.new", ".b.old"):
        (other / each).mkdir(parents=True)
    if (stopped / name).exists():
        (stopped / name).rename(tmp_path / "gone")
    (stopped / name).symlink_to(other)
    with pytest.raises(RunError, match=f"{stopped / name} is a link"):
        train_here(stopped, SHORT)
    assert len(list(other.iterdir())) == 4


def test_metrics_that_lead_to_a_file_that_is_not_there(stopped, tmp_path):
    (stopped / "metrics.jsonl").unlink()
    (stopped / "metrics.jsonl").symlink_to(tmp_path / "nothing")
    with pytest.raises(RunError, match=r"metrics\.jsonl is a link"):
        train_here(stopped, SHORT)
    assert not (tmp_path / "nothing").exists()


def test_nor_one_that_comes_while_the_run_goes_on(stopped, tmp_path):
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


def test_a_checkpoint_that_is_a_link_goes_and_not_what_it_names(stopped, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    for name in (".step-00000009.new", ".step-00000006.old"):
        (stopped / "checkpoints" / name).symlink_to(other)
    train_here(stopped, SHORT)
    assert (other / "letter.txt").read_text() == "dear"
    names = {path.name for path in (stopped / "checkpoints").iterdir()}
    assert names == {"step-00000009", "step-00000012"}


def test_a_new_file_is_opened_where_nothing_is(tmp_path, victim):
    for target in (victim, tmp_path / "nothing"):
        path = tmp_path / "new"
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        with open_new(path) as file:
            file.write(b"abc")
        assert path.read_bytes() == b"abc"
    assert victim.read_text() == "precious"
    assert not (tmp_path / "nothing").exists()


def test_a_loss_that_is_none_spoils_a_drawing_only(tmp_path, drawings):
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
    for name in ("step-100000000", "step-99999999", "step-٣", "step-1x"):
        (tmp_path / name).mkdir()
    names = [path.name for path in saved_states(tmp_path)]
    assert names == ["step-99999999", "step-100000000"]
    said = str(refusal(tmp_path / "step-100000000", ValueError("it is damaged")))
    assert "Remove it to go on from step-99999999, the one before it" in said
    assert "Remove" not in str(refusal(tmp_path / "step-99999999", ValueError()))
