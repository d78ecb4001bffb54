"""The atlas of mistakes: a page for each, whose numbers are those of the spec."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.mistakes import known, name_of
from engine.mistakes.drawing import picture, printed, text_of
from engine.mistakes.pages import Atlas
from engine.mistakes.showing import COLUMNS, ROWS, Shown, differing, show
from engine.mistakes.texts import Texts
from engine.project import Project
from engine.site.lists import chapters
from tformer.check.evidence import right_of
from tformer.check.exercises import EXERCISES
from tformer.check.outcomes import Outcome
from tformer.check.spec import SPECS, Mistake, Spec
from tformer.check.telling import page_of

ROOT = Path(__file__).parents[2]
PROJECT = Project(ROOT)
KNOWN = list(known())
NAMES = [name_of(*each) for each in KNOWN]
CELL = re.compile(r'<text class="c[^"]*"[^>]*>([^<]*)</text>')


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    """The atlas of this project."""
    return Atlas(PROJECT, {x.name: x.title for x in chapters(PROJECT)})


def numbers(outcome: Outcome, shown: Shown) -> list[str]:
    """Print what is drawn of a result, asked anew: `part` says of which matrix."""
    found = re.fullmatch(r"result(?: (\d+))?(?:\[(.*)\])?", shown.part)
    assert found is not None, shown.part
    array = outcome.arrays[int(found[1] or 1) - 1]
    lead = tuple(int(i) for i in found[2].split(",")) if found[2] else ()
    part = np.atleast_2d(array[lead]).astype(float)
    part = part[(0,) * max(0, part.ndim - 2)]
    if shown.kind == "shape" or shown.crop == "the first rows and columns":
        part = part[: ROWS + 1, : COLUMNS + 1]
    elif shown.crop:
        cut = re.findall(r"(\d+)–(\d+)", shown.crop)
        rows, columns = (slice(int(a), int(b) + 1) for a, b in cut)
        part = part[rows, columns]
    return [printed(float(x), shown.dtype) for x in part.flat]


def is_told(svg: str, spec: Spec, mistake: Mistake, shown: Shown) -> bool:
    """Whether a picture shows the right and the wrong numbers of its case."""
    case = next(x for x in spec.cases if x.name == shown.case)
    right = numbers(right_of(spec, case), shown)
    wrong = numbers(spec.outcome(mistake.function, case), shown)
    cells = CELL.findall(svg)
    return cells[: len(right) + len(wrong)] == [*right, *wrong]


def test_every_mistake_has_a_page_and_no_page_is_of_another(atlas: Atlas) -> None:
    files = dict(atlas.files())
    pages = {name for name in files if name.endswith(".md")}
    assert pages == {f"mistakes/{name}.md" for name in NAMES}
    assert len(pages) >= 60
    for (spec, mistake), name in zip(KNOWN, NAMES, strict=True):
        page = files[f"mistakes/{name}.md"]
        assert atlas.shown[name].message in page.replace("\\", "")
        drawn = f"mistakes/{name}.svg" in files
        assert drawn == bool(atlas.shown[name].right) == (f"({mistake.id}.svg" in page)
        assert page_of(spec.name, mistake.id).endswith(f"/mistakes/{name}/")


@pytest.mark.by_day(12)
@pytest.mark.parametrize("name", SPECS)
def test_pictures_show_the_numbers_of_the_spec(atlas: Atlas, name: str) -> None:
    spec = SPECS[name]
    for mistake in spec.mistakes:
        shown = atlas.shown[name_of(spec, mistake)]
        if mistake.shows == "value" and shown.right:
            svg = picture(shown)
            assert is_told(svg, spec, mistake, shown), (name, mistake.id)
            first = CELL.findall(svg)[0]
            assert not is_told(
                svg.replace(f">{first}<", ">?<", 1), spec, mistake, shown
            )


def test_a_number_of_another_time_is_found() -> None:
    """What was kept is asked anew: a changed number differs from the spec."""
    spec = SPECS["attention"]
    mistake = next(x for x in spec.mistakes if x.id == "unscaled")
    shown = show(spec, mistake)
    rows = ((shown.wrong[0][0] + 1, *shown.wrong[0][1:]), *shown.wrong[1:])
    other = replace(shown, wrong=rows)
    assert is_told(picture(shown), spec, mistake, shown)
    assert not is_told(picture(other), spec, mistake, shown)


@pytest.mark.parametrize("property", ["gradient", "precision", "inputs"])
def test_properties_are_drawn(atlas: Atlas, property: str) -> None:
    for spec, mistake in KNOWN:
        shown = atlas.shown[name_of(spec, mistake)]
        if mistake.shows == property:
            assert shown.kind == property
            right, wrong = np.array(shown.right), np.array(shown.wrong)
            assert differing(wrong, right, 1e-4).any(), mistake.id


def test_what_differs_is_framed_and_said(atlas: Atlas) -> None:
    shown = atlas.shown["causal_mask/first_on_first"]
    differ = sum(
        x != y
        for row in zip(shown.right, shown.wrong, strict=True)
        for x, y in zip(*row, strict=True)
    )
    assert picture(shown).count(' o"') == differ
    assert f"{differ} of {np.size(shown.right)} differ" in text_of(shown)


def test_the_fix_goes_from_the_wrong_code_to_the_right_one(atlas: Atlas) -> None:
    for spec, mistake in KNOWN:
        page = atlas.page(spec, mistake)
        block = re.findall(r"```diff\n(.*?)\n```", page, re.DOTALL)[0].split("\n")
        for sign, code in zip("+-", mistake.sources, strict=True):
            lines = [x[1:].strip() for x in block if x.startswith(sign)]
            there = re.sub(r"  # .*", "", code)
            assert all(line in there for line in lines), mistake.id
        assert {x[0] for x in block} & {"+", "-"}


@pytest.mark.parametrize(
    ("x", "dtype", "said"),
    [
        (0.6801, "f", "0.68"),
        (-0.004, "f", "−0.004"),
        (2e-7, "f", "2e−7"),
        (-12345.0, "f", "−1e4"),
        (float("nan"), "f", "NaN"),
        (float("-inf"), "f", "−∞"),
        (3.0, "i", "3"),
        (1.0, "b", "yes"),
        (0.0, "f", "0"),
    ],
)
def test_a_number_fits_its_cell(x: float, dtype: str, said: str) -> None:
    assert printed(x, dtype) == said


def test_texts_speak_of_mistakes_that_there_are(tmp_path: Path) -> None:
    texts = Texts(ROOT)
    assert len(texts.seen) >= 60
    assert len(texts.symptoms) >= 20
    anchors = [each.anchor for each in texts.symptoms]
    assert len({*anchors}) == len(anchors)
    assert all(each.text for each in texts.symptoms)
    assert all(each.mistakes or each.sections for each in texts.symptoms)
    folder = tmp_path / "docs" / "mistakes"
    folder.mkdir(parents=True)
    (folder / "symptoms.toml").write_text("symptom = []")
    (folder / "seen.toml").write_text('["attention/gone"]\ntitle = "T"\nseen = "S"')
    with pytest.raises(ValueError, match=r"\['attention/gone'\], which no spec knows"):
        Texts(tmp_path)
    (folder / "seen.toml").write_text('["attention/unscaled"]\ntitle = "T"')
    with pytest.raises(ValueError, match="attention/unscaled needs a title, what is"):
        Texts(tmp_path)


def test_threads_have_addresses_and_words(atlas: Atlas) -> None:
    for spec, mistake in KNOWN:
        threads = atlas.texts.of(spec, mistake).threads
        places = [thread.place for thread in threads]
        assert len({*places}) == len(places)
        page = atlas.page(spec, mistake)
        assert ("## Where it happened" in page) == bool(threads)
        for thread in threads:
            form = r"https://github\.com/[\w.-]+/[\w.-]+/issues/\d+|https://\S+"
            assert re.fullmatch(form, thread.url), thread
            assert thread.said
            assert f"({thread.url}): {thread.said}" in page


def test_the_index_leads_to_every_page(atlas: Atlas) -> None:
    listed = re.findall(r'<a href="([^"]+)/">', atlas.concepts())
    assert sorted(listed) == sorted(NAMES)
    assert listed.index("causal_mask/one_ahead") < listed.index("greedy/least")
    text = atlas.symptoms()
    led = re.findall(r"^- \[.*?\]\(([\w/]+)\.md\)", text, re.MULTILINE)
    assert {*led} <= {*NAMES}
    assert len(led) == sum(len(x.mistakes) for x in atlas.texts.symptoms)
    asked = set(re.findall(r"`tformer ([a-z]+ \S+)[^`]*`\W", text))
    assert asked - {f"check {name}" for name in EXERCISES} <= {
        "check --model",
        "compare FOLDER",
    }
    for symptom in atlas.texts.symptoms:
        assert f"](#{symptom.anchor})" in text
        told = text.partition(f"{{ #{symptom.anchor} }}")[2]
        told = told.partition("\n### ")[0]
        assert "](../chapters/" in told
        specs = {name.partition("/")[0] for name in symptom.mistakes} & {*EXERCISES}
        for command in (*symptom.commands, *(f"tformer check {x}" for x in specs)):
            assert f"`{command}`" in told
        for name in symptom.mistakes:
            page = atlas.page(*KNOWN[NAMES.index(name)])
            assert f"../index.md#{symptom.anchor}" in page


def test_what_is_said_of_a_part_holds_for_what_calls_it() -> None:
    texts, spec = Texts(ROOT), SPECS["attention"]
    mistake = next(x for x in spec.mistakes if x.id == "first_on_first")
    assert texts.of(spec, mistake) is texts.seen["causal_mask/first_on_first"]
    assert texts.symptoms_of(spec, mistake)
