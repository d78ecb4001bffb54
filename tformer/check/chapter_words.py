"""Specs of functions of words and steps that only exercises of chapters ask for."""

import random
from collections import Counter
from itertools import pairwise

from tformer.check.chapter_calls import Merges, as_points, as_rows, by_chance, by_names
from tformer.check.chapter_functions import FEW, ChapterSpec
from tformer.check.spec import Case


@ChapterSpec(
    *(
        Case(f"step {step} of {steps}", (step, steps, 2.0, w))
        for step, steps, w in (
            *((1, 100, 10), (5, 100, 10), (10, 100, 10), (50, 100, 10), (81, 100, 10)),
            *((91, 100, 10), (100, 100, 10), (39, 40, 4)),
        )
    ),
    run=by_names,
    properties=FEW,
    wrong="""
    # optimizer#the-schedules
    no_stretch: You let the rate fall from the end of the warm-up on: it stays till the
        last fifth.
        (steps / 5) → (steps - warmup_steps)
    no_warm_up: You left out the warm-up.
        min(step / warmup_steps, 1.0, left) → min(1.0, left)
    no_fall: You left out the last fifth, in which the rate falls to 0.
        min(step / warmup_steps, 1.0, left) → min(step / warmup_steps, 1.0)
    peak_ignored: You left out `peak`.
        return peak * → return
    one_early: Your line reaches 0 in the last step; there a rest is left: the first
        step without any is the one after it.
        (steps + 1 - step) → (steps - step)
    half: You let the rate fall over the last half, not the last fifth.
        (steps / 5) → (steps / 2)
    """,
)
def stable_schedule(step: int, steps: int, *, peak: float, warmup_steps: int) -> float:
    """Take the lowest of three lines."""
    left = (steps + 1 - step) / (steps / 5)
    return peak * min(step / warmup_steps, 1.0, left)


_PIECES = [[*b"an"], [*"fü".encode()]]


@ChapterSpec(
    Case("no ids", ([], _PIECES)),
    Case("bytes of one letter each", ([98, 110, 256, 97], _PIECES)),
    Case("a letter of two tokens", ([257, 0xC3, 0xBC, 114], _PIECES)),
    Case("the second half of a letter", ([0xBC, 110], _PIECES)),
    run=as_points,
    properties=("state",),
    wrong="""
    # tokens#the-formula
    one_by_one: You decoded each piece by itself: a letter may lie in two of them.
        [b"".join(piece[i] for i in ids)] → [piece[i] for i in ids]
    ignored: You dropped bytes that are no letter; errors="replace" shows a sign.
        errors="replace" → errors="ignore"
    latin: Bytes of UTF-8 are no letters each.
        .decode(errors="replace") → .decode("latin-1")
    strict: Half a letter raises an error; errors="replace" shows a sign.
        .decode(errors="replace") → .decode()
    """,
)
def decode(ids: list[int], piece: dict[int, bytes]) -> str:
    """Join the bytes first."""
    pieces = [b"".join(piece[i] for i in ids)]
    return "".join(each.decode(errors="replace") for each in pieces)


def joined(ids: list[int], pair: tuple[int, int], new: int) -> list[int]:
    """Put `new` wherever the pair stands, from the left."""
    merged: list[int] = []
    for i in ids:
        if merged and (merged[-1], i) == pair:
            merged[-1] = new
        else:
            merged.append(i)
    return merged


@ChapterSpec(
    Case("one word", (["aaabdaaabac"], 3)),
    Case("equally often", (["cd", "ab"], 2)),
    Case("words that come again", (["low"] * 5 + ["lower"] * 2 + ["new"] * 6, 6)),
    run=as_rows,
    properties=FEW,
    wrong="""
    # tokens#the-formula
    words_once: You counted each different word once: count it as often as it comes.
        pairs[pair] += times[word] → pairs[pair] += 1
    larger_ids: Of pairs that come equally often, take the one with the smaller ids.
        -pair[0], -pair[1] → pair[0], pair[1]
    stale: You did not count anew after a merge.
        cut[word] = joined(ids, best, new) → joined(ids, best, new)
        max(pairs → max(pairs.keys() - merges.keys()
    from_0: The new ids begin at 256: those below are bytes.
        merges[best] = new → merges[best] = new - 256
    """,
)
def find_merges_faster(words: list[str], count: int) -> Merges:
    """Count all pairs again in each step."""
    times = Counter(words)
    cut = {word: [*word.encode()] for word in times}
    merges: Merges = {}
    for new in range(256, 256 + count):
        pairs: Counter[tuple[int, int]] = Counter()
        for word, ids in cut.items():
            for pair in pairwise(ids):
                pairs[pair] += times[word]
        best = max(pairs, key=lambda pair: (pairs[pair], -pair[0], -pair[1]))
        merges[best] = new
        for word, ids in cut.items():
            cut[word] = joined(ids, best, new)
    return merges


_MERGES = [[97, 97, 256], [97, 98, 257], [256, 257, 258]]


@ChapterSpec(
    Case("nothing is left out", ("aaabdaaabac", _MERGES, 0.0, 0)),
    Case("all is left out", ("aaabdaaabac", _MERGES, 1.0, 0)),
    Case("a half, by the numbers of `chance`", ("aaab", _MERGES, 0.5, 3)),
    run=by_chance,
    properties=("state",),
    wrong="""
    # tokens#the-formula
    kept: You keep a merge with the probability p; p is that it is left out.
        >= p → < p
    at_once: You drew once for the word: each merge has a draw of its own.
        ids = [*word.encode()] → ids, drawn = [*word.encode()], chance.random()
        if chance.random() >= p: → if drawn >= p:
    never: You left out no merge.
        >= p → >= 0
    """,
)
def encode_with_dropout(
    word: str, merges: Merges, p: float, chance: random.Random
) -> list[int]:
    """Leave out each merge with probability p."""
    ids = [*word.encode()]
    for pair, new in merges.items():
        if chance.random() >= p:
            ids = joined(ids, pair, new)
    return ids
