"""Checkpoints in shards, as version 0.1 wrote them under FSDP."""

import warnings
from pathlib import Path

import torch
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_saver import save

from tformer.training import shards


def save_shards(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> None:
    """Let each process write the part that it holds; all must call it."""
    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        save(shards._state(model, optimizer), storage_writer=writer)
