"""The site, built once for all tests and workers, and served."""

import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from address import ROOT, read
from serving import in_folder, served


def build(target: Path) -> None:
    """Build the site as `make build` does; a warning is an error."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", target],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = re.findall(
            r"^(?:WARNING|ERROR|Aborted).*(?:\n  .*)*", done.stderr, re.M
        )
        raise AssertionError("\n".join(lines) or done.stdout + done.stderr)


@pytest.fixture(scope="session")
def www(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to serve: the site stands in it where its address says.

    BUILT_SITE in the environment is a folder with the site as it was built before, for
    whoever works on these tests.
    """
    if built := os.environ.get("BUILT_SITE"):
        place = tmp_path_factory.mktemp("served") / base()
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(Path(built).resolve())
        return place.parents[len(Path(base()).parts) - 1]
    top = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        top = top.parent  # one for all workers
    folder, failure = top / "www", top / "www-failure.txt"
    with FileLock(top / "www.lock"):
        if failure.exists():
            pytest.fail(failure.read_text("utf-8"))
        if not folder.exists():
            try:
                build(folder / base())
            except AssertionError as error:
                failure.write_text(str(error), "utf-8")
                raise
    return folder


def base() -> str:
    """Return the path in the site's address: "tformer" in https://host/tformer."""
    return "/".join(read()[1].split("/")[3:])


@pytest.fixture(scope="session")
def site(www: Path) -> Path:
    """The built site."""
    return www / base()


@pytest.fixture(scope="session")
def home(www: Path) -> Iterator[str]:
    """The address of the home page, served from this machine."""
    with served(functools.partial(in_folder, www)) as address:
        yield f"{address}/" + f"{base()}/".lstrip("/")
