"""How functions of the chapters' exercises are called that take what is no array."""

import random
from collections.abc import Callable

import numpy as np

Function = Callable[..., object]
Merges = dict[tuple[int, int], int]


def of_a_mixture(reaches: Function, mixture: np.ndarray, T: int) -> object:
    """Ask about a function that mixes tokens as the rows of a matrix say."""
    return reaches(lambda x: (mixture[:, :, None] * x[None]).sum(1) ** 3, T)


def as_points(decode: Function, ids: list[int], more: list[list[int]]) -> object:
    """Read a text as the numbers of its characters; `more` are pieces from 256 on."""
    pieces = [*([i] for i in range(256)), *more]
    text = decode(ids, {i: bytes(piece) for i, piece in enumerate(pieces)})
    if not isinstance(text, str):
        raise TypeError(f"it returns {type(text).__name__}, not str")
    return [len(text), *map(ord, text)]


def as_rows(find_merges: Function, words: list[str], count: int) -> object:
    """Read merges as rows (left, right, new), in the order in which they were found."""
    merges = find_merges(words, count)
    if not isinstance(merges, dict):
        raise TypeError(f"it returns {type(merges).__name__}, not a dictionary")
    return [number for pair, new in merges.items() for number in (*pair, new)]


def by_chance(
    encode: Function, word: str, rows: list[list[int]], p: float, seed: int
) -> object:
    """Give merges as a dictionary, and chance as a generator."""
    merges: Merges = {(left, right): new for left, right, new in rows}
    return encode(word, merges, p, random.Random(seed))


def by_names(
    schedule: Function, step: int, steps: int, peak: float, warmup_steps: int
) -> object:
    """Give the last two by their names."""
    return schedule(step, steps, peak=peak, warmup_steps=warmup_steps)


CHAPTER_RUNS = (of_a_mixture, as_points, as_rows, by_chance, by_names)
