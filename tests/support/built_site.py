"""The site, built once for all tests and workers, and served.

Where tests run on several workers, it is built beside those that do not need it.
"""

import functools
import os
import re
import subprocess
import sys
import threading
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
    folder = shared_folder(tmp_path_factory)
    build_once(folder)
    failure = folder / "failure.txt"
    if failure.exists():
        pytest.fail(failure.read_text("utf-8"))
    return folder / "www"


@pytest.fixture(scope="session", autouse=True)
def building(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Begin to build the site before a test asks for it, where others run meanwhile."""
    needed = any("www" in getattr(x, "fixturenames", ()) for x in request.session.items)
    first = os.environ.get("PYTEST_XDIST_WORKER") == "gw0"
    if needed and first and "BUILT_SITE" not in os.environ:
        folder = shared_folder(tmp_path_factory)
        threading.Thread(target=build_once, args=[folder], daemon=True).start()


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return a folder of this session: one for all workers."""
    top = factory.getbasetemp()
    return top.parent if "PYTEST_XDIST_WORKER" in os.environ else top


def build_once(folder: Path) -> None:
    """Build the site into `folder`, or write there why it cannot be built."""
    with FileLock(folder / "www.lock"):
        if not (folder / "www").exists() and not (folder / "failure.txt").exists():
            try:
                build(folder / "www" / base())
            except AssertionError as error:
                (folder / "failure.txt").write_text(str(error), "utf-8")


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
