"""From a torch module to its NumPy twin, without importing torch."""

from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any

WITHOUT_TWIN = {"Dropout", "Identity"}  # they do nothing in `eval()`
TORCHS_OWN = {"torch.nn.modules.transformer", "torch.nn.modules.activation"}


def from_torch(module: Any) -> Any:
    """Make the twin of a torch module: the class of this name, filled in by name.

    A field of the twin gets what the module has under this name: the twin of a part,
    a copy of a weight, or an option. Arrays keep the dtype, except that bfloat16, which
    NumPy does not have, becomes float32. Modules of torch's own are taken as
    `tformer.interop.from_torch` takes them.

    Raises:
        TypeError: there is no twin, or it lacks a part or a weight of the module.
    """
    # By name, so that a class pasted from a chapter into a script has its twin too.
    for kind in type(module).__mro__:
        if kind.__module__ in TORCHS_OWN:
            return from_torch(import_module("tformer.interop").from_torch(module))
        twin = getattr(import_module("tformer.reference"), kind.__name__, None)
        if isinstance(twin, type):
            return _filled(twin, module)
        if "forward" in vars(kind):
            break  # it computes something of its own
    raise TypeError(f"{type(module).__name__} has no twin in tformer.reference")


def _filled(twin: Any, module: Any) -> object:
    names = {field.name for field in fields(twin) if field.init}
    inside = {name.partition(".")[0] for name in module.state_dict()}
    parts = dict(module.named_children())
    inside |= {n for n, p in parts.items() if type(p).__name__ not in WITHOUT_TWIN}
    if unknown := sorted(inside - names):
        raise TypeError(f"the twin of {twin.__name__} has no {', '.join(unknown)}")
    given = {}
    for field in fields(twin):
        value = getattr(module, field.name, MISSING)
        if field.init and value is not MISSING:
            given[field.name] = _converted(value)
    return twin(**given)


def _converted(value: Any) -> object:
    if hasattr(value, "state_dict"):
        if type(value).__name__ == "ModuleList":
            return [from_torch(each) for each in value]
        return from_torch(value)
    if hasattr(value, "detach"):
        tensor = value.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":
            tensor = tensor.float()
        return tensor.numpy().copy()  # which training the module leaves as it is
    if callable(value):
        raise TypeError(f"{value!r} has no twin in tformer.reference")
    return value
