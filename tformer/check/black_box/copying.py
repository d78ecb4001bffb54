"""Copies of models, so that nothing of the reader's is changed."""

import copy
import functools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType, FunctionType, MethodType

import numpy as np
import torch
from torch import nn

Model = Callable[..., object]


def copy_of(model: Model) -> Model | None:
    """Copy a model, a function with what it encloses too; None if it cannot be."""
    try:
        if not isinstance(model, FunctionType):
            made: Model = copy.deepcopy(model)
            return None if made is model else made
        if not model.__closure__:
            return None
        memo: dict[int, object] = {}
        cells = [copy.deepcopy(x.cell_contents, memo) for x in model.__closure__]
        made = FunctionType(
            model.__code__,
            model.__globals__,
            model.__name__,
            copy.deepcopy(model.__defaults__, memo),
            tuple(CellType(x) for x in cells),
        )
        made.__kwdefaults__ = model.__kwdefaults__
        return made
    except Exception:  # noqa: BLE001 - some hold what cannot be copied
        return None


def module_in(model: object) -> nn.Module | None:
    """Find the module that a model is, or that it calls."""
    if isinstance(model, nn.Module):
        return model
    parts: list[object] = []
    if isinstance(model, FunctionType):
        parts = [x.cell_contents for x in model.__closure__ or ()]
        named = (model.__globals__.get(name) for name in model.__code__.co_names)
        parts += [x for x in named if isinstance(x, nn.Module)]
    elif isinstance(model, MethodType):
        parts = [model.__self__]
    elif isinstance(model, functools.partial):
        parts = [model.func, *model.args, *model.keywords.values()]
    elif hasattr(model, "__dict__"):
        parts = [x for x in vars(model).values() if isinstance(x, nn.Module)]
    found = (module_in(part) for part in parts if part is not model)
    return next((x for x in found if x is not None), None)


@contextmanager
def kept(model: Model) -> Iterator[None]:
    """Leave random numbers, the modes of modules and their numbers as they were."""
    module = module_in(model)
    modules = [] if module is None else [*module.modules()]
    modes = [each.training for each in modules]
    numbers = np.random.get_state()
    plain = random.getstate()
    grads = torch.is_grad_enabled()
    copied = copy_of(model) is not None
    held = {} if module is None or copied else copy.deepcopy(module.state_dict())
    devices = [*range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        try:
            torch.set_grad_enabled(True)
            yield
        finally:
            torch.set_grad_enabled(grads)
            np.random.set_state(numbers)
            random.setstate(plain)
            for each, mode in zip(modules, modes, strict=True):
                each.training = mode
            if module is not None and held:
                module.load_state_dict(held)
