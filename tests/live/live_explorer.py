"""Reading what the explorer shows, and what the package computes there.

Everything is read from the page: labels, numbers, tables, widths of lines.
"""

from collections.abc import Sequence
from functools import cache
from math import inf
from typing import Any

import torch
from playwright.sync_api import Page
from torch import Tensor

from live_driving import number, table
from live_recorded import Case, exact, expected
from parity import check_written
from tformer import Transformer, greedy
from tformer.data.vocabulary import CharacterVocabulary
from tformer.pretrained import load_pretrained

MODEL = '<figure class="live" data-live="model"><p>The picture.</p></figure>'
TEXT = "jeudi 3 mai 1979"
CROSS = "decoder.blocks.1.cross_attention"
STACKS = {
    "Encoder self-attention": ("encoder", "attention"),
    "Masked self-attention": ("decoder", "attention"),
    "Cross-attention": ("decoder", "cross_attention"),
}
SETTLED = """() => {
  const { turn, asked } = document.querySelector("live-model")?.dataset ?? {}
  return turn && turn === asked
}"""
BARS = """items => items.map(item => [
  item.querySelector(".bar-name").innerText,
  item.querySelector(".bar-number").firstChild.textContent])"""
TRAINED, WITHOUT_MASK = "dates-as-typed", "dates-as-typed-without-mask"
HEADS = [
    (f"{title}, layer {n + 1}, head {head + 1}", f"{stack}.blocks.{n}.{of}", head)
    for title, (stack, of) in STACKS.items()
    for n in range(2)
    for head in range(4)
]


@cache
def loaded(name: str = TRAINED) -> tuple[Transformer, CharacterVocabulary]:
    trained = load_pretrained(name)
    vocabulary = trained.vocabulary
    assert isinstance(trained.model, Transformer)
    assert isinstance(vocabulary, CharacterVocabulary)
    return exact(trained.model), vocabulary


def ids_of(text: str) -> list[int]:
    """The ids that are read: characters that the model never saw are padding."""
    vocabulary = loaded()[1]
    known = set(vocabulary.characters)
    return [vocabulary.encode(c)[0] if c in known else 0 for c in text] + [2]


def marks(text: str) -> list[str]:
    """How the tokens of a text stand in a picture."""
    return [*text.replace(" ", "␣"), "▮"]


def case_of(text: str, written: Sequence[str], **changes: Any) -> Case:
    """The package's pass that wrote the last of these tokens."""
    target = ids_written(["▷", *written[:-1]])
    return Case(tuple(ids_of(text)), tuple(target), **changes)


def written_by(text: str, name: str = TRAINED) -> str:
    """What the package writes."""
    model, vocabulary = loaded(name)
    source = torch.tensor([ids_of(text)])
    ids = greedy(model, source, max_len=11, eos_id=2, bos_id=1)
    return vocabulary.decode(ids[0].tolist())


def ids_written(written: Sequence[str]) -> list[int]:
    """The ids of tokens, as they stand in a picture."""
    special = {"▮": 2, "▷": 1, "␣": ids_of(" ")[0]}
    return [special[c] if c in special else ids_of(c)[0] for c in written]


def computed(case: Case, model: str = TRAINED) -> dict[str, Tensor]:
    return expected(loaded(model)[0], case)


def settled(page: Page) -> Page:
    """Wait until what was asked for last is drawn."""
    page.wait_for_function(SETTLED)
    return page


def row(page: Page, which: str) -> list[str]:
    """The tokens of a row of the picture: "source" or "written"."""
    return page.locator(f".stage-{which} .stage-token bdi").all_inner_texts()


def type_text(page: Page, text: str) -> Page:
    page.get_by_label("A date, in any").fill(text)
    page.keyboard.press("Enter")
    return settled(page)


def pick(page: Page, name: str) -> Page:
    """Pick a head among the maps by its name for assistive technology."""
    head = page.locator(".maps-head").and_(page.get_by_label(name))
    head.focus()
    head.dispatch_event("click")
    return settled(page)


def follow(page: Page, which: str, at: int) -> Page:
    page.locator(f".stage-{which} .stage-token").nth(at).click()
    return settled(page)


def bars(page: Page) -> dict[str, float]:
    """The likeliest tokens and their probabilities, as they stand beside the bars."""
    found = page.locator(".bars > li").evaluate_all(BARS)
    return {name: chance(text) for name, text in found}


def chance(text: str) -> float:
    """Read "93.4 %", and "< 0.1 %" as 0 and "> 99.9 %" as 1."""
    if text[0] in "<>":
        return 0.0 if text[0] == "<" else 1.0
    return number(text)


