"""A model from a folder: config.json and safetensors, Hugging Face's or ours.

Names, shapes and dtypes are held to the config before memory is taken for them. Neither
file can run code when it is opened, which a pickle can.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tformer.checks import require
from tformer.files import SEAL, check_has_end, read_json
from tformer.models.building import Model, build_model, names_of_today
from tformer.models.families import Config, family_of

OURS = "tformer"  # the word of a config whose weights have our names
DTYPES = {  # of weights, as safetensors calls them
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}
MOST_HEADER = 2**24  # bytes; one of 300 tensors has 30,000
WIDEST = 2**24  # of a model's sizes: a larger one is a mistake, or an attack


class Described(NamedTuple):
    """What a folder says that it holds, and its files bear out; no weight was read."""

    model: Model  # on the meta device
    files: list[Path]  # of the weights
    saved: dict[str, Tensor]  # what they hold, on the meta device
    rename: Callable[[Mapping[str, Tensor]], dict[str, Tensor]]  # to the model's names


def describe(
    folder: Path,
    config: Config | None = None,
    files: list[Path] | None = None,
) -> Described:
    """Build the model of a folder on the meta device, and hold its files to it.

    Arguments and errors are those of `read_model`.
    """
    values = dict(read_json(folder / "config.json") if config is None else config)
    ours = values.pop(OURS, None) is not None
    values.pop(SEAL, None)
    files = weight_files(folder) if files is None else files
    saved = read_headers(files)
    model = on_meta(values, len(saved))
    own = saved_of(model)
    of_today = partial(names_of_today, own=set(own))
    rename = of_today if ours else partial(family_of(values).rename, config=values)
    try:
        named = rename(saved)
    except (IndexError, RuntimeError) as error:  # of shapes that cannot be cut
        raise ValueError(f"{folder}: weights of wrong shapes: {error}") from error
    check_names(folder, own, named, tied=not ours)
    return Described(model, files, saved, rename)


def read_model(
    folder: Path,
    config: Config | None = None,
    files: list[Path] | None = None,
) -> Model:
    """Build the model of a folder, with its weights, in their dtype, in `eval()`.

    Args:
        folder: with config.json, and model.safetensors or its shards.
        config: in place of config.json.
        files: the files of the weights, in place of those of the folder.

    Raises:
        OSError: a file is missing.
        ValueError: a file is damaged, an option or the `model_type` is unknown, or a
            weight is missing, superfluous or wrongly shaped. The message names it.
    """
    model, files, _, rename = describe(folder, config, files)
    own = saved_of(model)
    state: dict[str, Tensor] = {}
    load = require("safetensors.torch").load_file
    for file in files:
        state |= load(file)
    state = {name: x.contiguous() for name, x in rename(state).items() if name in own}
    model.load_state_dict(state, strict=False, assign=True)
    dtype = next(iter(state.values())).dtype
    for module in model.modules():  # buffers that only tell device and dtype
        for name, x in module.named_buffers(recurse=False):
            if x.is_meta and not x.numel():
                setattr(module, name, torch.empty(0, dtype=dtype))
    return model.eval()


def saved_of(model: nn.Module) -> dict[str, Tensor]:
    """Name what a file holds of a model; a tensor under two names comes once."""
    persistent = model.state_dict().keys()
    buffers = {n: x for n, x in model.named_buffers() if n in persistent}
    return dict(model.named_parameters()) | buffers


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


def read_headers(files: list[Path]) -> dict[str, Tensor]:
    """Read name, shape and dtype of every tensor, without its numbers."""
    safetensors = require("safetensors")
    saved: dict[str, Tensor] = {}
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
                    if (kind := x.get_dtype()) not in DTYPES:
                        wrong = f"{name} is of {kind}, not one of {', '.join(DTYPES)}"
                        raise ValueError(f"{path}: {wrong}")
                    shape, dtype = x.get_shape(), DTYPES[kind]
                    saved[name] = torch.empty(shape, dtype=dtype, device="meta")
        except safetensors.SafetensorError as error:
            raise ValueError(f"{path} is not safetensors: {error}") from error
    return saved


def on_meta(config: Config, tensors: int) -> Model:
    """Make a model that takes no memory, for files with so many tensors."""
    for name, value in config.items():
        if isinstance(value, int) and not isinstance(value, bool):
            many = name.endswith(("layers", "layer", "experts"))
            many = many and not name.startswith("max_")  # a bound: nothing is made
            if value > (tensors if many else WIDEST):  # which would take its time
                held = f"there are {tensors} tensors" if many else f"at most {WIDEST}"
                raise ValueError(f"{name} ({value}) cannot be: {held}")
    try:
        with torch.device("meta"), NothingDrawn():
            return build_model(config)
    except (OverflowError, RuntimeError, TypeError, ZeroDivisionError) as error:
        first = str(error).partition("\n")[0]
        raise ValueError(f"no model can have these sizes: {first}") from error


def check_names(
    path: Path, own: Mapping[str, Tensor], named: Mapping[str, Tensor], *, tied: bool
) -> None:
    """Raise unless these are all weights of the model, of its shapes, and no others."""
    extra = named.keys() - own.keys()
    if tied and "output.weight" not in own:  # the embedding's, once more
        extra -= {"output.weight"}
    for name in sorted(own.keys() - named.keys()):
        raise ValueError(f"{path} lacks {name}")
    for name in sorted(extra):
        raise ValueError(f"{path} holds what its model does not have: {name}")
    for name, x in own.items():
        if named[name].shape != x.shape:
            shapes = f"{tuple(named[name].shape)}, but its model has {tuple(x.shape)}"
            raise ValueError(f"{path}: {name} is {shapes}")


class NothingDrawn(TorchFunctionMode):
    """Leave out random numbers, for which on meta torch would load its compiler."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        _: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Call the function, unless it draws numbers."""
        kwargs = kwargs or {}
        drawing = ("normal_", "uniform_", "kaiming_uniform_", "xavier_uniform_")
        if func.__name__ in drawing:  # of tensors, and of nn.init
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
