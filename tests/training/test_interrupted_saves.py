"""Saving that is killed, or finds the disk full: a whole checkpoint is left."""

import os
from unittest.mock import Mock

import pytest

import tformer.files
from checkpoint_files import make_model, same
from tformer import load_checkpoint, save_checkpoint
from tformer.training import checkpoint


def fill_disk(path):
    """Let the disk be full after some bytes of the config."""
    path.write_text('{"model_type": ')
    raise OSError(28, "the disk is full")


@pytest.mark.parametrize(("renames", "survivor"), [(None, 0), (0, 0), (1, 1)])
def test_stopped_between_the_renames_a_whole_checkpoint_is_left(
    tmp_path, monkeypatch, renames, survivor
):
    """After so many renames; without a number, half a config is left."""
    models = [make_model(0), make_model(1), make_model(2)]
    save_checkpoint(tmp_path, models[0])
    if renames is None:
        (tmp_path / "config.json.new").write_text('{"model_type": "tran')
    else:
        with monkeypatch.context() as patch:
            stops = [os.replace] * renames + [Mock(side_effect=KeyboardInterrupt)]
            patch.setattr(os, "replace", lambda *paths: stops.pop(0)(*paths))
            with pytest.raises(KeyboardInterrupt):
                save_checkpoint(tmp_path, models[1])
    assert same(load_checkpoint(tmp_path).model, models[survivor])

    # And the next save is not misled by what it finds, wherever it is stopped itself.
    with monkeypatch.context() as patch:
        patch.setattr(tformer.files, "open_new", fill_disk)
        with pytest.raises(OSError, match="disk is full"):
            save_checkpoint(tmp_path, models[2])
    assert same(load_checkpoint(tmp_path).model, models[survivor])
    assert len(list(tmp_path.iterdir())) == 2
    save_checkpoint(tmp_path, models[2])
    assert same(load_checkpoint(tmp_path).model, models[2])
    assert len(list(tmp_path.iterdir())) == 2


def test_weights_on_a_full_disk_are_an_error_of_the_system(tmp_path, monkeypatch):
    import safetensors.torch

    full = Mock(side_effect=safetensors.SafetensorError("No space left on device"))
    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(OSError, match=r"model\.safetensors cannot be written: .*space"):
        save_checkpoint(tmp_path, make_model())
    assert not list(tmp_path.iterdir())


def test_the_config_is_read_before_anything_is_replaced(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, make_model(0))
    with monkeypatch.context() as patch:
        write = checkpoint.write_json_beside
        patch.setattr(
            checkpoint, "write_json_beside", lambda path, x: write(path, {**x, "d": 5})
        )
        with pytest.raises(ValueError, match=r"config\.json\.new was changed"):
            save_checkpoint(tmp_path, make_model(1))
    assert same(load_checkpoint(tmp_path).model, make_model(0))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("in_place", [False, True])
def test_weights_that_change_between_hash_and_reading_are_refused(
    tmp_path, monkeypatch, in_place
):
    """As if a training ended while its older model was loaded."""
    path, other = (tmp_path / name / "model.safetensors" for name in "ab")
    for seed, each in enumerate((path, other)):
        save_checkpoint(each.parent, make_model(seed))
    read = checkpoint.matching_manifest

    def then_another(folder):
        found = read(folder)
        if in_place:
            path.write_bytes(other.read_bytes())
        else:
            os.replace(other, path)
        return found

    monkeypatch.setattr(checkpoint, "matching_manifest", then_another)
    with pytest.raises(ValueError, match="was replaced while it was read"):
        load_checkpoint(path.parent)