def check_picture(page: Page, text: str, **changes: Any) -> None:
    """Hold tokens, lines, bars and the numbers below the tokens to the package."""
    written = row(page, "written")
    assert row(page, "source") == marks(text)
    theirs = computed(case_of(text, written, **changes))
    p = theirs["probabilities"]
    shown = page.locator(".stage-written small").all_inner_texts()
    for t, (percent, i) in enumerate(zip(shown, ids_written(written), strict=True)):
        assert abs(float(percent) / 100 - p[t, i].item()) <= 0.0051
    tokens = page.locator(".stage-written button")
    here = tokens.evaluate_all("all => all.findIndex(x => x.ariaCurrent === 'true')")
    found = bars(page)
    for i, value in zip(ids_written(found), found.values(), strict=True):
        assert abs(value - p[here, i].item()) <= 0.00051, found
    weights = theirs[f"{CROSS}:weights"][2]
    drawn = lines(page)
    assert set(drawn) == {tuple(x) for x in (weights >= 0.03).nonzero().tolist()}
    for (t, s), weight in drawn.items():
        assert abs(weight - weights[t, s].item()) <= 0.002


def check_weights(page: Page, weights: Tensor) -> tuple[list[str], list[str]]:
    """Hold the table of a head to its weights; return its columns' and rows' names."""
    heading, *rows = table(page, "Weights: a row for each query")
    for cells, expected_ in zip(rows, weights, strict=True):
        assert close([number(x) for x in cells[1:]], expected_, 3)
    return heading[1:], [cells[0] for cells in rows]


def check_text(case: Case, written: Sequence[str], model: str = TRAINED) -> None:
    """Hold a text in the picture to the package's choices."""
    check_written(loaded(model)[0], case, ids_written(written), 1e-3)


def wires(page: Page) -> dict[tuple[str, ...], float]:
    """The weights of lines and arcs, by their ends, as their widths tell."""
    pairs = page.locator(".stage-wires path").evaluate_all(
        "all => all.map(x => [x.dataset.pair, Number(x.getAttribute('stroke-width'))])"
    )
    return {tuple(pair.split()): (width - 0.4) / 6.6 for pair, width in pairs}


def lines(page: Page) -> dict[tuple[int, int], float]:
    """The weights of the lines, by token written and read."""
    found = wires(page).items()
    return {(int(t), int(s)): x for (t, s), x in found if t != "arc"}


def arcs(page: Page) -> dict[int, float]:
    """The weights of the arcs, by the token to which they lead."""
    return {int(s): x for (t, s), x in wires(page).items() if t == "arc"}


def steps(page: Page, stage: str) -> dict[str, dict[str, Any]]:
    """Open a stage of the path; return what each step shows, by its title.

    A step has its parts by name: a list of numbers, or a list of (token, number).
    """
    button = page.locator(f".path-stage[data-stage='{stage}']")
    if button.get_attribute("aria-expanded") != "true":
        button.click()
        settled(page)
    folds = page.locator(".path-step details")
    folds.evaluate_all("folds => folds.forEach(fold => { fold.open = true })")
    page.wait_for_function(FILLED)  # a table is made when its fold opens
    found: list[list[Any]] = page.locator(".path-step").evaluate_all(READ)
    return {
        title: {name: part_of(*part) for name, part in parts} for title, parts in found
    }


FILLED = """() => [...document.querySelectorAll(".path-step details")].every(
  fold => fold.querySelector("tbody tr"))"""
READ = """steps => steps.map(step => [
  step.querySelector(".path-title").innerText,
  [...step.querySelectorAll(":scope .strip")].map(strip => [
    strip.querySelector(".strip-name").innerText,
    [...strip.querySelectorAll(".numbers > li")].map(li =>
      [li.querySelector("bdi").innerText, li.querySelector(".number").innerText]),
    [...strip.querySelectorAll("tbody tr")].map(tr =>
      [...tr.cells].map(cell => cell.innerText)),
  ]).map(([name, row, table]) => [name, [row, table]]),
])"""


def part_of(labelled: list[Any], table: list[Any]) -> Any:
    if labelled:
        return [(mark, -inf if x == "−∞" else number(x)) for mark, x in labelled]
    order: list[tuple[str, list[float]]] = []
    for name, *cells in table:
        mark = name.rsplit(" ", 1)[0] if " " in name else ""
        if name.rsplit(" ", 1)[-1] == "1" or not order:
            order.append((mark, []))
        order[-1][1].extend(number(cell) for cell in cells if cell)
    return order[0][1] if len(order) == 1 else order


def close(shown: Sequence[float], theirs: Tensor, digits: int) -> bool:
    """Whether numbers are the package's, rounded to so many digits after the point.

    The engine computes in float32, and large numbers have fewer digits there.
    """
    ours = torch.tensor(shown, dtype=torch.float64)
    if ours.shape != theirs.shape:
        return False
    infinite = theirs.isinf()
    if not torch.equal(ours.isinf(), infinite):
        return False
    off = (ours - theirs).masked_fill(infinite, 0).abs()
    slack = 1e-4 * theirs.masked_fill(infinite, 0).abs().clamp(min=1)
    return bool((off <= 0.5 * 10.0**-digits + slack).all())
