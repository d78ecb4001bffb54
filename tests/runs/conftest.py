"""What the tests of runs share: a whole run, half a run, and few drawings."""

import shutil
from pathlib import Path

import pytest

from small_run import SHORT, stop_after, train_here


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Path:
    """A run that was not disturbed, with its drawings."""
    path = tmp_path_factory.mktemp("whole") / "run"
    train_here(path, SHORT)
    return path


@pytest.fixture(scope="session")
def half(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("half") / "run"
    stop_after(path, SHORT, 7)
    return path


@pytest.fixture
def stopped(half, tmp_path) -> Path:
    """A run that has made seven of its twelve steps, and has two checkpoints."""
    return Path(shutil.copytree(half, tmp_path / "run"))


@pytest.fixture
def drawings() -> None:
    """Let a test draw."""


@pytest.fixture(autouse=True)
def no_drawings(request, monkeypatch) -> None:
    """Spare the others the drawings, which take longer than the run."""
    if "drawings" not in request.fixturenames:
        monkeypatch.setattr("tformer.runs.run.draw_curves", lambda _: None)
