"""Half precision: stored in 16 bits, computed in 32."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def in_float32(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make a function of two tensors, or more, take float16 and bfloat16 as float32.

    A score above 65,504 is infinite in float16, and bfloat16 has 8 bits: a score of 30
    would be off by up to 0.06, and its weight by 6 %. torch's kernel keeps scores in
    float32 too. Autocast, which would take products back to 16 bits, is switched off.
    Other dtypes stay as they are.
    """

    @functools.wraps(function)
    def compute(one: Tensor, two: Tensor, *rest: object, **options: object) -> Tensor:
        one, two = (x.float() if x.dtype in HALF else x for x in (one, two))
        with _without_autocast(one.device.type):
            return function(one, two, *rest, **options)

    return compute


def _without_autocast(device_type: str) -> AbstractContextManager[object]:
    if torch.compiler.is_compiling() or torch.amp.is_autocast_available(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()
