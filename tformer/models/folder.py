"""A model from a folder: config.json and safetensors, Hugging Face's or ours.

Names, shapes and dtypes are held to the config before memory is taken for them. Neither
file can run code when it is opened, which a pickle can.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tformer.files import SEAL, read_json
from tformer.models.building import Model, build_model, names_of_today
from tformer.models.families import Config, family_of
from tformer.models.weight_files import (
    Rename,
    map_weights,
    read_headers,
    weight_files,
)

OURS = "tformer"  # the word of a config whose weights have our names
WIDEST = 2**24  # of a model's sizes: a larger one is a mistake, or an attack


class Described(NamedTuple):
    """What a folder says that it holds, and its files bear out; no weight was read."""

    model: Model  # on the meta device
    saved: dict[str, Tensor]  # the weights of the files, on the meta device
    places: dict[str, Path]  # in which file each of them is
    rename: Rename  # to the model's names


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
    theirs = None if ours else partial(family_of(values).rename, config=values)
    saved, places = read_headers(files, theirs)
    model = on_meta(values if ours else fitted(values, saved), len(saved))
    own = saved_of(model)
    rename = theirs or partial(names_of_today, own=set(own))
    try:
        named = rename(saved)
    except (IndexError, RuntimeError) as error:  # of shapes that cannot be cut
        raise ValueError(f"{folder}: weights of wrong shapes: {error}") from error
    check_names(folder, own, named, tied=not ours)
    return Described(model, saved, places, rename)


def read_model(
    folder: Path,
    config: Config | None = None,
    files: list[Path] | None = None,
    dtype: torch.dtype | None = None,
) -> Model:
    """Build the model of a folder, with its weights, in their dtype, in `eval()`.

    The files are mapped into memory: weights that keep dtype and layout are read when
    they are used. Of others there is one at a time beside the model.

    Args:
        folder: with config.json, and model.safetensors or its shards.
        config: in place of config.json.
        files: the files of the weights, in place of those of the folder.
        dtype: of the model; that of the files if None.

    Raises:
        OSError: a file is missing.
        ValueError: a file is damaged, an option or the `model_type` is unknown, or a
            weight is missing, superfluous or wrongly shaped. The message names it.
    """
    model, _, places, rename = describe(folder, config, files)
    fill(model, rename(map_weights(places)), dtype, folder)
    return model.eval()


def fitted(config: Config, names: Iterable[str]) -> Config:
    """Complete a config by what only the names of the weights say, if the family can.

    BERT's files hold a head, or a pooler, and no word of the config tells.
    """
    fit = vars(family_of(config)).get("fit")
    return config if fit is None else fit(config, names)


def fill(
    model: Model,
    state: dict[str, Tensor],
    dtype: torch.dtype | None,
    path: Path,
    *,
    copy: bool = False,
) -> None:
    """Give a model on the meta device its weights, or copies, and empty the state.

    Raises:
        ValueError: what the model has as one matrix are two in the state.
    """
    own, weights = saved_of(model), {}
    for name, x in state.items():
        if name not in own and not torch.equal(x, state[tied_to(name, own)]):
            one = tied_to(name, own)
            raise ValueError(f"{path}: {name} is not {one}, and its config ties them")
    for name in [*state]:
        x = state.pop(name)  # a weight that is converted is let go of
        if name in own:
            weights[name] = x.to(dtype or x.dtype, copy=copy).contiguous()
    model.load_state_dict(weights, strict=False, assign=True)
    like = next(iter(weights.values()))
    for module in model.modules():  # buffers that only tell device and dtype
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.is_meta and not buffer.numel():
                setattr(module, name, like.new_empty(0))


def tied_to(name: str, own: Collection[str]) -> str:
    """Name the weight that a model has in place of one that it ties: "" if none."""
    chain = ("output.weight", "tgt_embedding.weight", "src_embedding.weight")
    known = (*chain, "embedding.weight")
    rest = known[known.index(name) + 1 :] if name in known else ()
    return next((n for n in rest if n in own), "")


def saved_of(model: nn.Module) -> dict[str, Tensor]:
    """Name what a file holds of a model; a tensor under two names comes once."""
    persistent = model.state_dict().keys()
    buffers = {n: x for n, x in model.named_buffers() if n in persistent}
    return dict(model.named_parameters()) | buffers


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
    if tied:  # the embedding's, once more
        extra = {name for name in extra if not tied_to(name, own)}
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
