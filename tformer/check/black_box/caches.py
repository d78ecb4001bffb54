"""Whether a text that is read piece by piece, with a cache, has the same logits.

B batch · T length · V vocabulary
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import torch
from torch import Tensor

from tformer.check.black_box.box import Box
from tformer.check.black_box.copying import Model, module_in
from tformer.check.black_box.forms import NotAsked, gap, logits_of, parameters_of, told
from tformer.check.black_box.report import Finding, Number

PASSED = ("past_key_values", "past_kvs", "past_kv", "past", "layer_past", "kv_cache")
MADE = ("new_cache", "make_cache", "init_cache", "create_cache", "empty_cache")
TAKEN = ("cache", "kv_cache", "caches", "past_key_values")
AT_ONCE = "at once, into an empty cache"
RESET = ("reset_kv_cache", "reset_cache", "clear_cache", "clear_kv_cache")


class Reader(Protocol):
    """Reads a text from its beginning, a piece in each call."""

    def __call__(self, piece: Tensor) -> Tensor:
        """Score a piece (B, T), with those before it in the cache."""


class Made:
    """Of `model.new_cache(max_len)`, which forward takes."""

    def __init__(self, box: Box, make: Callable[..., object], name: str) -> None:
        self.box, self.name = box, name
        try:
            self.cache = make(box.longest)
        except TypeError:
            self.cache = make()

    def __call__(self, piece: Tensor) -> Tensor:
        """Score a piece."""
        return self.box(piece, model=self.box.model, more={self.name: self.cache})


class Passed:
    """A cache that a call returns beside the logits, and the next one takes."""

    def __init__(self, box: Box, name: str, names: list[str]) -> None:
        self.box, self.name = box, name
        self.more: dict[str, object] = (
            {"use_cache": True} if "use_cache" in names else {}
        )
        self.cache: object = None

    def __call__(self, piece: Tensor) -> Tensor:
        """Score a piece."""
        given = {} if self.cache is None else {self.name: self.cache}
        out = self.box.raw(piece, {**self.more, **given}, self.box.model)
        self.cache = self.found(out)
        if self.cache is None:
            raise NotAsked(f"no call returns what {self.name} takes")
        return logits_of(out, *piece.shape).detach().to("cpu", torch.float64)

    def found(self, out: object) -> object:
        """Find the cache in what was returned."""
        for holder in (self.name, "past_key_values"):
            value = (
                out.get(holder) if isinstance(out, dict) else getattr(out, holder, None)
            )
            if value is not None:
                return value
        parts = out if isinstance(out, tuple | list) else ()
        rest = [x for x in parts if x is not None]
        return rest[1] if len(rest) == 2 and not is_number(rest[1]) else None


def is_number(x: object) -> bool:
    """Say whether it is a loss and no cache."""
    return isinstance(x, Tensor) and x.numel() == 1


class Kept:
    """A cache inside of the model, switched on by an argument."""

    def __init__(self, box: Box, names: list[str]) -> None:
        self.box, self.starts, self.begin = box, "start_pos" in names, 0
        self.switch = {"use_cache": True} if "use_cache" in names else {}
        reset = next(
            (getattr(box.model, x) for x in RESET if hasattr(box.model, x)), None
        )
        if reset is not None:
            reset()

    def __call__(self, piece: Tensor) -> Tensor:
        """Score a piece."""
        more: dict[str, object] = {"start_pos": self.begin} if self.starts else {}
        more |= self.switch
        self.begin += piece.shape[1]
        return self.box(piece, model=self.box.model, more=more)


def reader_of(box: Box) -> Callable[[], Reader]:
    """Find how the model's cache is used.

    Raises:
        NotAsked: it offers none that is known here.
    """
    names, module = parameters_of(box.model), module_in(box.model)
    for name in MADE:
        make = getattr(box.model, name, None)
        taken = next((x for x in TAKEN if x in names), None)
        if callable(make) and taken:
            return lambda: Made(box, make, taken)
    for name in PASSED:
        if name in names:
            return lambda: Passed(box, name, names)
    resets = any(hasattr(box.model, name) for name in RESET)
    if module is not None and (
        ("use_cache" in names and resets) or "start_pos" in names
    ):
        return lambda: Kept(box, names)
    raise NotAsked("the model offers no cache")


def read(reader: Reader, text: Tensor, sizes: list[int]) -> Tensor:
    """Read a text in pieces: (B, T, V)."""
    return torch.cat([reader(piece) for piece in torch.split(text, sizes, 1)], 1)


def cache(box: Box) -> Iterator[Finding]:
    """Read texts in several ways, and compare each with the whole."""
    box = box.with_model(box.fresh() or box.model)  # some keep their cache inside
    make = reader_of(box)
    if box.by_chance:
        raise NotAsked("two calls differ")
    T = min(max(box.longest // 2, 8), box.longest, 40)  # room for a second text
    if T < 4:
        raise NotAsked(f"it takes texts of {T} tokens at most")
    rows = 2 if not box.coupled and box.takes(2, T) else 1
    text = box.draw(rows, T, seed=60)
    whole = box(text)
    piece = (T - 2) // 2
    ways = (
        (AT_ONCE, [T]),
        ("one token at a time", [1] * T),
        ("one token at a time after a beginning", [T // 2] + [1] * (T - T // 2)),
        ("in pieces of several tokens", [2, piece, T - 2 - piece]),
    )
    ones = False
    skipped = []
    for how, sizes in ways:
        try:
            logits = read(make(), text, sizes)
        except NotAsked:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it raises
            skipped.append(f"{how}: {told(error)}")
            continue
        share, size = gap(whole, logits)
        ones = ones or how == "one token at a time"
        if share.max() > box.far:
            i = int((share > box.far).any(0).nonzero()[0])
            cause = cause_of(box, make, text, how, ones, sizes)
            change = float(size.max())
            numbers: dict[str, Number] = {"how": how, "i": i, "change": change}
            yield Finding("cache", cause, numbers)
            return
    try:
        logits = read(make(), box.other(text), [1, T - 1] if ones else [T])
        share, size = gap(whole, read(make(), text, [T]))
        if share.max() > box.far:
            at = int((share > box.far).any(0).nonzero()[0])
            yield Finding("cache", "again", {"i": at, "change": float(size.max())})
            return
    except Exception as error:  # noqa: BLE001 - whatever it raises
        skipped.append(f"a second text: {told(error)}")
    if skipped:
        raise NotAsked("; ".join(skipped))


def cause_of(
    box: Box,
    make: Callable[[], Reader],
    text: Tensor,
    how: str,
    ones: bool,
    sizes: list[int],
) -> str:
    """Say what a cache does wrong, where an experiment tells."""
    T = text.shape[1]
    if how != AT_ONCE:
        try:
            again = read(make(), text, [T])
        except Exception:  # noqa: BLE001 - as if it had no room any more
            return "again"
        if gap(box(text), again)[0].max() > box.far:
            return "again"
    if "pieces" in how and ones:
        return "pieces"
    if len(sizes) > 1:
        other = torch.cat((box.other(text)[:, :-1], text[:, -1:]), 1)
        last, same = (read(make(), x, sizes)[:, -1:] for x in (text, other))
        if (
            gap(last, same)[0].max()
            <= box.far
            < gap(box(text), box(other))[0][:, -1].max()
        ):
            return "forgets"
    fresh = box.fresh()
    if len(sizes) > 1 and fresh is not None and without_positions(fresh):
        blind = box.with_model(fresh)
        logits = read(reader_of(blind)(), text, sizes)
        if gap(blind(text), logits)[0].max() <= box.far:
            return "positions"
    return "differs"


def without_positions(model: Model) -> bool:
    """Make all positions of a model the same; say whether it had any by name."""
    module = module_in(model)
    changed = False
    if module is not None:
        for name, x in (*module.named_parameters(), *module.named_buffers()):
            short = name.rpartition(".")[2]
            if any(part in name for part in ("pos", "wpe")) and x.ndim >= 2:
                x.data = (
                    x.data.flatten(0, -2)[:1].expand(x.shape[-2:]).expand_as(x).clone()
                )
            elif "cos" in short or "freqs_cis" in short:
                x.data = torch.ones_like(x)
            elif "sin" in short or "inv_freq" in short or short == "frequencies":
                x.data = torch.zeros_like(x)
            else:
                continue
            changed = True
    return changed
