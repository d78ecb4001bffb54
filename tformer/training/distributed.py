"""Training on several processes: torch's DDP and FSDP2, started by torchrun.

Every process builds the same model and the same batches, and works on its own rows of
each. Without torchrun there is one process, and every function here still works.
"""

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tformer.data.batch import Batch
from tformer.nn.block import Block
from tformer.nn.router import Router, expert_counts
from tformer.training.processes import num_processes, process_rank, sum_over_processes


def setup(device: str = "auto") -> torch.device:
    """Join the processes that torchrun has started, and choose this one's device.

    NCCL connects GPUs, gloo connects CPUs. The device is as for `choose_device`.
    """
    together = "RANK" in os.environ and "WORLD_SIZE" in os.environ
    chosen = choose_device(device, alone=not together)
    if together and not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo"
        dist.init_process_group(backend)
    return chosen


def choose_device(device: str = "auto", *, alone: bool = True) -> torch.device:
    """Choose the device of this process; each of a machine takes the GPU of its rank.

    Args:
        device: "cpu", "cuda", "mps", or "auto": CUDA where there is one, else, in one
            process alone, MPS where there is one, else the CPU.
        alone: False if other processes work beside this one; LOCAL_RANK counts then.

    Raises:
        ValueError: the device is unknown, not there, too few, or cannot talk to others.
    """
    if device == "auto":
        mps = alone and torch.backends.mps.is_available()
        device = "cuda" if torch.cuda.is_available() else "mps" if mps else "cpu"
    if device not in ("cpu", "cuda", "mps"):
        raise ValueError(f"device ({device!r}) must be 'auto', 'cpu', 'cuda' or 'mps'")
    if device == "mps" and not alone:
        raise ValueError("device ('mps') has no way to talk to other processes: 'cpu'")
    if device == "mps" and not torch.backends.mps.is_available():
        raise ValueError("device ('mps') is not on this machine")
    if device != "cuda":
        return torch.device(device)
    local_rank = 0 if alone else int(os.environ.get("LOCAL_RANK", "0"))
    gpus = torch.cuda.device_count()
    if local_rank >= gpus:
        what = f"process {local_rank} of this machine needs a GPU of its own"
        raise ValueError(f"device ('cuda'): {what}, and there are {gpus}")
    torch.cuda.set_device(local_rank)
    return torch.device(f"cuda:{local_rank}")


class ProcessLostError(RuntimeError):
    """Another process of the run has died, or cannot be reached."""


# How gloo says it; NCCL has an exception of its own.
_LOST = ("Connection reset", "Connection closed", "Broken pipe", "Timed out", "refused")


@contextmanager
def running(device: str = "auto") -> Iterator[torch.device]:
    """Call `setup`, run the body, and leave the other processes.

    Raises:
        ProcessLostError: another process has died. This one then stops as well, with
            torchrun's report behind it, which names the first that failed.
    """
    chosen = setup(device)
    try:
        yield chosen
    except RuntimeError as error:
        lost = any(words in str(error) for words in _LOST)
        if num_processes() > 1 and (lost or isinstance(error, dist.DistError)):
            raise ProcessLostError(
                f"process {process_rank()} of {num_processes()} stops: another process "
                "of this run has died or cannot be reached. The report of torchrun "
                "names the first that failed. Start again from the last checkpoint"
            ) from error
        raise
    if dist.is_initialized():  # but not after an error: it may hang
        dist.destroy_process_group()


