"""Figures look like the site: its font, its colours in light and dark, captions."""

import base64
import io
import itertools
import re

import numpy as np
import pytest
from PIL import Image

from engine.project import PACKAGES
from engine.run import figures, fonts
from engine.run.figures import Placed, place_figures, size_of
from engine.run.style import COLOURS, INK, MAPS, PAPER, finished
from small_project import Write, run

SCHEMES = ("light", "dark")
HEAT = "plt.imshow([[0.0, 0.2], [0.6, 1.0]], {how})"


def drawn(write: Write, code: str) -> Placed:
    """Run a block that draws a figure."""
    text = f"```python\nimport matplotlib.pyplot as plt\n\n{code}\n```\n"
    page = write(text + "![It](figures/page.svg)\n")
    return place_figures(page, run(page))[0]


def svg_of(write: Write, code: str) -> str:
    return drawn(write, code).svg


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(a: str, b: str) -> float:
    low, high = sorted(linear(x) @ [0.2126, 0.7152, 0.0722] for x in (a, b))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = [
        [0.4125, 0.3576, 0.1804],
        [0.2127, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9503],
    ]
    scaled = np.array(to_xyz) @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.0888]
    f = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira and Fernandes 2009: what the colour-blind see, in linear light.
EYES = {
    "all cones": np.eye(3),
    "no red cones": np.array(
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]
    ),
    "no green cones": np.array(
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
    ),
}


@pytest.mark.parametrize("scheme", [0, 1], ids=SCHEMES)
def test_colours_can_be_read_as_text_and_told_apart(scheme: int) -> None:
    colours = [pair[scheme] for pair in COLOURS.values()]
    assert min(contrast(x, PAPER[scheme]) for x in colours) >= 4.3
    for seen in EYES.values():
        first = [lab(seen @ linear(x)) for x in colours[:4]]
        for a, b in itertools.combinations(first, 2):
            assert np.linalg.norm(a - b) > 15  # 2 can just be seen


@pytest.mark.parametrize("scheme", [0, 1], ids=SCHEMES)
@pytest.mark.parametrize("name", MAPS)
def test_maps_begin_at_the_paper_and_leave_it_step_by_step(
    name: str, scheme: int
) -> None:
    ramp = MAPS[name][scheme]
    middle = len(ramp) // 2 if name == "RdBu" else 0
    assert ramp[middle] == PAPER[scheme]
    for side in (ramp[middle:], ramp[: middle + 1][::-1]):
        far = [contrast(x, PAPER[scheme]) for x in side]
        assert far == sorted(far)
        assert len(side) == 1 or far[-1] > 7


def test_colours_black_and_white_follow_the_scheme(write: Write) -> None:
    box = 'plt.text(0, 1, "on a box", bbox={"fc": "white", "ec": "#123456"})'
    drawn = svg_of(write, f'plt.plot([1, 2], color="C1")\n{box}')
    svg = finished(drawn, r"A line <1> & \(x\)")
    assert r"><title>A line &lt;1&gt; &amp; \(x\)</title><style>" in svg
    dark = re.search(r"prefers-color-scheme:dark\)\{\.figure\{([^}]*)\}", svg)[1]
    light, night = COLOURS["orange"]
    assert f"stroke: var(--c{light[1:]},{light})" in svg
    assert f"--c{light[1:]}:{night}" in dark
    assert f"color:{INK[1]}" in dark
    assert f"--cffffff:{PAPER[1]}" in dark
    assert "stroke: #123456" in svg  # not a colour of the book


@pytest.mark.parametrize("how", ["vmin=0", 'cmap="RdBu", vmin=-1'])
def test_a_heat_map_has_its_own_colours_in_each_scheme(write: Write, how: str) -> None:
    svg = finished(svg_of(write, HEAT.format(how=how)), "")
    assert "image-rendering:pixelated" in svg
    pairs = re.findall(r'<image class="(\w+)" xlink:href="[^,]*,([^"]*)"', svg)
    assert [name for name, _ in pairs] == list(SCHEMES)
    for (_, png), paper in zip(pairs, PAPER, strict=True):
        image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
        hexes = [
            f"#{r:02x}{g:02x}{b:02x}" for r, g, b in np.array(image).reshape(-1, 3)
        ]
        assert contrast(hexes[0], paper) < 1.1  # nothing is the paper
        assert contrast(hexes[3], paper) > 7
    other = svg_of(write, HEAT.format(how='cmap="viridis"'))
    assert finished(other, "").count("<image") == 1


