"""Files of weights, safetensors: which a folder has, what they hold, and their numbers.

No header is believed before it is checked: what a stranger wrote may lie.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from tformer.checks import require
from tformer.files import check_has_end, read_json

DTYPES = {  # of weights, as safetensors calls them
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}
MOST_HEADER = 2**24  # bytes; one of 300 tensors has 30,000
MAPPINGS = 2000  # of files, for one model
Rename = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]


def weight_files(folder: Path) -> list[Path]:
    """List the files that hold the weights: one, or those of the index."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        whole = folder / "model.safetensors"
        if not whole.exists():
            raise FileNotFoundError(f"{whole}: no such file")
        return [whole]
    names = read_json(index, types={"weight_map": dict})["weight_map"].values()
    for name in names:
        inside = isinstance(name, str) and Path(name).name == name
        if not inside or name in ("", ".", ".."):
            raise ValueError(f"{index} names {name!r}, which is no file of the folder")
    return [folder / name for name in dict.fromkeys(names)]


def read_headers(
    files: list[Path], rename: Rename | None = None
) -> tuple[dict[str, Tensor], dict[str, Path]]:
    """Read name, shape and dtype of every tensor, and its file, without its numbers.

    What `rename` leaves out, such as the positions 0, 1, 2 … of old files, is left out.
    """
    safetensors = require("safetensors")
    saved: dict[str, Tensor] = {}
    places: dict[str, Path] = {}
    for path in files:
        check_has_end(path)
        with path.open("rb") as begun:  # the length of the header, then the header
            length = int.from_bytes(begun.read(8), "little")
        if length > MOST_HEADER:
            wrong = f"its header would have {length:,} bytes"
            raise ValueError(f"{path} is not safetensors: {wrong}")
        try:
            with safetensors.safe_open(path, "pt") as file:
                for name in file.keys():  # noqa: SIM118 - it is no mapping
                    if name in saved:
                        raise ValueError(f"{path} and another file hold {name}")
                    x = file.get_slice(name)
                    like = torch.empty(x.get_shape(), device="meta")
                    if (kind := x.get_dtype()) not in DTYPES:
                        if rename is not None and not rename({name: like}):
                            continue
                        wrong = f"{name} is of {kind}, not one of {', '.join(DTYPES)}"
                        raise ValueError(f"{path}: {wrong}")
                    saved[name], places[name] = like.to(DTYPES[kind]), path
        except safetensors.SafetensorError as error:
            raise ValueError(f"{path} is not safetensors: {error}") from error
    return saved, places


def map_weights(places: Mapping[str, Path]) -> dict[str, Tensor]:
    """Map tensors of files into memory, where none is read before it is used.

    Each has a mapping of its own, so that its memory is free as soon as it is let go
    of. Of very many a file has one, as a process may have some ten thousand.
    """
    safe_open = require("safetensors").safe_open
    if len(places) > MAPPINGS:
        weights: dict[str, Tensor] = {}
        for path in dict.fromkeys(places.values()):
            with safe_open(path, "pt") as file:
                own = (name for name, place in places.items() if place == path)
                weights |= {name: file.get_tensor(name) for name in own}
        return weights
    weights = {}
    for name, path in places.items():
        with safe_open(path, "pt") as file:
            weights[name] = file.get_tensor(name)
    return weights
