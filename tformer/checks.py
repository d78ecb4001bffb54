"""Checks that several modules share: each names argument, value and rule.

And imports: of packages that are optional, and of names when they are first used.
"""

import ast
import math
import os
import sys
from collections.abc import Collection, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from numpy import ndarray
    from torch import Tensor

Array = TypeVar("Array", "Tensor", "ndarray")


def check_positive(least: int = 1, /, **sizes: int) -> None:
    """Raise unless every size is a whole number above zero, or at least so large."""
    for name, value in sizes.items():
        # While torch.export runs the code a size is no int, but may stand for one.
        whole = isinstance(value, int) or hasattr(value, "__index__")
        if isinstance(value, bool) or not whole:
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")
        if value < least:
            raise ValueError(f"{name} ({value}) must be at least {least}")


def check_at_least_0(**counts: int) -> None:
    """Raise unless every count is a whole number, zero or above."""
    check_positive(0, **counts)


def check_probability(**probabilities: float) -> None:
    """Raise unless every probability lies in [0, 1)."""
    for name, value in probabilities.items():
        if not 0 <= value < 1:
            raise ValueError(f"{name} ({value}) must be in [0, 1)")


def check_above_0(**numbers: float | None) -> None:
    """Raise unless every number that is given is above zero, and finite."""
    for name, value in numbers.items():
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} ({value}) must be above 0 and finite")


def check_id(name: str, token: int | None, vocab_size: int) -> None:
    """Raise unless a token is a whole number in [0, V)."""
    if token is not None and type(token) is not int:  # nor a bool
        raise TypeError(f"{name} must be an int, not {type(token).__name__}")
    if token is None or not 0 <= token < vocab_size:
        raise ValueError(f"{name} ({token}) must be in [0, vocab_size = {vocab_size})")


def check_divisible(**sizes: int) -> None:
    """Raise unless the first of two named sizes is a multiple of the second."""
    (name, value), (by, divisor) = sizes.items()
    if value % divisor:
        raise ValueError(f"{name} ({value}) must be divisible by {by} ({divisor})")


def check_one_of(name: str, value: object, known: Collection[str]) -> None:
    """Raise a ValueError unless the value is one of those that are known."""
    if value not in [*known]:  # a list, say, is not hashable
        raise ValueError(f"{name} ({value!r}) must be one of {', '.join(known)}")


def check_width(d_model: int, x: "Tensor | ndarray") -> None:
    """Raise unless x is (..., D)."""
    if x.shape[-1] != d_model:
        found = f"x has width {x.shape[-1]} but d_model is {d_model}"
        raise ValueError(f"{found}: x is {tuple(x.shape)}")


def check_sequences(d_model: int, **sequences: "Tensor | ndarray") -> None:
    """Raise unless every tensor is (B, length, D)."""
    for name, x in sequences.items():
        if x.ndim != 3 or x.shape[-1] != d_model:
            rule = f"must be (batch, length, d_model = {d_model})"
            raise ValueError(f"{name} {rule}, not {tuple(x.shape)}")


def check_scores(
    *inputs: Any, is_causal: bool, masks: Mapping[str, Any], **numbers: float | None
) -> None:
    """Raise unless query, key, value, masks and numbers make an attention."""
    q, k, v = (tuple(x.shape) for x in inputs)
    fits = len(q) == len(k) == len(v) == 4 and 0 not in q + v
    if not fits or q[0] != k[0] or q[3] != k[3] or k[:3] != v[:3] or q[1] % k[1]:
        rule = "query (B, H, T, Dh), key (B, G, S, Dh) and value (B, G, S, Dv) must fit"
        raise ValueError(f"{rule}, G divide H, and none be empty: {q}, {k}, {v}")
    dtypes = ", ".join(str(x.dtype) for x in inputs)
    if len({x.dtype for x in inputs}) > 1 or "float" not in dtypes:
        raise TypeError(f"query, key, value must have one floating dtype: {dtypes}")
    full = (*q[:3], k[2])
    for name, x in masks.items():
        if x is None:
            continue
        if ("bool" if name == "attn_mask" else "float") not in str(x.dtype):
            raise TypeError(f"{name} is {x.dtype}: attn_mask is bool, bias floating")
        # Two axes are (T, S): a mask (B, S) might broadcast by luck.
        sizes = zip(x.shape, full, strict=False)
        four = x.ndim == 4 and all(n in (m, 1) for n, m in sizes)
        if not four and x.shape != full[2:]:
            rule = f"must be (T, S), or broadcast with four axes to {full}"
            raise ValueError(f"{name} {(*x.shape,)} {rule}")
    if (window := numbers["window"]) is not None and not is_causal:
        raise ValueError(f"window ({window}) is of the past: it needs is_causal")
    for name, number in numbers.items():
        if number is not None and not 0 < number < math.inf:
            raise ValueError(f"{name} ({number}) must be above 0 and finite")


