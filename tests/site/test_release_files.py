"""What a release consists of, and that pages install it as it can be had today."""

import re
import subprocess
import sys
import tarfile
import tomllib
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

import address
import tformer
from address import ROOT
from engine.project import Project
from engine.release import changelog, is_released
from test_site_files import tracked

PROJECT = Project(ROOT)
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# What says how the package is installed, and by which command.
INSTALLING = [ROOT / "docs" / x for x in ("index.md", "teaching.md")]
COMMAND = re.compile(r"\bpip install (?:-\S+ )*(?:\"([^\"]*)\"|(\S+))")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the two files of a release."""
    folder = tmp_path_factory.mktemp("release")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> ZipFile:
    (file,) = built.glob("*.whl")
    assert file.name == f"tformer-{tformer.__version__}-py3-none-any.whl"
    return ZipFile(file)


def about(wheel: ZipFile) -> Message:
    folder = f"tformer-{tformer.__version__}.dist-info"
    return BytesParser().parsebytes(wheel.read(f"{folder}/METADATA"))


def test_the_wheel_holds_the_package_and_nothing_else(wheel: ZipFile) -> None:
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert inside == {name for name in tracked() if name.startswith("tformer/")}
    dates = ("dates", "dates-as-typed", "dates-as-typed-without-mask")
    for model in (*dates, "shakespeare"):
        assert f"tformer/pretrained/{model}/model.safetensors" in inside
    assert "tformer/py.typed" in inside
    about_it = {x.partition(".dist-info/")[2] for x in wheel.namelist()} - {""}
    files = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert about_it == files
    real_text = "tformer/pretrained/shakespeare/"  # at most 3 MB: see its own tests
    others = [x for x in wheel.infolist() if not x.filename.startswith(real_text)]
    assert sum(x.file_size for x in others) < 4_000_000


def test_what_pypi_shows_leads_somewhere(wheel: ZipFile) -> None:
    """A link from file to file, which README has for GitHub, would lead nowhere."""
    said = about(wheel)
    assert said["Version"] == tformer.__version__
    assert said["License-Expression"] == "MIT"
    shown = said.get_payload()
    targets = re.findall(r"\]\(([^)]*)\)", str(shown))
    assert len(targets) > 100
    repository = f"{address.read()[0]}/blob/HEAD/"
    for target in targets:
        assert re.match(r"https://|#", target), target
        if target.startswith(repository):
            assert (ROOT / target.removeprefix(repository)).exists(), target


def test_the_source_has_the_tests_and_builds_the_wheel_again(
    built: Path, wheel: ZipFile, tmp_path: Path
) -> None:
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    top = {path.name for path in folder.iterdir()}
    asked = {"tformer", "tests", "docs", "LICENSE", "README.md", "CITATION.cff"}
    assert top == {*asked, "pyproject.toml", "PKG-INFO", ".gitignore"}
    assert [x.name for x in (folder / "docs").iterdir()] == ["changelog.md"]
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    subprocess.run([*build, "-d", tmp_path], cwd=folder, check=True)
    (again,) = tmp_path.glob("*.whl")
    assert ZipFile(again).namelist() == wheel.namelist()


def commands(text: str) -> list[str]:
    """What the commands of a text install."""
    return ["".join(found) for found in COMMAND.findall(text)]


@pytest.mark.parametrize("file", INSTALLING, ids=lambda file: file.name)
def test_a_page_installs_what_can_be_had(file: Path) -> None:
    """Before the first release the repository; from then on the home says PyPI."""
    asked = [Requirement(x) for x in commands(file.read_text("utf-8"))]
    assert asked
    released = is_released(changelog(PROJECT))
    for requirement in asked:
        assert requirement.name == "tformer"
        assert requirement.extras <= {*DECLARED["optional-dependencies"]}
        from_git = f"git+{address.read()[0]}"
        assert requirement.url == (None if released else from_git)
        if not released:
            assert not requirement.specifier


def test_readme_installs_the_folder_that_it_clones() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    if is_released(changelog(PROJECT)):
        assert "pip install tformer\n" in text
    else:
        assert commands(text) == ["./tformer", "./tformer[train]"]
        assert f"git clone {address.read()[0]}\n" in text
