"""Files: what a kill may leave, and what is wrong with a file that was changed."""

import hashlib
import json
import os

import pytest

from tformer.files import (
    beside,
    check_sealed,
    read_json,
    sealed,
    sha256_of,
    wait_for_disk,
    write_json,
)


@pytest.mark.parametrize("dies", ["write", "fsync", "replace"])
def test_a_writing_that_dies_leaves_the_old_file(tmp_path, monkeypatch, dies):
    path = tmp_path / "a.json"
    write_json(path, {"a": "old"})

    def die(*_, **__):
        raise OSError("no space left on device")

    if dies == "write":
        monkeypatch.setattr(type(path), "open", die)
    else:
        monkeypatch.setattr(os, dies, die)
    with pytest.raises(OSError, match="no space left"):
        write_json(path, {"a": "new"})
    monkeypatch.undo()
    assert read_json(path) == {"a": "old"}


def test_what_is_no_unicode_leaves_nothing(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_json(tmp_path / "a.json", {"file": "\udcff"})
    assert not list(tmp_path.iterdir())


def test_what_was_sealed_is_held_to_it(tmp_path):
    path, values = tmp_path / "a.json", {"b": [1.5, {"c": None}], "a": "ü"}
    write_json(path, sealed(values))
    check_sealed(path, read_json(path))
    for changed in (values, {**sealed(values), "a": "u"}, {**sealed(values), "d": 1}):
        with pytest.raises(ValueError, match=r"a\.json was changed"):
            check_sealed(path, changed)


def test_what_is_renamed_is_on_the_disk_first_and_the_folder_after(
    tmp_path, monkeypatch
):
    path, events = tmp_path / "a.json", []
    fsync, replace = os.fsync, os.replace

    def note_fsync(handle):
        events.append(os.fstat(handle).st_ino)
        fsync(handle)

    def note_replace(*paths):
        events.append(paths)
        replace(*paths)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    write_json(path, {"ü": 1})
    new = beside(path)
    assert events == [path.stat().st_ino, (new, path), tmp_path.stat().st_ino]
    assert json.loads(path.read_bytes()) == {"ü": 1}
    assert "ü".encode() in path.read_bytes()


def test_waiting_changes_nothing(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    wait_for_disk(path)
    wait_for_disk(tmp_path)
    assert path.read_bytes() == b"abc"
    assert sha256_of(path) == hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(FileNotFoundError):
        wait_for_disk(tmp_path / "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON, or truncated"),
        ('{"format": "x", "n": 1', "is not JSON, or truncated"),
        ("[]", "does not hold an object"),
        ("{}", r"format \(None\) must be 'x'"),
        ('{"format": "y", "n": 1}', r"format \('y'\) must be 'x'"),
        ('{"format": "x"}', "lacks 'n'"),
        ('{"format": "x", "n": "1"}', r"n \('1'\) has a wrong type"),
        ('{"format": "x", "n": true}', r"n \(True\) has a wrong type"),
    ],
)
def test_a_file_that_was_changed_is_named(tmp_path, text, message):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"a\.json:? {message}"):
        read_json(path, format="x", types={"n": int})
    path.write_text('{"format": "x", "n": 1}')
    assert read_json(path, format="x", types={"n": int | None})["n"] == 1
