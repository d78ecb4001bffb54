"""The tensors of a checkpoint: names, shapes and types are checked before all else."""

import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from tformer.checks import require
from tformer.models.by_name import Model, ModelConfig, make_config, make_model

DTYPES = {  # of weights, as safetensors calls them
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}
WIDEST_HEAD = 2**20
T = TypeVar("T")


def modern_names(state: Mapping[str, T], own: Collection[str]) -> dict[str, T]:
    """Give what an older version has saved the names of today.

    What is now `encoder.…` and `decoder.…` was `stacks.encoder.…` in older versions.

    Args:
        state: of a model by name; or of a training, with "model." or
            "optimizer.state." before the names.
        own: the names of today, of the model or the training that shall be filled.

    Returns:
        The same values. Renamed are those that get one of today's names by it.
    """
    new = {}
    for name, value in state.items():
        today = _OLD.sub(r"\1", name)
        new[today if today in own and today not in state else name] = value
    return new


_OLD = re.compile(r"^(model\.|optimizer\.state\.)?stacks\.")


def tensors_of(model: Model) -> dict[str, Tensor]:
    """Name what is learned. A matrix under two names, as in tied models, comes once."""
    return {name: p.detach() for name, p in model.named_parameters()}


def loadable(model: Model) -> dict[str, Tensor]:
    """Return what is to be saved of a model, if it can be loaded again.

    Raises:
        ValueError: a new model of its class and config could not be given it. The
            message says why.
    """
    name, tensors = type(model).__name__, tensors_of(model)
    config: Any = getattr(model, "config", None)
    values = dataclasses.asdict(config) if hasattr(model, "config") else {}
    try:
        kind, ours = _on_meta(make_config(name, values), len(tensors))
        wrong = next(_differences(model, kind, ours), None)
    except (TypeError, ValueError) as error:
        wrong = str(error)
    if wrong:
        raise ValueError(f"model ({name}) could not be loaded again: {wrong}")
    return {name: x.contiguous() for name, x in tensors.items()}


def _differences(model: Model, kind: type, ours: dict[str, Tensor]) -> Iterator[str]:
    """Say what a model has otherwise than a new one of its config."""
    if kind is not type(model):
        yield f"it is another class than tformer's {kind.__name__}"
    tensors = tensors_of(model)
    for name in sorted(tensors.keys() ^ ours.keys()):
        has = "has a parameter" if name in tensors else "lacks the parameter"
        yield f"it {has} {name}, unlike a new model of its config"
    for name, x in tensors.items():
        if x.shape != ours[name].shape:
            shapes = f"{tuple(x.shape)}, not {tuple(ours[name].shape)}"
            yield f"{name} is {shapes} as in a new model of its config"
        if type(x) is not Tensor or x.is_meta or x.dtype not in DTYPES.values():
            what = f"{type(x).__name__} of {x.dtype} on {x.device}"
            yield f"{name} is a {what}, which cannot be saved"


def fill(
    model: "Model | None",
    config: ModelConfig,
    path: Path,
    dtype: torch.dtype | None = None,
    check: Callable[[], object] = lambda: None,
) -> Model:
    """Copy weights into a model: all of them, and none that it does not have.

    What the config says is held to the header of the file before anything is made of
    that size.

    Args:
        model: to be filled; a new one of the config if None.
        config: of the model.
        path: of the weights.
        dtype: of a new model; that of the file if not given.
        check: is called when the file was read, before the model is changed; it may
            raise.

    Raises:
        ValueError: the file is no safetensors, or of another model.
    """
    safetensors = require("safetensors")
    try:
        with safetensors.safe_open(path, "pt") as file:
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            header = {n: (x.get_shape(), x.get_dtype()) for n, x in parts.items()}
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is not safetensors: {error}") from error
    try:
        ours = _on_meta(config, len(header))[1] if model is None else tensors_of(model)
    except ValueError as error:
        raise ValueError(f"{path} is of another model: {error}") from error
    _check_header(path, ours, modern_names(header, ours), of_any_type=model is None)
    loaded = require("safetensors.torch").load_file(path)
    saved: dict[str, Tensor] = modern_names(loaded, ours)
    check()
    if model is None and dtype is not None:
        model = _with_few_sinusoids(config).to(dtype)
    elif model is None:
        dtypes = {tensor.dtype for tensor in saved.values()}
        model = _with_few_sinusoids(config)
        if len(dtypes) == 1:  # saved in half precision, it comes back in it
            model = model.to(dtypes.pop())
        for name, parameter in model.named_parameters():  # or only a part of it was
            parameter.data = parameter.data.to(saved[name].dtype)
    for name, tensor in tensors_of(model).items():
        tensor.copy_(saved[name])
    return model


def _with_few_sinusoids(config: ModelConfig) -> Model:
    """Make a model whose table, which no file holds, is short: it grows when needed."""
    if getattr(config, "positions", None) != "sinusoidal":
        return make_model(config)
    values: dict[str, Any] = {"max_len": min(config.max_len, 4096)}
    model = make_model(dataclasses.replace(config, **values))
    model.config = config
    return model


def _check_header(
    path: Path, ours: dict[str, Tensor], header: dict[str, Any], *, of_any_type: bool
) -> None:
    for name in sorted(ours.keys() ^ header.keys()):
        lacks = "lacks" if name in ours else "holds what its model does not have:"
        raise ValueError(f"{path} {lacks} {name}")
    for name, tensor in ours.items():
        shape, kind = tuple(header[name][0]), header[name][1]
        if kind not in DTYPES:
            known = ", ".join(DTYPES)
            raise ValueError(f"{path}: {name} is of {kind}, not one of {known}")
        dtype = DTYPES[kind]
        if shape != tensor.shape or not (of_any_type or dtype == tensor.dtype):
            raise ValueError(
                f"{path}: {name} is {shape} of {dtype}, "
                f"but its model has {tuple(tensor.shape)} of {tensor.dtype}"
            )


def _on_meta(config: ModelConfig, tensors: int) -> tuple[type, dict[str, Tensor]]:
    """Make a model that takes no memory, for a file with so many tensors.

    Returns:
        Its class, and what is learned of it by name.
    """
    values = dataclasses.asdict(config)
    experts = (values.get("parts") or {}).get("experts") or {}
    for name, value in (values | experts).items():
        many = name.endswith("layers") or name == "num_experts"
        if many and value > tensors:  # which would take its time
            raise ValueError(f"{name} ({value}) cannot be: there are {tensors} tensors")
    # The angles of rotary positions are computed at once, on meta too.
    widths = ("width_of_head", "turned_width")
    width = max(getattr(config, name, 0) for name in widths)
    if width > WIDEST_HEAD:
        raise ValueError(f"heads of a width of {width} cannot be")
    # On meta torch would load its compiler, a second, to compute what is not learned.
    computed = values.get("positions") == "sinusoidal"
    if computed:
        config = make_config("Transformer", {**values, "positions": "learned"})
    try:
        with torch.device("meta"), _NothingDrawn():
            model = make_model(config)
    except (OverflowError, RuntimeError, TypeError) as error:
        first = str(error).partition("\n")[0]
        raise ValueError(f"no model can have these sizes: {first}") from error
    learned = tensors_of(model)
    if computed:
        learned = {n: x for n, x in learned.items() if "positions." not in n}
    return type(model), learned


class _NothingDrawn(TorchFunctionMode):
    """Leave out random numbers, for which on meta torch would load its compiler too."""

    def __torch_function__(
        self, func: Any, _: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.__name__ in ("normal_", "uniform_"):  # of tensors, and of nn.init
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
