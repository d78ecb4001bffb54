"""What readers take away: it runs where tformer cannot be imported, and it is small."""

import base64
import io
import json
import lzma
import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from engine.copies.alone import problem_of
from engine.copies.standalone import standalone_files
from engine.pages.reading import Page
from navigation import CHAPTERS, FILES, PROJECT, front_matter, url
from tformer.check.asked import chapters

NAMES = [Path(file).stem for file in CHAPTERS]
LABS = [file for file in FILES if file.endswith(".ipynb")]
KILOBYTES = 300
# A notebook is its page, which is run; these, one of them with weights, are run too.
QUICK = {"attention", "masks", "heads", "decoding"}


def brought(notebook: Path) -> list[str]:
    """The files that the first cell of a notebook unpacks."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = ["".join(x["source"]) for x in cells if x["cell_type"] == "code"]
    copy = re.search(r'copy = "([^"]*)"', code[0])
    if not copy:
        return []
    archive = lzma.decompress(base64.b85decode(copy[1]))
    return ZipFile(io.BytesIO(archive)).namelist()


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.nightly] * (x not in QUICK)) for x in NAMES],
)
def test_a_notebook_runs_alone(site: Path, name: str) -> None:
    books = site / "notebooks"
    both = [books / f"{name}.ipynb", *books.glob(f"{name}-solutions.ipynb")]
    assert (len(both) == 2) == (name in chapters())
    for notebook in both:
        assert problem_of("tformer", notebook) is None


@pytest.mark.parametrize("file", LABS)
def test_a_lab_runs_alone(site: Path, file: str) -> None:
    lab = site / url(file) / Path(file).name
    assert problem_of("tformer", lab) is None
    text = json.loads(lab.read_text("utf-8"))
    code = [cell for cell in text["cells"] if cell["cell_type"] == "code"]
    assert "".join(code[0]["source"]).startswith("#@title Get tformer")
    assert len(lab.read_bytes()) <= KILOBYTES * 1000
    # Without its first cell it would need the package.
    text["cells"].remove(code[0])
    lab = lab.with_name("without.ipynb")
    lab.write_text(json.dumps(text), "utf-8")
    try:
        assert "import of tformer halted" in (problem_of("tformer", lab) or "")
    finally:
        lab.unlink()


def test_one_file_copies_are_those_that_the_pages_run_alone(site: Path) -> None:
    pages = [Page(PROJECT, PROJECT.docs / file) for file in CHAPTERS]
    wanted = {x.name: x.text for page in pages for x in standalone_files(page)}
    offering = [x for x in CHAPTERS if front_matter(x).get("copy") != []]
    assert len(wanted) >= len(offering) - 1
    files = (site / "downloads").glob("*.py")
    assert {x.name: x.read_text("utf-8") for x in files} == wanted


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_small_where_it_needs_no_model(site: Path, name: str) -> None:
    notebook = site / "notebooks" / f"{name}.ipynb"
    code = "".join(
        "".join(cell["source"])
        for cell in json.loads(notebook.read_text("utf-8"))["cells"][2:]
        if cell["cell_type"] == "code"
    )
    weights = [x for x in brought(notebook) if x.endswith(".safetensors")]
    assert all(Path(file).parent.name in code for file in weights), weights
    if not weights:
        assert notebook.stat().st_size <= KILOBYTES * 1000
