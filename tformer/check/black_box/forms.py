"""How a model is called, and where its logits stand in what it returns.

B batch · T length · V vocabulary
"""

import inspect
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from tformer.check.black_box.copying import Model

Form = Callable[[Model, Tensor, Mapping[str, object]], object]


class NotAsked(Exception):
    """A question cannot be asked; the message says why."""


class Unusable(Exception):
    """The model cannot be called at all; the message says why."""


def parameters_of(model: Model) -> list[str]:
    """Name what a model's forward takes; none if that cannot be read."""
    try:
        called = model.forward if isinstance(model, nn.Module) else model
        return [*inspect.signature(called).parameters]
    except (TypeError, ValueError):
        return []


def tensors_of(returned: object) -> list[Tensor]:
    """List the tensors that a model returned, its logits first."""
    if isinstance(returned, Mapping):
        returned = returned.get("logits", returned)
    returned = getattr(returned, "logits", returned)
    if isinstance(returned, np.ndarray):
        returned = torch.from_numpy(returned)
    if isinstance(returned, Tensor):
        return [returned]
    parts = returned if isinstance(returned, tuple | list) else ()
    return [tensor for part in parts for tensor in tensors_of(part)]


def logits_of(returned: object, rows: int, length: int) -> Tensor:
    """Find the logits (B, T, V) in what a model returned.

    Raises:
        TypeError: it holds no tensor, or none of floats.
        ValueError: none has this shape.
    """
    found = tensors_of(returned)
    if not found:
        raise TypeError(f"the model returned {type(returned).__name__}, not logits")
    for x in found:
        if x.is_floating_point() and x.ndim == 3 and x.shape[:2] == (rows, length):
            return x
        if x.is_floating_point() and x.ndim == 2 and len(x) == rows * length > 1:
            return x.reshape(rows, length, -1)
    shapes = " and ".join(str(tuple(x.shape)) for x in found)
    raise ValueError(f"of ids {(rows, length)} the model made {shapes}, not (B, T, V)")


def forms(model: Model) -> Iterator[Form]:
    """Yield ways to call a model, the plainest first."""

    def named(name: str) -> Form:  # without targets some score the last token alone
        return lambda call, ids, more: call(ids, **{name: ids.clone(), **more})

    yield lambda call, ids, more: call(ids, **more)
    names = parameters_of(model)
    yield from (named(name) for name in ("targets", "labels") if name in names)
    if "start_pos" in names:
        yield lambda call, ids, more: call(ids, **{"start_pos": 0, **more})
    if not isinstance(model, nn.Module):
        yield lambda call, ids, more: call(ids.cpu().numpy(), **more)


def told(error: BaseException) -> str:
    """Say in a line what was raised."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}"


def gap(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Say how far logits are apart at each position: (B, T), as shares and in full.

    A share is of the usual size of logits and of the logit's own. NaN or an infinity
    on one side alone counts as infinitely far.
    """
    same = (x == y) | (x.isnan() & y.isnan())
    apart = torch.where(same, 0.0, (x - y).abs()).nan_to_num(torch.inf, torch.inf)
    usual = x[x.abs() < 1e4]
    scale = usual.square().mean().sqrt() if len(usual) else torch.ones(())
    share = apart / (scale + x.abs().nan_to_num(0.0, 0.0, 0.0) + 1e-30)
    return share.amax(-1), apart.amax(-1)
