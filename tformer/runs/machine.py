"""On what a number was measured."""

import os
import platform
from pathlib import Path
from typing import Any

import torch

import tformer
from tformer.training.processes import num_processes


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Name the processor or GPU, and the versions."""
    cuda = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if cuda else _cpu_name()
    return {
        "device": device.type,
        "name": name,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "processes": num_processes(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "tformer": tformer.__version__,
    }


def _cpu_name() -> str:
    """Linux knows the processor's name better than Python does."""
    file = Path("/proc/cpuinfo")
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
