"""What each layer of any model brings for some ids, found by hooks.

B batch · T length · D d_model · V vocabulary
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

Model = Callable[[Tensor], object]
ATTENTION = re.compile(r"(attn|attention|mha|_sa|^sa)$", re.IGNORECASE)
FEED_FORWARD = re.compile(r"(mlp|ffn?|ffwd|feed_?forward|moe|experts?)$", re.IGNORECASE)
NUMBERED = re.compile(r"^(.*?)(\d+)$")


class Key(NamedTuple):
    """Which layer: its role, and of a block or a part of one the number from 0."""

    role: str  # embedding, attention, feed-forward, block, norm, logits
    block: int | None = None

    def __str__(self) -> str:
        if self.block is None:
            return {"norm": "final norm"}.get(self.role, self.role)
        inner = "" if self.role == "block" else f" ({self.role})"
        return f"block {self.block}{inner}"


def together(keys: Sequence[Key]) -> str:
    """Name several layers, the blocks of one role in one."""
    roles = dict.fromkeys(key.role for key in keys)
    said = []
    for role in roles:
        numbers = [str(k.block) for k in keys if k.role == role and k.block is not None]
        if len(numbers) < 2:
            said += [str(key) for key in keys if key.role == role]
        else:
            inner = "" if role == "block" else f" ({role})"
            said.append(f"blocks {', '.join(numbers)}{inner}")
    return "; ".join(said)


class Row(NamedTuple):
    """What a layer brought."""

    value: Tensor  # (B, T, D), of the logits (B, T, V)
    module: str  # its name in the model
    how: str  # by what it was found: name, order, or input of a block


@dataclass(frozen=True)
class Recorded:
    """The rows of a model in the order in which they are computed."""

    rows: Mapping[Key, Row]
    inputs: Sequence[Tensor]  # of each block
    coarsest: torch.dtype  # the narrowest in which a number was computed

    @property
    def logits(self) -> Tensor:
        """(B, T, V), or (B, 1, V) of a model that scores the last position only."""
        return self.rows[Key("logits")].value


class Call(NamedTuple):
    """A module that ran."""

    name: str
    module: nn.Module
    came: Tensor | None
    went: Tensor | None


class Narrowest(TorchFunctionMode):
    """Notes the narrowest floating dtype of all that is computed."""

    dtype = torch.float64

    def __torch_function__(
        self,
        func: Callable[..., object],
        _: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Run it, and look at what came."""
        came = func(*args, **(kwargs or {}))
        for x in came if isinstance(came, tuple | list) else (came,):
            if isinstance(x, Tensor) and x.is_floating_point() and x.numel() > 1:
                wider = torch.finfo(x.dtype).eps <= torch.finfo(self.dtype).eps
                self.dtype = self.dtype if wider else x.dtype
        return came


def first_tensor(came: object) -> Tensor | None:
    """Return the logits, the tensor itself, or the first of several."""
    if came is None or isinstance(came, Tensor):
        return came
    logits = getattr(came, "logits", None)
    if isinstance(logits, Tensor):
        return logits
    parts = came.values() if isinstance(came, Mapping) else came
    if isinstance(parts, Sequence) or isinstance(came, Mapping):
        tensors = (x for x in parts if isinstance(x, Tensor))  # type: ignore[attr-defined]
        return next(tensors, None)
    return None


def kept(given: object) -> Tensor | None:
    """Copy the first tensor."""
    x = first_tensor(given)
    return None if x is None else x.detach().clone()