def check_bool(name: str, mask: "Tensor | ndarray") -> None:
    """Raise a TypeError unless a mask is boolean: numbers may be meant to be added."""
    if str(mask.dtype) not in ("bool", "torch.bool"):
        raise TypeError(f"{name} must be bool (True = may attend), not {mask.dtype}")


def check_key_mask(
    key_mask: Array | None, batch: int, key_len: int, *, name: str
) -> Array | None:
    """Make the mask (B, S) of a whole model, True = a real token, an `attn_mask`.

    Returns:
        bool (B, 1, 1, S), which broadcasts over heads and queries; None of None.
    """
    if key_mask is None:
        return None
    kind = key_mask.dtype
    if str(kind) not in ("bool", "torch.bool"):
        raise TypeError(f"{name} must be bool (True = a real token), not {kind}")
    if key_mask.shape != (batch, key_len):
        found = tuple(key_mask.shape)
        raise ValueError(f"{name} must be (B, S) = ({batch}, {key_len}), not {found}")
    return key_mask[:, None, None, :]  # (B, 1, 1, S)


def check_buckets(num_buckets: int, max_distance: int) -> None:
    """Raise unless T5's buckets reach so far: half of them hold one distance each."""
    check_positive(num_buckets=num_buckets, max_distance=max_distance)
    if num_buckets < 2:
        raise ValueError(f"num_buckets ({num_buckets}) must be at least 2")
    if max_distance <= num_buckets // 2:
        rule = "the number of buckets that hold one distance each"
        least = f"above {num_buckets // 2}, {rule}"
        raise ValueError(f"max_distance ({max_distance}) must be {least}")


def require(module: str) -> Any:
    """Import a module of an optional package, such as "babel.dates"."""
    package = module.partition(".")[0]
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, and lacks something itself
            raise
        raise ImportError(
            f"this needs the package {package}: pip install 'tformer[train]'"
        ) from error
    return import_module(module)


def import_when_used(package: str) -> None:
    """Let the package of this `__name__` find its names when they are first used.

    Which they are, and where they live, stands once, in the package's `__init__.pyi`:
    `from tformer.nn.heads import MultiHeadAttention as MultiHeadAttention`. A name may
    have a second one, as people type it: `import RotaryEmbedding as RoPE`.
    """
    this = sys.modules[package]
    stub = os.path.splitext(this.__file__ or "")[0] + ".pyi"  # pathlib takes 5 ms
    home: dict[str, tuple[str, str]] = {}
    with open(stub, encoding="utf-8") as file:
        names = ast.parse(file.read())
    for node in names.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                home[alias.asname or alias.name] = (node.module or "", alias.name)

    class Package(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name not in home:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            module, original = home[name]
            found = vars(import_module(module)).get(original)
            if found is None:  # a folder or a module of the package
                found = import_module(f"{module}.{original}")
            setattr(self, name, found)
            return found

        def __setattr__(self, name: str, value: object) -> None:
            # Python puts a module here once it is imported, and would put rms_norm,
            # the module, where rms_norm, its function, is to be found.
            of_same_name = home.get(name) == (f"{package}.{name}", name)
            if isinstance(value, ModuleType) and of_same_name:
                value = getattr(value, name)
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *home})

        def __reduce__(self) -> tuple[object, ...]:  # for who pickles whole functions
            return import_module, (package,)

    this.__class__ = Package
    # `from tformer import *` shall not put its folder `nn` where torch's was.
    folders = {name for name, (module, _) in home.items() if module == package}
    vars(this)["__all__"] = sorted({*home} - folders)
