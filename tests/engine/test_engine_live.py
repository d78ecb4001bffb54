"""Pages with a live piece load what it needs, and the site has what pieces read."""

import json
import re
from typing import Any

import pytest

from engine.definitions import NoDefinition
from engine.pages.reading import Page, render
from engine.project import ENGINE, Project
from engine.run import style
from engine.site.live import models, quoted

ROOT = ENGINE.parents[1]
LIVE = ROOT / "docs" / "live"


@pytest.fixture
def small(project: Project) -> Project:
    """Let the small project quote its own package."""
    (project.docs / "live").mkdir()
    (project.root / "tiny" / "sum.py").write_text(
        'def total(values):\n    """Return s = sum."""\n    s = 0\n'
        "    for x in values:\n        s = s + (\n            x\n        )\n"
        "    return s\n",
        "utf-8",
    )
    return project


def ask(project: Project, *place: str) -> dict[str, Any]:
    path = project.docs / "live" / "quotes.json"
    path.write_text(json.dumps({"a": place}), "utf-8")
    return quoted(project)["a"]


def test_a_quote_is_the_whole_statement(small: Project) -> None:
    quote = ask(small, "tiny/sum.py", "total", "s + (")
    assert quote["code"] == "s = s + (\n    x\n)"
    assert (quote["first"], quote["last"]) == (5, 7)
    assert quote["url"].endswith("/blob/HEAD/tiny/sum.py#L5-L7")


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        (("tiny/sum.py", "totals", "s = 0"), "`totals` is not defined there"),
        (("tiny/sum.py", "total", "s = 1"), "0 statements of total have 's = 1'"),
        (("tiny/sum.py", "total", "s"), "3 statements of total have 's'"),
    ],
)
def test_what_is_not_there_is_not_quoted(
    small: Project, place: tuple[str, str, str], problem: str
) -> None:
    with pytest.raises(NoDefinition, match=problem):
        ask(small, *place)


def test_every_quote_of_the_site_is_there() -> None:
    for quote in quoted(Project(ROOT)).values():
        lines = (ROOT / quote["file"]).read_text("utf-8").split("\n")
        there = "\n".join(x.strip() for x in lines[quote["first"] - 1 : quote["last"]])
        said = "\n".join(x.strip() for x in quote["code"].split("\n"))
        assert there == said


def test_each_model_comes_with_its_config() -> None:
    found = {(path.parent.name, path.name) for path in models(Project(ROOT))}
    names = ("dates", "dates-without-mask")
    files = ("config.json", "model.safetensors")
    assert found == {(name, file) for name in names for file in files}


def test_the_colours_are_those_of_the_figures() -> None:
    css = (LIVE / "live.css").read_text("utf-8")
    for name, pair in style.COLOURS.items():
        assert re.findall(rf"--live-{name}: (#\w+);", css) == list(pair), name
    ramps = (LIVE / "ui" / "colours.js").read_text("utf-8")
    written = [
        tuple(re.findall(r"#\w{6}", line))
        for line in re.findall(r"(?:light|dark): \[(.*?)\]", ramps)
    ]
    blues = style.MAPS["Blues"]
    middle = len(style.MAPS["RdBu"][0]) // 2
    reds = [tuple(reversed(ramp[: middle + 1])) for ramp in style.MAPS["RdBu"]]
    assert written == [*blues, *reds]


def test_a_static_figure_keeps_its_caption_inside_a_live_one(write: Any) -> None:
    page: Page = write(
        '<figure class="live" data-live="masks" markdown>\n'
        '![A mask.](masks.svg "What *it* hides.")\n</figure>\n'
    )
    images = render(page).images
    assert [image["alt"] for image in images] == ["A mask."]
    assert "data-caption" not in images[0]
