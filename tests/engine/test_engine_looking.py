"""One page alone: who shows a piece of code, and a site of this page only."""

import pytest

from engine.__main__ import main
from engine.looking import SLICE, _mkdocs, look, slices, uses
from engine.making import read_pages
from engine.project import ENGINE, Project


def found(project: Project, asked: str) -> list[str]:
    pages, problems = read_pages(project, project.pages)
    assert not problems
    return uses(project, pages, asked)


def test_who_shows_a_file_or_a_definition(project: Project) -> None:
    page, copies = "docs/chapters/scale.md", "docs/downloads/scale"
    assert found(project, "tiny/scale.py") == [
        f"{page}:22: scale",
        f"{page}:99: scale, Scaler",
        f"{page}:109: Scaler",
        f"{copies}.py",
    ]
    lines = [f"{page}:99: scale, Scaler", f"{page}:109: Scaler", f"{copies}.py"]
    assert found(project, "tiny/scale.py:Scaler") == lines
    assert found(project, "tiny/scale.py:root") == []
    # Shown by no page, but the copy needs it.
    assert found(project, "tiny/checks.py:check_positive") == [f"{copies}.py"]
    assert found(project, "tiny/reference/scale.py") == [
        f"{page}:64: scale",
        f"{copies}_numpy.py",
    ]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("tiny/gone.py", "tiny/gone.py is not there"),
        ("tiny/scale.py:Scale", "tiny/scale.py: `Scale` is not defined there; near it"),
    ],
)
def test_what_is_not_there_is_told(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: str,
    says: str,
) -> None:
    monkeypatch.chdir(project.root)
    with pytest.raises(SystemExit, match="2"):
        main(["uses", asked])
    assert says in capsys.readouterr().err
    assert main(["uses", "tiny/stored.py"]) == 0
    assert capsys.readouterr().out == "no page shows tiny/stored.py\n"


def test_a_build_of_one_page_runs_and_holds_no_other(project: Project) -> None:
    config = project.root / "mkdocs.yml"
    nav = "nav:\n  - Home: index.md\n  - Scale: chapters/scale.md\n"
    hooks = f"hooks: [{ENGINE}/site/hooks.py]\n"
    config.write_text(config.read_text("utf-8") + hooks + nav, "utf-8")
    home = project.docs / "index.md"
    home.write_text("```python\n1 / 0\n```\n\n[gone](gone.md)\n", "utf-8")
    page = project.docs / "chapters" / "scale.md"
    assert _mkdocs(project, page, "build", "--strict") == 0
    site = project.root / "site"
    assert "<h1" in (site / "chapters/scale/index.html").read_text("utf-8")
    assert not (site / "index.html").exists()
    assert (project.docs / "figures" / "scale-line.svg").is_file()


@pytest.mark.parametrize("command", ["serve", "look"])
def test_one_page_of_the_site_is_asked_for(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.chdir(project.root)
    (project.root / "README.md").write_text("# Words\n", "utf-8")
    for page in ("README.md", "docs/includes/abbreviations.md"):
        with pytest.raises(SystemExit, match="2"):
            main([command, page])
        assert f"{page} is no page" in capsys.readouterr().err


def test_a_page_that_cannot_be_built_is_told(project: Project) -> None:
    (project.root / "mkdocs.yml").write_text("theme: {name: gone}\n", "utf-8")
    (problem,) = look(project, project.docs / "index.md")
    assert problem == "docs/index.md: MkDocs could not build it"


def test_a_tall_page_is_taken_in_slices_that_cover_it() -> None:
    assert list(slices(SLICE)) == [(0, SLICE, "")]
    tall = list(slices(2 * SLICE + 7))
    assert [part for *_, part in tall] == ["-1", "-2", "-3"]
    assert [top for top, *_ in tall] == [0, SLICE, 2 * SLICE]
    assert [bottom for _, bottom, _ in tall] == [SLICE, 2 * SLICE, 2 * SLICE + 7]
