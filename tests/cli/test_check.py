"""`tformer check`, from a folder with nothing in it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rotary_files import NUMPY, PAIRS
from tformer.check.exercises import EXERCISES
from tformer.cli import check as command

LOOP = "def rotary(*args):\n    while True: pass\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_reader_s_way(tformer, folder):
    """The list, a file to begin with, a mistake, a hint, and what is right."""
    listed = tformer("check")
    assert listed.code == 0
    assert all(f" {name} " in listed.out for name in EXERCISES)
    assert "begun" not in listed.out + "right  "
    assert not [*folder.iterdir()]

    begun = tformer("check", "start", "rotary")
    file = folder / "rotary.py"
    assert (begun.code, file.read_text()) == (0, EXERCISES["rotary"].starter)
    assert "chapters/rotary/#the-formula" in begun.out
    assert "begun  rotary" in tformer("check").out

    empty = tformer("check", "rotary")
    assert (empty.code, "It is not written yet." in empty.out) == (1, True)
    file.write_text(PAIRS)
    wrong = tformer("check", "rotary")
    assert wrong.code == 1
    assert "You rotate columns 2i and 2i + 1 together" in wrong.out
    assert "chapters/rotary/#the-layouts-are-mixed" in wrong.out
    assert "tformer check rotary --hint 1" in wrong.out

    file.write_text(NUMPY)
    right = tformer("check", "rotary")
    assert (right.code, right.out) == (0, "rotary.py: right.\n")
    assert "right  rotary" in tformer("check").out
    file.write_text(f"{NUMPY}\n")
    assert "begun  rotary" in tformer("check").out


def test_nothing_is_written_over(tformer, folder):
    Path("rotary.py").write_text("mine")
    said = tformer("check", "start", "top_p", "rotary")
    assert said.code == 1
    assert "rotary.py is there already, and stays as it is" in said.err
    assert Path("rotary.py").read_text() == "mine"
    assert Path("top_p.py").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rotarie"], "did you mean rotary?"),
        (["rotary.py"], "did you mean rotary?"),
        (["zzz"], "tformer check lists them"),
        (["start"], "name an exercise"),
        (["start", "zzz"], "there is no exercise 'zzz'"),
        (["start", "rotary", "--json"], "start takes exercises alone"),
        (["--json"], "name the exercise"),
        (["--hint", "1"], "name the exercise"),
        (["rotary", "--hint", "4"], "--hint"),
        (["rotary", "--seconds", "0"], "--seconds"),
        (["rotary", "--all"], "--all takes no exercise"),
        (["--all"], "no file of an exercise is here"),
    ],
)
def test_wrong_usage(tformer, folder, words, said):
    found = tformer("check", *words)
    assert (found.code, found.out) == (2, "")
    assert said in " ".join(found.err.replace("│", "").split())
    assert not [*folder.iterdir()]


def test_a_file_that_is_not_there(tformer):
    found = tformer("check", "rotary")
    assert found.code == 1
    assert "tformer check start rotary writes a file" in found.out
    assert "cannot be read: No such file" in found.out
    (said,) = map(json.loads, tformer("check", "rotary", "--json").out.splitlines())
    assert said["verdict"] == "not run"


@pytest.mark.nightly
def test_several_files_are_objects_for_programs(tformer, folder):
    for name, text in {"a.py": NUMPY, "b.py": PAIRS, "c.py": "x ="}.items():
        Path(name).write_text(text)
    found = tformer("check", "rotary", "a.py", "b.py", "c.py", ".", "--json")
    assert (found.code, found.err) == (1, "right: 1 of 4\n")
    said = [json.loads(line) for line in found.out.splitlines()]
    assert [x["file"] for x in said] == ["a.py", "b.py", "c.py", "."]
    assert [x["verdict"] for x in said] == ["right", "wrong", "not run", "not run"]
    assert [[m["id"] for m in x["mistakes"]] for x in said] == [[], ["pairs"], [], []]
    assert set(said[1]["differs"]) == {"kind", "case", "message"}
    assert "line 1" in said[2]["reason"]
    assert tformer("check", "rotary", "a.py", "--json").code == 0
    assert not Path(".tformer-check.json").exists()


def test_all_exercises_of_a_folder(tformer):
    Path("rotary.py").write_text(NUMPY)
    Path("noam.py").write_text(
        "def noam(step, d_model, warmup):\n"
        "    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)\n"
    )
    found = tformer("check", "--all", "--json")
    said = [json.loads(line) for line in found.out.splitlines()]
    told = [(x["exercise"], x["verdict"]) for x in said]
    assert (found.code, told) == (0, [("rotary", "right"), ("noam", "right")])
    Path("top_p.py").write_text("")
    found = tformer("check", "--all")
    assert found.code == 1
    assert "top_p.py: not run" in found.out


def test_hints(tformer):
    exercise = next(x for x in EXERCISES.values() if x.name == "rotary")
    for number, hint in enumerate(exercise.hints, 1):
        said = tformer("check", "rotary", "--hint", number)
        assert said.out.strip() == hint
        assert said.code == (0 if hint else 1)


def test_what_a_file_prints_cannot_steer_a_terminal(tformer):
    hostile = (
        "print('\\x1b[2J\\x07rotary.py: right.')\nraise OSError('\\udc80\\x1b[2J')"
    )
    Path("rotary.py").write_text(hostile)
    found = tformer("check", "rotary")
    assert found.code == 1
    assert found.out.startswith("rotary.py: not run")
    assert not [x for x in found.out if x != "\n" and not x.isprintable()]


def test_a_list_of_what_is_done_that_is_broken_is_no_list(tformer):
    for text in ("[", "[]", '{"rotary": 1}', "[" * 99_999, '{"rotary": {"file": "x"}}'):
        Path(".tformer-check.json").write_text(text)
        assert tformer("check").code == 0


def test_a_folder_that_cannot_be_written(tformer, monkeypatch):
    monkeypatch.setattr(command, "KEPT", Path("nowhere/list"))
    Path("rotary.py").write_text(NUMPY)
    assert tformer("check", "rotary").code == 0


@pytest.mark.nightly
def test_a_file_is_watched(tformer, monkeypatch):
    file = Path("rotary.py")
    texts = iter([PAIRS, PAIRS, NUMPY])

    def wait(_):
        file.write_text(next(texts, None) or _interrupt())

    def _interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(command.time, "sleep", wait)
    found = tformer("check", "rotary", "--watch", "--json")
    assert found.code == 130
    said = [json.loads(line)["verdict"] for line in found.out.splitlines()]
    assert said == ["not run", "wrong", "right"]


@pytest.mark.nightly
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_ctrl_c_leaves_nothing(folder):
    (folder / "rotary.py").write_text(LOOP)
    room = folder / "room"
    room.mkdir()
    code = "from tformer.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "check", "rotary", "--seconds", "300"],
        env=os.environ | {"TMPDIR": str(room)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell starts what is in the background with SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:
        last = time.monotonic() + 120
        while not _within(room) and time.monotonic() < last:
            time.sleep(0.05)
        assert _within(room)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert (running.returncode, b"Traceback" in err) == (130, False)
    assert not _within(room)
    assert not [*room.iterdir()]


def _within(room):
    """List the processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cwd"):
        try:
            found += [process] * process.readlink().is_relative_to(room)
        except OSError:
            continue
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("words", [["rotary"], ["masks", "5"], ["--all"]])
def test_what_has_no_end_is_not_read(folder, words):
    os.mkfifo(folder / "rotary.py")
    files = [] if words == ["--all"] else ["rotary.py", "/dev/zero"]
    done = subprocess.run(
        [sys.executable, "-m", "tformer", "check", *words, *files],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stdout.count("is not a regular file") == max(1, len(files))
