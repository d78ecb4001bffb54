"""Page of families: links to what explains a word; who stands behind whom."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from engine import families as pages
from engine.families.lineage import changes, in_order
from engine.families.terms import linked, linked_name

DOCS = Path(pages.__file__).parents[2]
TERMS = tomllib.loads((DOCS / "families/terms.toml").read_text("utf-8"))
PAGE = (DOCS / pages.PAGE).read_text("utf-8")
SOME = {"norm": "a.md", "norm of heads": "b.md", "1 + w": "c.md", "norms": "a.md"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a norm, a norm", "a [norm](a.md), a norm"),
        ("Norms, and a norm", "[Norms](a.md), and a norm"),
        ("the norm of heads", "the [norm of heads](b.md)"),
        ("normal, denorm", "normal, denorm"),
        ("`norm` [norm of](x) 1 + w", "`norm` [norm of](x) [1 + w](c.md)"),
        ("(1 + w)", "([1 + w](c.md))"),
    ],
)
def test_the_first_mention_becomes_a_link(text, wanted):
    assert linked(text, SOME) == wanted


def test_a_part_is_linked_by_the_name_of_its_class():
    assert linked_name("norm, with a bias", SOME) == "[norm](a.md), with a bias"
    assert linked_name("Norm", SOME) == "Norm"


@pytest.mark.parametrize("term", TERMS)
def test_each_term_is_used_and_its_section_is_there(term):
    said = re.search(rf"(?<!\w)\[{re.escape(term)}\]\(", PAGE, re.IGNORECASE)
    assert said, f"docs/families/terms.toml: no family says {term!r}"
    path, _, anchor = TERMS[term].partition("#")
    chapter = (DOCS / path).read_text("utf-8")
    heads = re.findall(r"^#+ (.*?)(?: \{ #(\S+) \})?$", chapter, re.MULTILINE)
    kept = (own or re.sub(r"[^\w -]", "", head.lower()) for head, own in heads)
    slugs = {re.sub(r"[ -]+", "-", each.strip()) for each in kept}
    assert not anchor or anchor in slugs, f"docs/{path} has no section {anchor!r}"


class Family(NamedTuple):
    """A family, as far as the list needs it."""

    name: str
    after: str | None

    title = "T"
    summary = "x."


def test_a_family_stands_behind_the_one_that_it_changes():
    found = [Family("c", "b"), Family("a", None), Family("b", "a"), Family("d", "z")]
    found.append(Family("e", "a"))
    assert [family.name for family in in_order(found)] == [*"abced"]
    assert changes(found).splitlines() == [
        "- [T](#a): X.",
        "    - [T](#b): X.",
        "        - [T](#c): X.",
        "    - [T](#e): X.",
        "- [T](#d): X.",
    ]
