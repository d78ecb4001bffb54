"""Pages with a live piece load what it needs, and the site has what pieces read."""

import json
import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.definitions import NoDefinition
from engine.project import ENGINE, Project
from engine.run import style
from engine.site import live
from engine.site.live import quoted

ROOT = ENGINE.parents[1]
LIVE = ROOT / "docs" / "live"


def ask(project: Project, *place: str) -> dict[str, Any]:
    path = project.docs / "live" / "quotes.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"a": place}), "utf-8")
    return quoted(project)["a"]


def test_a_quote_is_the_whole_statement(project: Project) -> None:
    quote = ask(project, "tiny/scale.py", "Scaler.__call__", "must not be")
    assert quote["code"] == 'raise ValueError("values must not be empty")'
    assert (quote["first"], quote["last"]) == (28, 28)
    assert quote["url"].endswith("/blob/HEAD/tiny/scale.py#L28-L28")


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        (("Scaled", "values"), "`Scaled` is not defined there"),
        (("Scaler.__call__", "s = 1"), "0 statements of Scaler.__call__ have 's = 1'"),
        (("Scaler.__call__", "values"), "2 statements of Scaler.__call__ have 'val"),
    ],
)
def test_what_is_not_there_is_not_quoted(
    project: Project, place: tuple[str, str], problem: str
) -> None:
    with pytest.raises(NoDefinition, match=problem):
        ask(project, "tiny/scale.py", *place)


def test_every_quote_of_the_site_is_there() -> None:
    for quote in quoted(Project(ROOT)).values():
        lines = (ROOT / quote["file"]).read_text("utf-8").split("\n")
        there = "\n".join(x.strip() for x in lines[quote["first"] - 1 : quote["last"]])
        said = "\n".join(x.strip() for x in quote["code"].split("\n"))
        assert there == said


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


def test_a_chapter_leads_to_a_state_of_the_live_model() -> None:
    """At the end of See it; `a,b` and `:` stay as the explorer writes them."""
    state = {"off": ["x.0:1", "x.0:2"], "positions": 0, "see": "breaks"}
    page = SimpleNamespace(
        meta={"live": {"state": state, "says": "It *breaks*.\n"}},
        file=SimpleNamespace(url="chapters/x/"),
    )
    text = "## See it\n\nA.\n\n{}## The code\n\n### The code\n"
    href = "../../live/#off=x.0:1,x.0:2&amp;positions=0&amp;see=breaks"
    link = f'**<a href="{href}">In the live model</a>**: It *breaks*.'
    line = f'<p class="live-thread" markdown>{link}</p>\n\n'
    assert live.on_page_markdown(text.format(""), cast(Any, page)) == text.format(line)
    page.meta = {}
    assert live.on_page_markdown(text.format(""), cast(Any, page)) == text.format("")
