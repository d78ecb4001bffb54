"""What readers take away: it runs where tformer cannot be imported, and it is small."""

import json
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from engine.copies.alone import problem_of
from engine.copies.standalone import standalone_files
from engine.pages.reading import Page
from engine.release import pinned
from navigation import CHAPTERS, FILES, PROJECT, front_matter, url
from tformer.check.asked import chapters

NAMES = [Path(file).stem for file in CHAPTERS]
LABS = [file for file in FILES if file.endswith(".ipynb")]
KILOBYTES = 300
INSTALLING = f'%pip install --quiet "{pinned(PROJECT)}"'
# A notebook is its page, which is run; this, with its weights, is run too.
QUICK = {"decoding"}


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what pip would install: what a wheel of the package holds."""
    folder = tmp_path_factory.mktemp("installed")
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        str(folder),
    ]
    subprocess.run(build, cwd=PROJECT.root, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    ZipFile(wheel).extractall(folder)
    return folder


def first_cell(notebook: Path) -> str:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    found: str = next("".join(x["source"]) for x in cells if x["cell_type"] == "code")
    return found


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.nightly] * (x not in QUICK)) for x in NAMES],
)
def test_a_notebook_runs_alone(site: Path, installed: Path, name: str) -> None:
    books = site / "notebooks"
    both = [books / f"{name}.ipynb", *books.glob(f"{name}-solutions.ipynb")]
    assert (len(both) == 2) == (name in chapters())
    for notebook in both:
        assert problem_of("tformer", notebook, installed) is None


@pytest.mark.parametrize("file", LABS)
def test_a_lab_runs_alone(site: Path, installed: Path, file: str) -> None:
    lab = site / url(file) / Path(file).name
    assert first_cell(lab) == INSTALLING
    assert problem_of("tformer", lab, installed) is None
    assert "import of tformer halted" in (problem_of("tformer", lab) or "")
    assert lab.stat().st_size <= KILOBYTES * 1000


def test_every_notebook_begins_with_one_line_that_installs_this_package(
    site: Path,
) -> None:
    """The commit, or the release where the package is as it was released."""
    books = [*(site / "notebooks").glob("*.ipynb")]
    assert len(books) > len(NAMES)
    assert {first_cell(book) for book in books} == {INSTALLING}
    asked = Requirement(INSTALLING.split('"')[1])
    git = ["git", "-c", "safe.directory=*", "rev-parse", "HEAD"]
    head = subprocess.run(git, cwd=PROJECT.root, capture_output=True, text=True)
    commit = f"git+{PROJECT.repo_url}@{head.stdout.strip()}"
    assert asked.url == commit or str(asked.specifier) == f"=={PROJECT.version}"


def test_one_file_copies_are_those_that_the_pages_run_alone(site: Path) -> None:
    pages = [Page(PROJECT, PROJECT.docs / file) for file in CHAPTERS]
    wanted = {x.name: x.text for page in pages for x in standalone_files(page)}
    offering = [x for x in CHAPTERS if front_matter(x).get("copy") != []]
    assert len(wanted) >= len(offering) - 1
    files = (site / "downloads").glob("*.py")
    assert {x.name: x.read_text("utf-8") for x in files} == wanted


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_small_and_can_be_read(site: Path, name: str) -> None:
    for notebook in (site / "notebooks").glob(f"{name}*.ipynb"):
        assert notebook.stat().st_size <= KILOBYTES * 1000, notebook.name
        text = notebook.read_text("utf-8")
        code = re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)
        assert not re.search(r"base64|b85decode|[A-Za-z0-9+/]{200}", code)


@pytest.mark.parametrize("name", sorted(chapters()))
def test_solutions_stand_in_a_notebook_of_their_own(site: Path, name: str) -> None:
    """What only the solutions hold is in none of the cells of the other."""
    books = site / "notebooks"
    to_do, solved = (
        {
            "".join(cell["source"])
            for cell in json.loads(path.read_text("utf-8"))["cells"]
        }
        for path in (books / f"{name}.ipynb", books / f"{name}-solutions.ipynb")
    )
    asked = [cell for cell in to_do - solved if "tformer.check import check" in cell]
    assert asked
    assert all("..." in cell for cell in asked)
    assert len(solved - to_do) > 1
