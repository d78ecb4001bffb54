"""`make chapter`: a page that lacks nothing but its text and its place."""

from pathlib import Path

import pytest

from engine.__main__ import main
from engine.chapter import make_chapter
from engine.project import Project
from small_project import problems_of


def filled(path: Path) -> None:
    """Write what is marked TODO."""
    text = path.read_text("utf-8").replace("TODO:", "Is:").replace("TODO ", "")
    path.write_text(text.replace("../figures/", "figures/"), "utf-8")


def test_a_new_chapter_lacks_nothing_but_its_text_and_its_place(
    project: Project,
) -> None:
    with (project.root / "mkdocs.yml").open("a") as file:
        file.write("nav: [index.md, chapters/scale.md]\n")
    page = make_chapter(project, "two-numbers", "tiny/scale.py")
    assert page == project.docs / "chapters/two-numbers.md"
    problems = problems_of(Project(project.root), page)
    left = [x for x in problems if "TODO is left" in x]
    assert len(left) == 23  # 13 sections, and 10 lines of the front matter
    filled(page)
    assert problems_of(Project(project.root), page) == [
        "mkdocs.yml: add chapters/two-numbers.md after chapters/scale.md"
    ]


def test_it_embeds_the_module_and_its_twin_and_names_all_keys(project: Project) -> None:
    text = make_chapter(project, "two-numbers", "tiny/scale.py").read_text("utf-8")
    assert "modules: [tiny/scale.py, tiny/reference/scale.py]\n" in text
    embedded = [line for line in text.split("\n") if line.startswith("--8<--")]
    twin = [f'--8<-- "tiny/reference/scale.py:{name}"' for name in ("imports", "scale")]
    names = ("imports", "scale", "Scaler", "root")
    assert embedded == [*twin, *(f'--8<-- "tiny/scale.py:{name}"' for name in names)]
    for key in ("paper_link", "copy", "demo"):
        assert f"\n# {key}: TODO " in text.partition("\n---\n")[0]
    alone = make_chapter(project, "one", "tiny/checks.py").read_text("utf-8")
    assert "modules: [tiny/checks.py]\n" in alone
    assert "reference" not in alone


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["", "tiny/scale.py"], "NAME ('') must be words of a-z, joined by hyphens"),
        (["../up", "tiny/scale.py"], "NAME ('../up') must be words"),
        (["scale", "tiny/scale.py"], "docs/chapters/scale.md is there already"),
        (["two", "tiny/gone.py"], "MODULE ('tiny/gone.py') must be a file of tiny/"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    project: Project,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(project.root)
    before = {path: path.read_bytes() for path in project.root.rglob("*.*")}
    with pytest.raises(SystemExit) as stopped:
        main(["chapter", *arguments])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in project.root.rglob("*.*")} == before
