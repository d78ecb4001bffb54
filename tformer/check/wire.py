"""What two processes say to each other: JSON, and the numbers of arrays after it.

No pickle: whoever reads makes nothing but plain values, arrays, and the few classes
that it names.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass

import numpy as np

from tformer.check.calling import LONGEST, RUNS, Answer, Call, Case, Task
from tformer.check.outcomes import Expert, Outcome, Table

KINDS = {kind.__name__: kind for kind in (Task, Case, Call, Table, Expert)}
ANSWERS = {kind.__name__: kind for kind in (Answer, Outcome)}
DTYPES = {"b": "|b1", "i": "<i8", "u": "<i8", "f": "<f8"}
Kinds = Mapping[str, Callable[..., object]]


def pack(value: object) -> bytes:
    """Write a value: plain ones, arrays, functions of `RUNS`, and dataclasses."""
    arrays: list[bytes] = []
    head = json.dumps(_plain(value, arrays)).encode()
    return b"".join((len(head).to_bytes(8, "little"), head, *arrays))


def unpack(data: bytes, kinds: Kinds) -> object:
    """Read a value, which may hold these classes.

    Raises:
        ValueError: the data is nothing that `pack` wrote.
    """
    try:
        size = 8 + int.from_bytes(data[:8], "little")
        return _value(json.loads(data[8:size]), memoryview(data)[size:], kinds)
    except (KeyError, TypeError, IndexError, RecursionError, OverflowError) as error:
        raise ValueError(f"it cannot be read: {error!r}") from error


def _plain(value: object, arrays: list[bytes]) -> object:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in DTYPES:  # no numbers: no more is told of it
            named = value.dtype.kind == "U"  # by `read`: the name of a type
            return {"kind": "none", "of": str(value) if named else None}
        begin, dtype = sum(map(len, arrays)), DTYPES[value.dtype.kind]
        arrays.append(value.astype(dtype).tobytes())
        return {"kind": "array", "at": begin, "shape": value.shape, "dtype": dtype}
    if isinstance(value, tuple) and not isinstance(value, Call):
        return {"kind": "tuple", "of": [_plain(x, arrays) for x in value]}
    if isinstance(value, list):
        return [_plain(x, arrays) for x in value]
    if isinstance(value, Mapping):
        pairs = [[key, _plain(x, arrays)] for key, x in value.items()]
        return {"kind": "dict", "of": pairs}
    if isinstance(value, Call):
        return {"kind": "Call", "of": value._asdict()}
    if is_dataclass(value) and not isinstance(value, type):
        of = {x.name: _plain(getattr(value, x.name), arrays) for x in fields(value)}
        return {"kind": type(value).__name__, "of": of}
    if (name := getattr(value, "__name__", "")) in RUNS:
        return {"kind": "run", "of": name}
    raise TypeError(f"{type(value).__name__} cannot be sent")


def _value(plain: object, data: memoryview, kinds: Kinds) -> object:
    if isinstance(plain, list):
        return [_value(x, data, kinds) for x in plain]
    if not isinstance(plain, dict):
        return plain
    kind, of = plain["kind"], plain.get("of", [])
    if kind == "none":
        return np.array(str(of)[:LONGEST] if of else None)
    if kind == "array":
        dtype, shape = np.dtype(plain["dtype"]), tuple(plain["shape"])
        if plain["dtype"] not in DTYPES.values() or min(shape, default=0) < 0:
            raise ValueError(f"no array: {plain}")
        size = int(np.prod(shape, dtype=object))
        if size * dtype.itemsize + plain["at"] > len(data):
            raise ValueError(f"the numbers of an array are missing: {plain}")
        array = np.frombuffer(data, dtype, size, plain["at"]) if size else np.zeros(0)
        return array.astype(dtype.newbyteorder("=")).reshape(shape)
    if kind == "tuple":
        return tuple(_value(x, data, kinds) for x in of)
    if kind == "dict":
        return {key: _value(x, data, kinds) for key, x in of}
    if kind == "run":
        return RUNS[of]
    return kinds[kind](**{name: _value(x, data, kinds) for name, x in of.items()})