@contextmanager
def recording(model: nn.Module) -> Iterator[list[Call]]:
    """Keep a call of every module of a model, in the order in which they end."""
    calls: list[Call] = []
    came: list[Tensor | None] = []  # of the modules that have not ended
    hooks = []

    def begin(
        _: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        came.append(kept([*args, *kwargs.values()]))  # it may be added to in place

    def end(name: str, module: nn.Module, _: object, out: object) -> None:
        calls.append(Call(name, module, came.pop(), kept(out)))

    for name, module in model.named_modules():
        hooks.append(module.register_forward_pre_hook(begin, with_kwargs=True))
        hooks.append(module.register_forward_hook(partial(end, name)))
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # it would pass modules by
    try:
        yield calls
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def record(model: Model, ids: Tensor) -> Recorded:
    """Run a model on ids (B, T) and find its layers.

    The model is a module, or any function of ids: of that the logits alone are known.

    Raises:
        ValueError: what it returns is no (B, T, V).
    """
    calls: list[Call] = []
    with Narrowest() as narrowest:
        if isinstance(model, nn.Module):
            with recording(model) as calls:
                went = model(ids)
        else:
            went = model(ids)
    logits = first_tensor(went)
    if logits is None or logits.ndim != 3 or logits.shape[:1] != ids.shape[:1]:
        what = type(went).__name__ if logits is None else tuple(logits.shape)
        told = f"of ids {tuple(ids.shape)} the logits must be (batch, length, vocab)"
        raise ValueError(f"{told}, not {what}")
    if not logits.is_floating_point():
        raise ValueError(f"logits must be floats, not {logits.dtype}")
    rows: dict[Key, Row] = {}
    blocks = find_blocks(calls)
    inputs = [call.came for call in blocks if call.came is not None]
    if blocks:
        rows[Key("embedding")] = Row(inputs[0], blocks[0].name, "what goes into it")
    for i, block in enumerate(blocks):
        rows |= parts_of(block, calls, i)
        if block.went is not None:
            rows[Key("block", i)] = Row(block.went, block.name, "name")
    after = [x for x in after_blocks(calls, blocks) if x.went is not None]
    if after and after[-1].went is not None:
        rows[Key("norm")] = Row(after[-1].went, after[-1].name, "order")
    rows[Key("logits")] = Row(logits.detach(), "", "what the model returns")
    return Recorded(rows, inputs, narrowest.dtype)


def same_shape(call: Call) -> bool:
    """Whether it maps (B, T, D) to (B, T, D)."""
    if call.came is None or call.went is None or call.came.ndim != 3:
        return False
    return call.came.is_floating_point() and call.came.shape == call.went.shape


def matrices(module: nn.Module) -> int:
    """Count the weights with two axes or more."""
    return sum(x.ndim > 1 for x in module.parameters())


def find_blocks(calls: Sequence[Call]) -> list[Call]:
    """Find the largest group of numbered modules that lies nearest to the top."""
    groups: dict[str, list[Call]] = {}
    for call in calls:
        found = NUMBERED.match(call.name)
        if found and same_shape(call) and matrices(call.module) > 1:
            groups.setdefault(found[1], []).append(call)
    if not groups:
        return []
    depths = {prefix: prefix.rstrip(".").count(".") for prefix in groups}
    best = min(groups, key=lambda prefix: (depths[prefix], -len(groups[prefix])))
    return groups[best]


def parts_of(block: Call, calls: Sequence[Call], i: int) -> dict[Key, Row]:
    """Find attention and feed-forward of a block by name, else by their order."""
    inside = [
        call
        for call in calls
        if call.name.startswith(f"{block.name}.") and same_shape(call)
    ]
    inside = [call for call in inside if matrices(call.module) > 1]
    rest = {id(call): call.name.removeprefix(f"{block.name}.") for call in inside}
    inside.sort(key=lambda call: rest[id(call)].count("."))
    rows: dict[Key, Row] = {}
    for role, words in (("attention", ATTENTION), ("feed-forward", FEED_FORWARD)):
        named = [call for call in inside if words.search(rest[id(call)])]
        if named and named[0].went is not None:
            rows[Key(role, i)] = Row(named[0].went, named[0].name, "name")
    if not rows and len(inside) > 1:
        depth = rest[id(inside[0])].count(".")
        top = [call for call in inside if rest[id(call)].count(".") == depth]
        for role, call in zip(("attention", "feed-forward"), top, strict=False):
            if call.went is not None:
                rows[Key(role, i)] = Row(call.went, call.name, "order")
    return rows


def after_blocks(calls: Sequence[Call], blocks: Sequence[Call]) -> list[Call]:
    """List what ran after the last block, on (B, T, D), and holds no block."""
    if not blocks:
        return []
    last = max(i for i, call in enumerate(calls) if call is blocks[-1])
    return [
        call
        for call in calls[last + 1 :]
        if same_shape(call)
        and call.name
        and not any(f"{b.name}.".startswith(f"{call.name}.") for b in blocks)
    ]