def distribute(model: nn.Module, strategy: str = "none") -> nn.Module:
    """Prepare a model for training in all processes, with gradients averaged over them.

    "ddp": every process holds all of the model, and gradients are averaged while they
    are computed (Li et al. 2020, arXiv:2006.15704). "fsdp": every process holds a part
    of each matrix, and gathers the rest of a layer when it is used (ZeRO-3, Rajbhandari
    et al. 2020, arXiv:1910.02054; Zhao et al. 2023, arXiv:2304.11277).

    Make the optimizer afterwards: FSDP puts other parameters in the place of these.
    Processes must draw different dropout: seed each with its rank, after this.

    Args:
        model: on its device. All start from the weights of process 0.
        strategy: "none", "ddp" or "fsdp". With several processes, "none" would train
            as many models, each on a part of the data: a ValueError.

    Returns:
        The model to call: itself, or DDP around it; `unwrap` gives it back. Without
        torchrun, always itself.
    """
    if strategy not in ("none", "ddp", "fsdp"):
        raise ValueError(f"strategy ({strategy!r}) must be 'none', 'ddp' or 'fsdp'")
    if strategy == "none" and (n := num_processes()) > 1:
        raise ValueError(f"strategy ('none') with {n} processes: take 'ddp'")
    if strategy == "none" or not dist.is_initialized():
        return model
    for router in _routers(model):
        router.count = _counts_of_all
    if strategy == "ddp":
        # Gradients live in what is sent, so that they exist once. Buffers, which are
        # tables of positions here, never change, and need not be sent at each step.
        known = inspect.signature(DistributedDataParallel).parameters
        name = "forward_sync_buffers"  # its name from torch 2.13 on
        name = name if name in known else "broadcast_buffers"
        options: dict[str, Any] = {"gradient_as_bucket_view": True, name: False}
        return DistributedDataParallel(model, **options)
    return _shard(model)


def _routers(model: nn.Module) -> list[Router]:
    return [module for module in model.modules() if isinstance(module, Router)]


def _counts_of_all(chosen: Tensor, num_experts: int) -> Tensor:
    """Count which experts the tokens of all processes chose, as in one batch.

    Else each process would balance by its own rows, and the models drift apart.
    """
    return sum_over_processes(expert_counts(chosen, num_experts))


def _shard(model: nn.Module) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh  # from torch 2.6
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    tensors = (x.detach() for x in [*model.parameters(), *model.buffers()])
    for sending in [dist.broadcast(x, src=0, async_op=True) for x in tensors]:
        sending.wait()
    mesh = init_device_mesh(next(model.parameters()).device.type, (num_processes(),))
    # A forward changes these: what FSDP gathers it throws away afterwards.
    biases = (router.selection_bias for router in _routers(model))
    whole: set[nn.Parameter] = {bias for bias in biases if bias is not None}
    for layer in list(model.modules()):
        if isinstance(layer, Block):  # one after the other is gathered
            fully_shard(layer, mesh=mesh, ignored_params=whole)
    # What is in no layer is gathered for the whole of the model's forward, also a tied
    # embedding, which is used twice, the second time by another method.
    fully_shard(model, mesh=mesh, ignored_params=whole)
    ways = [name for name in ("encode", "decode") if hasattr(model, name)]
    for name in ways:  # other ways into a model than forward
        register_fsdp_forward_method(model, name)
    gathering = {name: vars(model)[name] for name in ways}

    def begin(*_: object) -> None:  # a forward has gathered: inside it they need not
        for name in ways:
            vars(model).pop(name, None)

    def end(*_: object) -> None:
        vars(model).update(gathering)

    model.register_forward_pre_hook(begin)
    model.register_forward_hook(end, always_call=True)
    return model


def settle(model: nn.Module, batch: Batch) -> None:
    """Let DDP sort its buckets before the first step, and not after it.

    DDP adds gradients up bucket by bucket, and sorts them into other buckets after its
    first backward pass, in the order in which they came. From three processes on, where
    a number lies in its bucket decides in which order it is summed. So a training that
    goes on would differ in the last digit from one that never stopped, which has its
    new buckets by then. Of any other model nothing is asked.

    Args:
        model: as `distribute` returned it, without gradients; all processes call it.
        batch: any; its first row goes through the model, and no weight changes.
    """
    if isinstance(model, DistributedDataParallel):
        row = batch.split(len(batch))[0]
        balancing = [router for router in _routers(model) if router.training]
        for router in balancing:
            router.eval()
        (model(*row.inputs).sum() * 0).backward()
        for router in balancing:
            router.train()
        model.zero_grad(set_to_none=True)


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model that was given to `distribute`."""
    return model.module if isinstance(model, DistributedDataParallel) else model
