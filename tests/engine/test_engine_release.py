"""The version stands in one place, and a changelog that is wrong is found."""

import subprocess
import tomllib
from pathlib import Path

import pytest

import tformer
from engine.__main__ import main
from engine.project import Project
from engine.release import (
    changelog,
    is_released,
    notes,
    pinned,
    problems,
    sections,
    unpinned,
)

PROJECT = Project.find(Path(__file__).parents[2])
GOOD = """
# Changelog

## Unreleased

### Added

- One thing,
  on two lines.

## 0.2.0 - 2026-12-01

### Changed

- Another.

### Fixed

- A third.

## 0.1.0 - 2026-11-28

### Added

- All.
"""


def test_the_version_stands_in_the_package_alone() -> None:
    project = tomllib.loads((PROJECT.root / "pyproject.toml").read_text("utf-8"))
    assert "version" not in project["project"]
    assert "version" in project["project"]["dynamic"]
    path = project["tool"]["hatch"]["version"]["path"]
    assert path == "tformer/__init__.py"
    assert PROJECT.version == tformer.__version__


def test_the_changelog_is_in_order() -> None:
    text = changelog(PROJECT)
    assert problems(text, PROJECT.version) == []
    assert sum(map(len, sections(text)[0].entries.values())) > 0


def test_a_good_one_is_read_and_not_complained_of() -> None:
    assert problems(GOOD, "0.2.0") == problems(GOOD, "0.3.0") == []
    new, second, _ = sections(GOOD)
    assert new.entries == {"Added": ["One thing,"]}
    assert new.version is None
    assert f"{second.version} {second.day}" == "0.2.0 2026-12-01"
    assert list(second.entries) == ["Changed", "Fixed"]
    assert is_released(GOOD)
    assert not is_released(GOOD[: GOOD.index("## 0.2.0")])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("## Unreleased\n", "## Next\n", "## Next: must be Unreleased, or as 0.2.0"),
        ("2026-12-01", "1.12.2026", "0.2.0 - 1.12.2026: must be"),
        ("## 0.2.0 -", "## two -", "## two - 2026-12-01: must be"),
        ("### Changed", "### Improved", "Improved is none of Added, Changed"),
        ("### Fixed", "### Added", "must stand once, in order"),
        ("### Fixed", "### Changed", "must stand once, in order"),
        ("- A third.", "A third.", "0.2.0 - 2026-12-01: Fixed has no entry"),
        ("### Added\n\n- All.", "All.", "0.1.0 - 2026-11-28: a release says"),
        ("2026-11-28", "2026-12-02", "stands above 0.1.0 of 2026-12-02"),
        ("## 0.1.0", "## 0.2.0", "0.2.0 of 2026-12-01 stands above 0.2.0"),
        ("## 0.2.0", "## 0.9.0", "0.9.0 is newer than the package's version, 0.2.0"),
        ("## 0.1.0 - 2026-11-28", "## Unreleased", "must stand on top, once"),
        (GOOD[: GOOD.index("## 0.1.0")], "", "newest section must be 0.2.0 or Unrel"),
        (GOOD, "# Changelog", "has no section"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, says: str) -> None:
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    assert says in "\n".join(problems(text, "0.2.0"))


def test_a_tag_is_published_with_its_own_section(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (project.root / "tiny/__init__.py").write_text('__version__ = "0.2.0"\n', "utf-8")
    released = GOOD[GOOD.index("## 0.2.0") :]
    (project.docs / "changelog.md").write_text(released, "utf-8")
    said = "### Changed\n\n- Another.\n\n### Fixed\n\n- A third.\n"
    assert notes(project, "v0.2.0") == said
    monkeypatch.chdir(project.root)
    assert main(["release", "v0.2.0"]) == 0
    assert capsys.readouterr().out == said
    for tag in ("v0.1.0", "0.2.0", "v0.2.0rc1"):
        with pytest.raises(SystemExit):
            main(["release", tag])
        assert f"tag ({tag}) must be v0.2.0" in capsys.readouterr().err
    (project.docs / "changelog.md").write_text(GOOD, "utf-8")
    with pytest.raises(ValueError, match=r"must begin with ## 0\.2\.0 and its day"):
        notes(project, "v0.2.0")


def test_a_notebook_gets_the_release_or_else_the_commit(project: Project) -> None:
    """As long as the package is what was released; a page may have changed."""
    root = project.root

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", *who, *words]
        return subprocess.check_output(command, cwd=root, text=True).strip()

    def read() -> str:
        return pinned(Project(root))

    package, page = root / "tiny/__init__.py", root / "docs/index.md"
    package.write_text('__version__ = "0.2.0"\n', "utf-8")
    url = "tiny @ git+https://github.com/example/tiny"
    assert unpinned(project) == read() == url  # no git
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "first")
    assert read() == f"{url}@{git('rev-parse', 'HEAD')}"
    git("tag", "v0.2.0")
    page.write_text("# Another page\n", "utf-8")
    git("commit", "--quiet", "--all", "--message", "second")
    assert read() == "tiny==0.2.0"
    package.write_text('__version__ = "0.2.0"\nNEW = 1\n', "utf-8")
    git("commit", "--quiet", "--all", "--message", "third")
    assert read() == f"{url}@{git('rev-parse', 'HEAD')}"
    declared = '[project]\noptional-dependencies = { train = ["typer"] }\n'
    (root / "pyproject.toml").write_text(declared, "utf-8")
    assert read().startswith("tiny[train] @ git+")
