"""What the engine in the page computes, held to the package, number by number."""

import base64
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Page
from torch import Tensor

from live_recorded import Case, attention_names, choices, exact, expected
from live_serving import LiveSite
from tformer import Transformer, save_checkpoint
from tformer.data.vocabulary import CharacterVocabulary
from tformer.pretrained import load_pretrained
from tformer.tasks.dates import date_examples

ASK = Path(__file__).with_name("parity.js").read_text("utf-8")
MAX_LEN = 11
BATCH = 10  # cases of one message
OFF = 1e-4  # how far numbers may be apart


def check_step(name: str, ours: Tensor, theirs: Tensor, case: Case) -> None:
    """Compare the numbers of one step; attention weights are at most 1."""
    assert ours.shape == theirs.shape, (name, ours.shape, theirs.shape)
    infinite = theirs.isinf()
    assert torch.equal(ours.isinf(), infinite), (name, "another mask", case)
    ours, theirs = (x.masked_fill(infinite, 0.0) for x in (ours, theirs))
    off = (ours - theirs).abs()
    # float32 has seven digits: where numbers are large, so are differences
    allowed = OFF * theirs.abs().clamp(min=1)
    if name.endswith(":weights") or name == "logits":
        allowed = OFF if name == "logits" else OFF / 10
    assert bool((off <= allowed).all()), (name, float(off.max()), case)


def cases(
    count: int, model: Transformer, *, seed: int = 0, sources: Sequence[list[int]] = ()
) -> list[Case]:
    """Draw inputs and ablations; the first quarter is unbroken."""
    draw = random.Random(seed)
    numbers = attention_names(model).items()
    heads = [f"{name}:{h}" for name, number in numbers for h in range(number)]
    vocab_size = model.src_embedding.vocab_size
    tgt_size = model.tgt_embedding.vocab_size
    drawn = []
    for i in range(count):
        source = [draw.randrange(3, vocab_size) for _ in range(draw.randint(1, 40))]
        if sources and i % 4 < 3:
            source = [*sources[i % len(sources)]]
        if i % 7 == 3:  # characters that the model never saw
            source[draw.randrange(len(source))] = 0
        target = [draw.randrange(3, tgt_size) for _ in range(draw.randint(0, 10))]
        changes: dict[str, Any] = {}
        if i >= count // 4:
            share = draw.choice((0.0, 0.1, 0.5))
            changes = {
                "off": tuple(head for head in heads if draw.random() < share),
                "scale": draw.choice((1.0, 1.0, 0.5, 4.0, draw.random())),
                "positions": draw.choice((1.0, 1.0, 0.5, 0.0)),
                "causal": draw.random() < 0.7,
            }
        drawn.append(Case((*source, 2), (1, *target), whole=i % 8 == 5, **changes))
    return drawn


@cache
def dates_read(count: int) -> list[list[int]]:
    """Texts of the test of the dates, as the model reads them."""
    vocabulary = load_pretrained("dates-as-typed").vocabulary
    examples = date_examples(count, seed=5, split="test")
    return [vocabulary.encode(example.text) for example in examples]


def check_written(model: Transformer, case: Case, ids: list[int], gap: float) -> None:
    """Hold a text to the package's choices: the likeliest token, up to equal ones."""
    assert 1 <= len(ids) <= MAX_LEN
    assert ids[-1] == 2 or len(ids) == MAX_LEN
    assert 2 not in ids[:-1]
    logits = choices(model, case, tuple(ids[:-1]))
    behind = logits.amax(-1) - logits[range(len(ids)), ids]
    assert bool((behind <= gap).all()), (ids, behind, case)


def check_parity(page: Page, name: str, model: Transformer, asked: list[Case]) -> None:
    """Ask the engine in a page and the package the same, and compare all of it."""
    seen: set[str] = set()
    model = exact(model)
    for start in range(0, len(asked), BATCH):
        some = asked[start : start + BATCH]
        given = {"name": name, "cases": [case.asked() for case in some]}
        for case, answer in zip(some, page.evaluate(ASK, given), strict=True):
            theirs = expected(model, case)
            numbers = answer["numbers"]
            if case.whole:
                assert set(numbers) == set(theirs), set(numbers) ^ set(theirs)
            for step, packed in numbers.items():
                check_step(step, unpacked(packed), theirs[step], case)
            seen |= set(numbers)
            check_written(model, case, answer["ids"], 2 * OFF)
    assert {f"{n}:weights" for n in attention_names(model)} | {"logits"} <= seen


def unpacked(packed: dict[str, Any]) -> Tensor:
    data = bytearray(base64.b64decode(packed["data"]))
    return torch.frombuffer(data, dtype=torch.float32).view(packed["shape"]).double()


def publish(site: LiveSite, name: str, model: Transformer, folder: Path) -> None:
    """Serve a model of a test under a name."""
    characters = "".join(map(chr, range(0x4E00, 0x4E00 + model.config.vocab_size - 3)))
    vocabulary = CharacterVocabulary(characters)
    save_checkpoint(folder / name, model, vocabulary=vocabulary)
    for path in (folder / name).iterdir():
        site.changed[f"/live/models/{name}/{path.name}"] = path.read_bytes()
