"""Checkpoints of a training on several processes, for any other number of them.

Two ways. Gathered: process 0 gets all tensors and writes them like those of one
process. Sharded, by torch's own distributed checkpoints: every process writes the part
that it holds, for models that no process could hold whole. Neither file is a pickle.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tformer.checks import require
from tformer.models.building import names_of_today
from tformer.training.distributed import unwrap
from tformer.training.processes import from_all, num_processes, process_rank

MODEL, OPTIMIZER = "model.", "optimizer.state."  # before the names of tensors


def full_state(
    model: nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> dict[str, Tensor]:
    """Gather what is learned, and what the optimizer remembers of it, in process 0.

    All processes must call it, with the model as `distribute` returned it. Process 0
    gets the whole tensors, on the CPU: "model." + name of the parameter, and
    "optimizer.state." + name of the parameter + ".exp_avg" and so on; others nothing. A
    matrix under two names, as in tied models, comes once.
    """
    state: dict[str, Tensor] = {}
    for name, x in _state(model, optimizer).items():
        whole: Tensor = x.full_tensor() if hasattr(x, "full_tensor") else x
        if process_rank() == 0:
            state[name] = whole.cpu()
    return state


def load_full_state(
    model: nn.Module,
    state: dict[str, Tensor],
    optimizer: torch.optim.Optimizer | None = None,
) -> None:
    """Give every process its part of what `full_state` gathered.

    All processes must call it, on any number of processes, with any strategy. Learning
    rate, decay and other settings of the optimizer stay as they are. The state is that
    of process 0; in the others it is ignored.

    Raises:
        ValueError: the state is of another model or optimizer, in every process.
    """
    from torch.distributed.tensor import DTensor, distribute_tensor  # slow to import

    ours = _state(model, optimizer)
    state = names_of_today(state, ours)
    wrong = from_all(_difference(ours, {n: x.shape for n, x in state.items()}))[0]
    if wrong:
        raise ValueError(f"the state is of another model: {wrong}")
    with torch.no_grad():
        for name, x in ours.items():
            whole = torch.empty(x.shape, dtype=x.dtype, device=x.device)
            if process_rank() == 0:
                whole.copy_(state[name])
            if isinstance(x, DTensor):  # process 0 hands out the parts
                whole = distribute_tensor(whole, x.device_mesh, x.placements)
            elif num_processes() > 1:
                dist.broadcast(whole, src=0)
            x.copy_(whole)


def save_shards(
    folder: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
) -> None:
    """Write what is learned, each process its own part, to a folder of safetensors.

    All processes must call it, with a new folder that all of them see: a
    FileExistsError says that there is one already.
    """
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    if any(from_all(Path(folder).exists())):
        raise FileExistsError(f"{folder} is there already")
    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    # Without torch's warning that there is one process.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        save(_state(model, optimizer), storage_writer=writer)  # all wait for all


def load_shards(
    folder: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
) -> None:
    """Read what `save_shards` wrote, on any number of processes, with any strategy.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: a file is missing or truncated, or all are of another model. Then
            nothing has been overwritten.
    """
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata
    from torch.distributed.checkpoint.state_dict_loader import load

    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    reader = HuggingFaceStorageReader(str(folder))
    try:
        found = reader.read_metadata().state_dict_metadata.items()
    except (require("safetensors").SafetensorError, KeyError, ValueError) as error:
        raise ValueError(f"{folder} holds a file that is cut off: {error}") from error
    saved = {n: x for n, x in found if isinstance(x, TensorStorageMetadata)}
    for name, tensor in saved.items():
        if sum(part.sizes.numel() for part in tensor.chunks) != tensor.size.numel():
            raise ValueError(f"{folder} lacks a file: parts of {name} are missing")
    state = _state(model, optimizer)
    names = names_of_today({name: name for name in saved}, state)  # as they are there
    sizes = {new: saved[old].size for new, old in names.items()}
    if of_another := _difference(state, sizes):
        raise ValueError(f"{folder} is of another model: {of_another}")
    asked = {names[name]: x for name, x in state.items()}
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        load(asked, storage_reader=reader)  # into these tensors


def _state(
    model: nn.Module, optimizer: torch.optim.Optimizer | None
) -> dict[str, Tensor]:
    """Name the tensors of model and optimizer; under FSDP they know where they lie."""
    from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict

    tensors = unwrap(model).state_dict()  # after which FSDP holds parts alone
    parameters = dict(unwrap(model).named_parameters())  # a tied one once
    state = {MODEL + name: tensors[name] for name in parameters}
    if optimizer is None:
        return state
    if not optimizer.state:  # torch fills it by a step of nothing, and counts that
        get_optimizer_state_dict(model, optimizer)
        for remembered in optimizer.state.values():
            for x in remembered.values():
                x.zero_()
    for name, p in parameters.items():
        for key, x in optimizer.state.get(p, {}).items():
            state[f"{OPTIMIZER}{name}.{key}"] = x
    return state


def _difference(
    ours: Mapping[str, Tensor], theirs: Mapping[str, torch.Size]
) -> str | None:
    """Say how tensors, or their shapes, differ from those of this model."""
    if not any(name.startswith(OPTIMIZER) for name in ours):  # the model alone
        theirs = {n: size for n, size in theirs.items() if n.startswith(MODEL)}
    for name in sorted(ours.keys() ^ theirs.keys()):
        return f"it {'lacks' if name in ours else 'has an unknown'} {name}"
    for name, x in ours.items():
        if x.shape != theirs[name]:
            return f"{name} is {tuple(theirs[name])}, not {tuple(x.shape)}"
    return None
