"""The sizes of a run's model: counted, and held to a checkpoint that is there."""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import nn

from tformer.checks import require
from tformer.files import check_has_end
from tformer.nn.experts import active_parameters
from tformer.runs.state import SHARDS, refusal
from tformer.training.weights import modern_names


def parameter_counts(model: nn.Module) -> dict[str, int]:
    """Count the parameters; with experts those, too, that one token uses."""
    counts = {"parameters": sum(p.numel() for p in model.parameters())}
    active = active_parameters(model)
    return (
        counts
        if active == counts["parameters"]
        else counts | {"active_parameters": active}
    )


def check_sizes(
    path: Path, counts: Mapping[str, int | None], make_model: Callable[[], nn.Module]
) -> None:
    """Raise if a checkpoint cannot be of a model, before memory is taken for the model.

    Only the names and shapes in the files are read, and the model is made without
    numbers, on the device "meta".

    Args:
        path: of the checkpoint.
        counts: how many layers the config names, how many experts: each has tensors.
        make_model: makes it.

    Raises:
        RunError: the checkpoint is of another model, or no file of it can be read.
    """
    try:
        shapes = _shapes(path / SHARDS if (path / SHARDS).exists() else path)
        # As many layers without numbers would take their time as well.
        for name, count in counts.items():
            if count is not None and count > len(shapes):
                raise ValueError(
                    f"it has {len(shapes)} tensors, too few for {name} ({count})"
                )
        with torch.device("meta"):
            model = make_model()
        own = [f"model.{name}" for name, _ in model.named_parameters()]
        shapes = modern_names(shapes, own)
        for name, parameter in model.named_parameters():
            ours, theirs = tuple(parameter.shape), shapes.get(f"model.{name}")
            if ours != theirs:
                raise ValueError(
                    "the state is of another model: "
                    + (
                        f"it lacks model.{name}"
                        if theirs is None
                        else f"model.{name} is {theirs}, not {ours}"
                    )
                )
    except (OSError, ValueError, KeyError) as error:
        raise refusal(path, error) from error


def _shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Read the shapes of whole tensors, also of those that lie in several files."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

    for file in folder.iterdir():
        check_has_end(file)
    try:
        saved = HuggingFaceStorageReader(str(folder)).read_metadata()
    except require("safetensors").SafetensorError as error:
        raise ValueError(f"{folder} holds a file that is cut off: {error}") from error
    found = saved.state_dict_metadata
    return {name: tuple(tensor.size) for name, tensor in found.items()}  # type: ignore[union-attr]