@pytest.mark.skipif(not PACKAGES.is_dir(), reason="`make` installs npm's packages")
def test_a_figure_brings_the_glyphs_that_it_shows(write: Write) -> None:
    from fontTools.ttLib import TTFont

    bold = 'plt.text(0, 0, r"$\\sqrt{d_k}$", weight="bold")\nplt.axis("off")'
    svg = svg_of(write, f'plt.title("Hij → é", style="italic")\n{bold}')
    rules = fonts.face_rules(svg)
    assert rules == fonts.face_rules(svg)
    faces = re.findall(r"family:'([^']*)';font-style:(\w+);[^,]*,([^)]*)", rules)
    shown: dict[str, set[str]] = {}
    for family, _, data in faces:
        font = TTFont(io.BytesIO(base64.b64decode(data)))
        shown.setdefault(family, set()).update(map(chr, font.getBestCmap()))
    assert shown[fonts.FAMILY] >= set("Hijé dk")
    assert "→" in shown[fonts.FALLBACK]
    assert not set("Hij") & shown[fonts.FALLBACK]
    assert "√" in set().union(*shown.values())
    assert len(rules) < 30_000


def test_without_the_fonts_figures_fall_back(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setattr(fonts, "FOLDER", tmp_path)
    fonts.families.cache_clear()
    try:
        svg = finished(svg_of(write, HEAT.format(how="vmin=0")), "")
    finally:
        fonts.families.cache_clear()
    assert "font-family: 'DejaVu Sans'" in svg
    assert fonts.FAMILY not in svg


@pytest.mark.parametrize(
    ("how", "text", "scrolls"),
    [("", "", False), ("figsize=(9, 3)", "", True), ("", "fontsize=8", True)],
)
def test_no_text_is_smaller_than_12_pixels_on_a_phone(
    write: Write, how: str, text: str, scrolls: bool
) -> None:
    code = f'fig, ax = plt.subplots({how})\nax.set_ylabel("height", {text})'
    size = size_of(svg_of(write, code))
    assert (size.least_width > figures.PHONE) == scrolls


ARROW = 'plt.annotate("{}", (0.9, {y}), (0.6, {y}), va="center", arrowprops={{{how}}})'
PLAIN, FILLED = '"arrowstyle": "->"', '"arrowstyle": "-|>"'


@pytest.mark.parametrize(
    ("code", "problems"),
    [
        (
            'plt.xticks([0, 0.02, 1], ["zero", "almost", "one"], rotation=45)',
            ["the labels “zero” and “almost” overlap"],
        ),
        (
            "plt.plot([0, 1], [0, 1])\n"
            'plt.text(0.5, 0.5, "struck")\nplt.text(0.1, 0.9, "free")\n'
            'plt.text(0.2, 0.2, "boxed", bbox={"fc": "white"})',
            ["the label “struck” lies on a line"],
        ),
        (
            f"{ARROW.format('', y=0.8, how=FILLED)}\n"
            'plt.text(0.4, 0.4, "below the arrow, to the left of it")\n'
            f"{ARROW.format('', y=0.2, how=FILLED)}\n"
            'plt.text(0.75, 0.2, "shot", ha="center", va="center")\n'
            f"{ARROW.format('own', y=0, how=PLAIN)}",
            ["the label “shot” lies on an arrow"],
        ),
        ('plt.xticks(range(9), ["wednesday"] * 9, rotation=90)', []),
        (
            'plt.xticks(range(9), ["wednesday"] * 9)',
            ["the labels “wednesday” and “wednesday” overlap"],
        ),
    ],
)
def test_labels_that_touch_are_named(
    write: Write, code: str, problems: list[str]
) -> None:
    placed = drawn(write, code)
    assert placed.touching == "; ".join(problems)
    (*_, told) = figures.touching_problems([placed]) or [""]
    assert bool(told) is bool(problems)
