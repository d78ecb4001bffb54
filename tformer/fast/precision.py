"""Half precision: stored in 16 bits, computed in 32."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def in_float32(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make a function of query and key compute float16 and bfloat16 in float32.

    A score above 65,504 is infinite in float16, and bfloat16 has 8 bits: a score of 30
    would be off by up to 0.06, and its weight by 6 %. torch's kernel keeps scores in
    float32 too. Autocast, which would take products back to 16 bits, is switched off.
    Two tensors of different dtypes stay as they are: the function may refuse them.
    """

    @functools.wraps(function)
    def compute(query: Tensor, key: Tensor, *rest: object, **options: object) -> Tensor:
        if query.dtype == key.dtype and query.dtype in HALF:
            query, key = query.float(), key.float()
        with without_autocast(query.device.type):
            return function(query, key, *rest, **options)

    return compute


def without_autocast(device_type: str) -> AbstractContextManager[object]:
    """Switch autocast off, on a device of a kind that has it."""
    if torch.compiler.is_compiling() or torch.amp.is_autocast_available(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()
