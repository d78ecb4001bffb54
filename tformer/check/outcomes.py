"""What functions are given and what they return, in NumPy and in torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Normal = Callable[[np.ndarray], np.ndarray]
WIDE = {"float64", "float32", "float16", "bfloat16"}


@dataclass(frozen=True)
class Outcome:
    """What a call returned: arrays, floats in float64, and their dtype; or an error."""

    arrays: tuple[np.ndarray, ...] = ()
    dtype: str | None = None  # of the first floating array, as it was returned
    error: str | None = None


def strided(x: np.ndarray) -> np.ndarray:
    """Copy an array so that its numbers lie column by column, with gaps."""
    room = np.zeros((*x.shape[::-1], 2), x.dtype)
    view = room[..., 0].T
    view[...] = x
    return view


def give(x: Any, framework: str, dtype: str = "float64", layout: str = "rows") -> Any:
    """Copy a value of a case for a function; arrays become the framework's.

    Args:
        x: an array, whose floats get `dtype`, or anything else.
        framework: "torch" or "numpy".
        dtype: of floats.
        layout: "rows", or "strided".
    """
    if hasattr(x, "speaking"):
        return x.speaking(framework)
    if not isinstance(x, np.ndarray):
        return list(x) if isinstance(x, list) else x
    x = strided(x) if layout == "strided" else x.copy()
    floating = x.dtype.kind == "f"
    if framework == "torch":
        import torch

        tensor = torch.from_numpy(x)
        return tensor.to(getattr(torch, dtype)) if floating else tensor
    return x.astype(dtype) if floating else x


def as_numpy(x: Any) -> np.ndarray:
    """Make an array of what a function returned; floats become float64."""
    if hasattr(x, "detach"):  # a tensor
        x = x.detach()
        x = (x.double() if x.is_floating_point() else x).numpy()
    array = np.array(x)  # a copy
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def read(returned: Any, normal: Normal = lambda x: x) -> Outcome:
    """Read what a function returned: an array or a number, or several of them."""
    several = isinstance(returned, tuple | list)
    if several and all(isinstance(x, int | float) for x in returned):
        several = False  # a list of ids is one array
    parts = list(returned) if several else [returned]
    names = [str(getattr(x, "dtype", "")).removeprefix("torch.") for x in parts]
    dtype = next((name for name in names if name in WIDE), None)
    return Outcome(tuple(normal(as_numpy(x)) for x in parts), dtype)


def difference(given: Outcome, right: Outcome, rtol: float) -> tuple[str, str] | None:
    """Compare outcomes; return the kind of the first difference and a sentence."""
    if given.error or right.error:
        both = given.error and right.error
        return None if both else ("error", f"it raises {given.error}")
    if len(given.arrays) != len(right.arrays):
        told = f"it returns {len(given.arrays)} results, not {len(right.arrays)}"
        return "shape", told
    for x, y in zip(given.arrays, right.arrays, strict=True):
        found = _of_arrays(x, y, rtol)
        if found:
            return found
    return None


def _of_arrays(x: np.ndarray, y: np.ndarray, rtol: float) -> tuple[str, str] | None:
    if x.dtype == object or y.dtype == object:  # None
        same = x.dtype == y.dtype
        return None if same else ("value", f"it returns {_kind(x)}, not {_kind(y)}")
    if x.shape != y.shape:
        return "shape", f"the shape is {x.shape}, not {y.shape}"
    if (x.dtype.kind == "b") != (y.dtype.kind == "b"):
        return "value", f"it returns {_kind(x)}, not {_kind(y)}"
    finite = np.isfinite(y)
    largest = np.abs(y[finite]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        close = np.abs(x - y) <= rtol * largest if y.dtype.kind == "f" else x == y
    close = np.where(finite, close, (x == y) | (np.isnan(x) & np.isnan(y)))
    if close.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~close)[0])
    place = f"[{', '.join(map(str, at))}]" if at else ""
    told = f"result{place} is {x[at]:.6g}, not {y[at]:.6g}"
    if np.isfinite(x[at]) or not finite[at]:
        return "value", told
    dead = y.ndim > 0 and not y[at[:-1]].any()
    return ("dead rows" if dead else "not finite"), told


def _kind(x: np.ndarray) -> str:
    kinds = {"b": "booleans", "i": "integers", "u": "integers", "f": "floats"}
    return kinds.get(x.dtype.kind, "nothing")
