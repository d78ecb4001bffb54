"""`make chapter`: a page that lacks nothing but its text, in all places."""

from pathlib import Path

import pytest

from engine.__main__ import main
from engine.chapter import make_chapter
from engine.project import Project
from engine.site.lists import chapters, list_problems
from small_project import problems_of

README = """# tiny

| Concept | Chapter | Module |
|---|---|---|
"""
END = "Next: [home](../index.md),\nwhere all begins."
LEAD = "concept: scales\nquestion: Why scale?\ndescription"


@pytest.fixture
def book(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The small project with its chapter in a navigation, and a README."""
    page = project.docs / "chapters/scale.md"
    text = page.read_text("utf-8").replace("description", LEAD, 1)
    text = text.replace("## References", f"{END}\n\n## References")
    page.write_text(text, "utf-8")
    with (project.root / "mkdocs.yml").open("a") as file:
        file.write("nav:\n  - index.md\n  - Book: # in order\n")
        file.write("      - Scale: chapters/scale.md # first\n")
        file.write("  - About: [about.md]\n")
    (project.root / "README.md").write_text(README, "utf-8")
    monkeypatch.chdir(project.root)
    return Project(project.root)


def filled(path: Path) -> None:
    """Write what is marked TODO."""
    lines = path.read_text("utf-8").split("\n")
    text = "\n".join(
        line.replace("TODO:", "Is:").replace("TODO ", "") for line in lines
    )
    path.write_text(text.replace("../figures/", "figures/"), "utf-8")


def test_a_new_chapter_lacks_nothing_but_its_text(book: Project) -> None:
    done = make_chapter(book, "two-numbers", "tiny/scale.py")
    assert [line.partition(":")[0] for line in done] == [
        "docs/chapters/two-numbers.md",
        "mkdocs.yml",
        "docs/chapters/scale.md",
        "README.md",
    ]
    fresh = Project(book.root)
    assert [chapter.title for chapter in chapters(fresh)] == ["Scale", "Two numbers"]
    assert list_problems(fresh) == []
    page = book.docs / "chapters/two-numbers.md"
    left = [x for x in problems_of(fresh, page) if "TODO is left" in x]
    assert len(left) == 22  # 13 sections, and 9 lines of the front matter
    filled(page)
    assert list_problems(Project(book.root)) == [
        "README.md:3: `make lists` writes this table"
    ]
    assert main(["lists"]) == 0
    assert list_problems(Project(book.root)) == []
    assert problems_of(Project(book.root), page) == []


def test_it_embeds_the_module_and_names_its_twin(book: Project) -> None:
    make_chapter(book, "two-numbers", "tiny.scale")
    text = (book.docs / "chapters/two-numbers.md").read_text("utf-8")
    assert "modules: [tiny/scale.py, tiny/reference/scale.py]\n" in text
    embedded = [line for line in text.split("\n") if line.startswith("--8<--")]
    twin = [f'--8<-- "tiny/reference/scale.py:{name}"' for name in ("imports", "scale")]
    names = ("imports", "scale", "Scaler", "root")
    assert embedded == [*twin, *(f'--8<-- "tiny/scale.py:{name}"' for name in names)]
    before, after = text.index("\n### NumPy\n"), text.index("\n### PyTorch\n")
    assert before < text.index(twin[0]) < after < text.index(embedded[2])


def test_a_module_without_a_twin_has_no_part_for_it(book: Project) -> None:
    make_chapter(book, "two-numbers", "tiny.checks")
    text = (book.docs / "chapters/two-numbers.md").read_text("utf-8")
    assert "modules: [tiny/checks.py]\n" in text
    assert "### " not in text


def test_it_names_the_keys_that_a_chapter_may_do_without(book: Project) -> None:
    make_chapter(book, "two-numbers", "tiny.scale")
    text = (book.docs / "chapters/two-numbers.md").read_text("utf-8")
    for key in ("paper_link", "copy", "demo"):
        assert f"\n# {key}: TODO " in text.partition("\n---\n")[0]


def test_the_chapter_before_leads_to_it_and_it_leads_on(book: Project) -> None:
    make_chapter(book, "two", "tiny/scale.py")
    make_chapter(Project(book.root), "one", "tiny/scale.py", after="scale")
    pages = [chapter.file for chapter in chapters(Project(book.root))]
    assert pages == ["chapters/scale.md", "chapters/one.md", "chapters/two.md"]
    texts = [(book.docs / page).read_text("utf-8") for page in pages]
    for text, end in zip(
        texts, ["Next: [One](one.md).", "Next: [Two](two.md).", END], strict=True
    ):
        assert text.count("Next: ") == 1
        assert f"\n{end}\n\n## References\n" in text
    assert "builds_on: [scale.md]" in (book.docs / "chapters/one.md").read_text("utf-8")
    nav = (book.root / "mkdocs.yml").read_text("utf-8").partition("nav:\n")[2]
    assert nav == (
        "  - index.md\n  - Book: # in order\n      - Scale: chapters/scale.md # first\n"
        "      - chapters/one.md\n      - chapters/two.md\n  - About: [about.md]\n"
    )


def test_a_chapter_that_led_nowhere_leads_to_it(book: Project) -> None:
    page = book.docs / "chapters/scale.md"
    page.write_text(page.read_text("utf-8").replace(f"{END}\n\n", ""), "utf-8")
    make_chapter(book, "two", "tiny/scale.py")
    text = page.read_text("utf-8")
    assert "\nNext: [Two](two.md).\n\n## References\n" in text
    assert "Next: " not in (book.docs / "chapters/two.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["", "tiny/scale.py"], "NAME ('') must be words of a-z, joined by hyphens"),
        (["../up", "tiny/scale.py"], "NAME ('../up') must be words"),
        (["scale", "tiny/scale.py"], "docs/chapters/scale.md is there already"),
        (["two", "tiny/gone.py"], "MODULE ('tiny/gone.py') must be a file of tiny/"),
        (["two", "os.path"], "MODULE ('os.path') must be a file of tiny/"),
        (
            ["two", "tiny/scale.py", "--after", "gone"],
            "AFTER ('gone') must be a chapter: scale",
        ),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    book: Project,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = {path: path.read_bytes() for path in book.root.rglob("*.*")}
    with pytest.raises(SystemExit) as stopped:
        main(["chapter", *arguments])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in book.root.rglob("*.*")} == before
