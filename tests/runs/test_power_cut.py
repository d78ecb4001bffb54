"""A power cut: what was renamed is on the disk, and not only in the system's memory."""

import os
from pathlib import Path

import pytest

from small_run import small_text_settings
from tformer.runs.folder import RunFolder
from tformer.runs.run import Run, Stopped
from tformer.training.checkpoint import save_checkpoint


@pytest.mark.skipif(os.name == "nt", reason="Windows waits for no folder")
@pytest.mark.parametrize("steps", [5, 12])
def test_a_power_cut_takes_no_name_away(tmp_path, monkeypatch, steps):
    """Each folder that got a name is waited for after it: the name is on the disk."""
    waiting: set[Path] = set()
    fsync, replace, rename, mkdir = os.fsync, os.replace, os.rename, os.mkdir

    def waited(handle):
        fsync(handle)
        now = os.fstat(handle)
        waiting.difference_update(
            p for p in [*waiting] if now.st_ino == p.stat().st_ino
        )

    def named(call):
        def note(*paths, **options):
            call(*paths, **options)
            if not str(paths[-1]).endswith((".old", ".new", ".svg")):
                waiting.add(Path(paths[-1]).parent)

        return note

    monkeypatch.setattr(os, "fsync", waited)
    for name, call in (("replace", replace), ("rename", rename)):
        monkeypatch.setattr(os, name, named(call))
    monkeypatch.setattr(os, "mkdir", lambda path, *_: named(mkdir)(path))
    path = tmp_path / "new" / "run"
    settings = small_text_settings(tmp_path)
    folder = RunFolder.create(path, settings)
    assert not waiting
    training = Run(folder, progress=False)
    training.callback = lambda report: report.step == steps and training.stop()
    if steps < settings.steps:
        with pytest.raises(Stopped):
            training.train()
        assert (path / "checkpoints/step-00000005").is_dir()
    else:
        training.train()
        save_checkpoint(tmp_path / "other/model", training.model)
    assert not waiting
