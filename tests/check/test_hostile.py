"""Files that want a verdict without the work, or that would do harm: none is right.

Nor does any of them hang what checks it, or leave a process or a file.
"""

import inspect
import os
import sys
from pathlib import Path

import pytest

from hostile_files import HARM, OTHERS, STAY, STEAL, USE
from tformer.check import rotation
from tformer.check.evidence import task_of
from tformer.check.exercises import EXERCISES
from tformer.check.grading import grade
from tformer.check.landlock import hold_to
from tformer.check.running import Runner
from tformer.check.wire import pack

SPEC = rotation.__file__


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """What runs files, in a folder of which nothing may be left."""
    folder = tmp_path_factory.mktemp("room")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        with Runner(2) as runner:
            yield runner
    assert not [*folder.iterdir()]


def graded(room, folder, source):
    path = folder / "mine.py"
    path.write_bytes(source.encode("utf-8", "surrogateescape"))
    found = grade(room, EXERCISES["rotary"], path)
    for helper in room._helpers.values():
        assert helper.poll() is None
        if sys.platform.startswith("linux"):
            me = f"/proc/{helper.pid}/task/{helper.pid}/children"
            assert not Path(me).read_text()
    assert [*folder.iterdir()] == [path]
    return found


def test_the_text_of_the_oracle_would_be_right(room, tmp_path):
    """So that the next test can fail."""
    text = inspect.getsource(rotation)
    assert graded(room, tmp_path, f"text = {text!r}{USE}").verdict == "right"


@pytest.mark.parametrize("way", STEAL)
def test_no_oracle_is_reached(room, tmp_path, way):
    found = graded(room, tmp_path, f"SPEC = {SPEC!r}\n{STEAL[way]}\n{USE}")
    assert found.verdict == "not run", found.judged
    assert found.reason


def test_a_file_may_test_itself(room, tmp_path):
    """What NumPy tests with imports what starts processes, and starts none."""
    same = "import numpy.testing as t, subprocess\nt.assert_allclose(1.0, 1.0)\n"
    text = inspect.getsource(rotation)
    found = graded(room, tmp_path, f"{same}text = {text!r}{USE}")
    assert found.verdict == "right", found.reason


@pytest.mark.by_day(6)
@pytest.mark.parametrize("name", OTHERS)
def test_no_trick_is_right_and_nothing_is_left(room, tmp_path, name):
    source = OTHERS[name]
    own = "def rotary" in source or name in ("bytes", "nothing")
    found = graded(room, tmp_path, source if own else source + STAY)
    assert found.verdict in ("wrong", "not run")
    assert found.reason or found.judged.differs


def test_files_of_others_stay(room, tmp_path):
    kept = tmp_path / "kept" / "file"
    kept.parent.mkdir()
    kept.write_text("precious")
    folder = tmp_path / "code"
    folder.mkdir()
    found = graded(room, folder, f"FILE = {str(kept)!r}\n{HARM}{STAY}")
    assert found.printed == "own True\n"
    assert kept.read_text() == "precious"
    assert [*kept.parent.iterdir()] == [kept]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux has Landlock")
def test_the_kernel_refuses_what_python_does_not_see(room, tmp_path):
    if not _has_landlock():
        pytest.skip("this kernel has no Landlock")
    steal = "import torch, os\ndata = torch.from_file(SPEC, size=os.stat(SPEC).st_size,"
    steal += " dtype=torch.uint8)\ntext = bytes(data.tolist()).decode()"
    found = graded(room, tmp_path, f"SPEC = {SPEC!r}\n{steal}\n{USE}")
    assert found.verdict == "not run"
    assert "denied" in found.reason


def _has_landlock() -> bool:
    child = os.fork()
    if not child:
        os._exit(hold_to("/tmp", [], Path("/nowhere")))
    return bool(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def test_environment_and_arguments_stay_ours(room, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    code = "import os, sys\nprint('SECRET' in os.environ, len(sys.stdin.read()))"
    assert graded(room, tmp_path, code + STAY).printed == "False 0\n"


def test_a_file_that_is_lost_does_not_stop_the_others(room, tmp_path):
    for helper in room._helpers.values():
        helper.kill()
    (tmp_path / "mine.py").write_text(STAY)
    found = [
        grade(room, EXERCISES["rotary"], tmp_path / "mine.py").verdict for _ in "ab"
    ]
    assert found == ["not run", "wrong"]


def test_tasks_hold_nothing_that_is_right():
    task = task_of(EXERCISES["rotary"].spec, "numpy")
    assert task.weights == {}
    assert b"oracle" not in pack(task)
