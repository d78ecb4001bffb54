"""What functions are given and what they return, in NumPy and in torch."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

Normal = Callable[[np.ndarray], np.ndarray]
WIDE = {"float64", "float32", "float16", "bfloat16"}
KINDS = {"b": "booleans", "i": "numbers", "u": "numbers", "f": "numbers"}


@dataclass(frozen=True)
class Outcome:
    """What a call returned: arrays, floats in float64, and their dtype; or an error."""

    arrays: tuple[np.ndarray, ...] = ()
    dtype: str | None = None  # of the first floating array, as it was returned
    error: str | None = None


@dataclass(frozen=True)
class Table:
    """Log-probabilities of the next token, by the number of tokens and the last."""

    table: np.ndarray  # (lengths, V, V)
    framework: str = "numpy"  # whose array a call returns

    def __call__(self, ids: Sequence[int]) -> object:
        """Score what follows these ids, which begin with the start token: (V,)."""
        return give(self.table[len(ids) - 1, int(ids[-1])], self.framework)


@dataclass(frozen=True)
class Expert:
    """A feed-forward part of a mixture: relu(x W₁ᵀ + 1) W₂ᵀ of x (n, D), n ≥ 1."""

    w_in: np.ndarray  # (F, D)
    w_out: np.ndarray  # (D, F)
    framework: str = "numpy"  # whose arrays it takes
    dtype: str = "float64"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Compute (n, D) from (n, D).

        Raises:
            ValueError: x has another number of axes, or no row.
        """
        if len(x.shape) != 2 or not x.shape[0]:
            raise ValueError(f"an expert takes (n, D) with n ≥ 1, not {tuple(x.shape)}")
        given = (give(w.T, self.framework, self.dtype) for w in (self.w_in, self.w_out))
        w_in, w_out = cast("tuple[np.ndarray, np.ndarray]", tuple(given))
        inner = x @ w_in + 1
        return (inner * (inner > 0)) @ w_out


def give(
    x: object, framework: str, dtype: str = "float64", *, strided: bool = False
) -> object:
    """Copy a value of a case for a function; arrays become the framework's.

    Floats get `dtype`; `strided`, they lie column by column in memory, with gaps.
    """
    if isinstance(x, Table):
        return replace(x, framework=framework)
    if isinstance(x, Expert):
        return replace(x, framework=framework, dtype=dtype)
    if isinstance(x, list | tuple):
        return type(x)(give(each, framework, dtype) for each in x)
    if not isinstance(x, np.ndarray):
        return copy(x)
    given = np.zeros((*x.shape[::-1], 2), x.dtype)[..., 0].T if strided else x.copy()
    given[...] = x
    floating = x.dtype.kind == "f"
    if framework == "torch":
        import torch

        tensor = torch.from_numpy(given)
        return tensor.to(getattr(torch, dtype)) if floating else tensor
    return given.astype(dtype) if floating else given


def as_numpy(x: Any) -> np.ndarray:
    """Make an array of what a function returned; floats become float64."""
    if hasattr(x, "detach"):  # a tensor
        x = x.detach()
        x = (x.double() if x.is_floating_point() else x).numpy()
    array = np.array(x)  # a copy
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def read(returned: object, normal: Normal = lambda x: x) -> Outcome:
    """Read what a function returned: an array or a number, or several of them."""
    several = isinstance(returned, tuple | list)
    parts = [*returned] if isinstance(returned, tuple | list) else [returned]
    if several and all(_is_number(x) for x in parts):  # a list of ids is one array
        returned = [np.asarray(as_numpy(x)).item() for x in parts]
        parts = [returned]
    elif isinstance(returned, list) and all(isinstance(x, list) for x in parts):
        parts = [returned]  # rows of numbers are one array
    names = [str(getattr(x, "dtype", "")).removeprefix("torch.") for x in parts]
    dtype = next((name for name in names if name in WIDE), None)
    return Outcome(tuple(normal(_numbers(x)) for x in parts), dtype)


def _numbers(x: object) -> np.ndarray:
    """Make an array; of what is no number nor None, keep the name of its type."""
    try:
        array = as_numpy(x)
    except (TypeError, ValueError):  # a tuple of results, of which rows differ
        return np.array(type(x).__name__)
    known = x is None or array.dtype.kind in KINDS
    return array if known else np.array(type(x).__name__)


def _is_number(x: object) -> bool:
    return isinstance(x, int | float) or getattr(x, "shape", None) == ()


def difference(given: Outcome, right: Outcome, rtol: float) -> tuple[str, str] | None:
    """Compare outcomes; return the kind of the first difference and a sentence."""
    if given.error or right.error:
        both = given.error and right.error
        return None if both else ("error", f"it raises {given.error}")
    if len(given.arrays) != len(right.arrays):
        told = f"it returns {len(given.arrays)} results, not {len(right.arrays)}"
        return "shape", told
    pairs = zip(given.arrays, right.arrays, strict=True)
    return next(filter(None, (_of_arrays(x, y, rtol) for x, y in pairs)), None)


def _of_arrays(x: np.ndarray, y: np.ndarray, rtol: float) -> tuple[str, str] | None:
    kind, wanted = (KINDS.get(array.dtype.kind, "nothing") for array in (x, y))
    if x.dtype.kind == "U" != y.dtype.kind:
        return "value", f"it returns something of the type {x}, not {wanted}"
    if kind != wanted:
        return "value", f"it returns {kind}, not {wanted}"
    if x.shape != y.shape:
        return "shape", f"the shape is {x.shape}, not {y.shape}"
    if kind == "nothing":
        return None
    finite = np.isfinite(y)
    largest = np.abs(y[finite]).max(initial=0)
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
