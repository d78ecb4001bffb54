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
        "kernels": "CUDA" if cuda else torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "processes": num_processes(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "tformer": tformer.__version__,
    }


def _cpu_name() -> str:
    """Name the processor: Linux knows more of it than Python does.

    "AMD EPYC" alone is the name of many; family, model and stepping tell which it is.
    """
    file = Path("/proc/cpuinfo")
    if file.exists():
        told = dict[str, str]()
        for line in file.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            told.setdefault(name.strip(), value.strip())  # of the first core
        numbers = ("cpu family", "model", "stepping")
        which = [f"{n.split()[-1]} {told[n]}" for n in numbers if n in told]
        if "model name" in told:
            return ", ".join([told["model name"], *which])
    return platform.processor() or platform.machine()
