"""Checkpoints of a training on several processes, for any other number of them.

Two ways, by torch's own distributed checkpoints. Gathered: process 0 gets all tensors
and writes them like those of one process. Sharded: every process writes the part that
it holds, for models that no process could hold whole. Neither file is a pickle.
"""

import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tformer.checks import require
from tformer.files import beside
from tformer.models.building import names_of_today
from tformer.training.distributed import unwrap
from tformer.training.processes import num_processes, process_rank, wait_for_all


def full_state(
    model: nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> dict[str, Tensor]:
    """Gather what is learned, and what the optimizer remembers of it, in process 0.

    All processes must call it, with the model as `distribute` returned it. A matrix
    under two names, as in tied models, comes once.

    Returns:
        In process 0 the whole tensors, on the CPU: "model." + name of the parameter,
        and "optimizer.state." + name of the parameter + ".exp_avg" and so on. In other
        processes nothing.
    """
    return _state(model, optimizer, gather=True)


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
    wrong = [_difference(ours, state) if process_rank() == 0 else None]
    if num_processes() > 1:
        dist.broadcast_object_list(wrong, src=0)
    if wrong[0]:
        raise ValueError(f"the state is of another model: {wrong[0]}")
    with torch.no_grad():
        for name, x in ours.items():
            whole = torch.empty(x.shape, dtype=x.dtype, device=x.device)
            if process_rank() == 0:
                whole.copy_(state[name])
            if isinstance(x, DTensor):  # process 0 hands out the parts
                x.copy_(distribute_tensor(whole, x.device_mesh, x.placements))
                continue
            if num_processes() > 1:
                dist.broadcast(whole, src=0)
            x.copy_(whole)
    _set(model, optimizer, ours)


def save_shards(
    folder: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
) -> None:
    """Write what is learned, each process its own part, to a folder of safetensors.

    All processes must call it, with a folder that all of them see. It is written to
    the side and renamed: a kill at any instant leaves no half of a folder.

    Raises:
        FileExistsError: there is such a folder.
        ImportError: safetensors is not installed.
    """
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    require("safetensors")
    folder = Path(folder)
    if folder.exists():
        raise FileExistsError(f"{folder} is there already")
    new = beside(folder)
    if process_rank() == 0:  # what a killed save has left, of more processes than now
        shutil.rmtree(new, ignore_errors=True)
    wait_for_all()
    writer = HuggingFaceStorageWriter(str(new), save_distributed=True)
    # Without torch's warning that there is one process.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        save(_state(model, optimizer), storage_writer=writer)  # all wait for all
    if process_rank() == 0:
        new.rename(folder)
    wait_for_all()


def load_shards(
    folder: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
) -> None:
    """Read what `save_shards` wrote, on any number of processes, with any strategy.

    Raises:
        FileNotFoundError: there is no such folder.
        ImportError: safetensors is not installed.
        ValueError: a file is missing or truncated, or all are of another model. Then
            nothing has been overwritten.
    """
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    reader = HuggingFaceStorageReader(str(folder))
    try:
        saved: dict[str, Any] = dict(reader.read_metadata().state_dict_metadata)
    except (require("safetensors").SafetensorError, KeyError, ValueError) as error:
        raise ValueError(f"{folder} holds a file that is cut off: {error}") from error
    for name, tensor in saved.items():
        if sum(part.sizes.numel() for part in tensor.chunks) != tensor.size.numel():
            raise ValueError(f"{folder} lacks a file: parts of {name} are missing")
    state = _state(model, optimizer)
    names = names_of_today({name: name for name in saved}, state)  # as they are there
    sizes = {new: saved[old].size for new, old in names.items()}
    if of_another := _difference(state, sizes):
        raise ValueError(f"{folder} is of another model: {of_another}")
    asked = {old: state[new] for new, old in names.items() if new in state}
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        load(asked, storage_reader=reader)
    _set(model, optimizer, {n: asked[names[n]] for n in state})


MODEL, OPTIMIZER = "model.", "optimizer."  # before the names of tensors


def _state(
    model: nn.Module, optimizer: torch.optim.Optimizer | None, *, gather: bool = False
) -> dict[str, Tensor]:
    """Name the tensors of model and optimizer; under FSDP they know where they lie."""
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_model_state_dict,
        get_optimizer_state_dict,
    )

    options = StateDictOptions(
        flatten_optimizer_state_dict=True, full_state_dict=gather, cpu_offload=gather
    )
    learned = {name for name, _ in unwrap(model).named_parameters()}  # tied ones once
    of_model: dict[str, Any] = get_model_state_dict(model, options=options)
    state = {MODEL + n: x for n, x in of_model.items() if n in learned}
    if optimizer is not None:
        if not optimizer.state:  # torch fills it by a step of nothing, and counts that
            gradients = [p.grad for p in model.parameters()]
            optimizer.zero_grad()  # with gradients it would make no such step
            get_optimizer_state_dict(model, optimizer)
            for p, gradient in zip(model.parameters(), gradients, strict=True):
                p.grad = gradient
            for remembered in optimizer.state.values():
                for x in remembered.values():
                    x.zero_()
        of_optimizer: Any = get_optimizer_state_dict(model, optimizer, options=options)
        state |= {
            OPTIMIZER + name: x
            for name, x in of_optimizer.items()
            if isinstance(x, Tensor)  # and not its learning rate, which is a number
        }
    return state


def _set(
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None,
    state: dict[str, Tensor],
) -> None:
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_optimizer_state_dict,
        set_model_state_dict,
        set_optimizer_state_dict,
    )

    # Not strict, as the second name of a tied matrix is not there.
    options = StateDictOptions(flatten_optimizer_state_dict=True, strict=False)
    set_model_state_dict(model, _part(state, MODEL), options=options)
    if optimizer is not None:
        now: Any = get_optimizer_state_dict(model, optimizer, options=options)
        settings = {n: x for n, x in now.items() if not isinstance(x, Tensor)}
        both = settings | _part(state, OPTIMIZER)
        set_optimizer_state_dict(model, optimizer, both, options=options)


def _part(state: dict[str, Tensor], of: str) -> dict[str, Any]:
    return {n.removeprefix(of): x for n, x in state.items() if n.startswith(of)}


def _difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    """Say how tensors, or their shapes, differ from those of this model."""
    if not any(name.startswith(OPTIMIZER) for name in ours):  # the model alone
        theirs = {n: x for n, x in theirs.items() if n.startswith(MODEL)}
    for name in sorted(ours.keys() ^ theirs.keys()):
        return f"it {'lacks' if name in ours else 'has an unknown'} {name}"
    for name in ours:
        shapes = [tuple(getattr(x, "shape", x)) for x in (ours[name], theirs[name])]
        if shapes[0] != shapes[1]:
            return f"{name} is {shapes[1]}, not {shapes[0]}"
    return None
