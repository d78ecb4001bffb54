"""Loads a reader's file and finds the function that an exercise asks for."""

import os
import sys
from collections.abc import Sequence
from inspect import isclass, isfunction, signature
from types import ModuleType

from tformer.check.calling import Function, told

NAME = "exercise"  # of the module that a reader's file becomes


def load(
    file: str, source: str, name: str, arguments: Sequence[str]
) -> tuple[Function | None, dict[str, object]]:
    """Run a file, and find a function in it.

    Args:
        file: its path, which its own errors show; siblings can be imported.
        source: what stands in it.
        name: of the function.
        arguments: the names of its arguments, in order.

    Returns:
        The function, and what is said of it: `note`; or None, and `failed`.
    """
    module = ModuleType(NAME)
    module.__file__ = file
    sys.modules[NAME] = module  # a dataclass looks its module up
    sys.path.append(os.path.dirname(file))
    try:
        exec(compile(source, file, "exec"), vars(module))
    except SyntaxError as error:
        if error.filename != file:
            return None, {"failed": told(error, file)}
        return None, {"failed": f"{error.msg} (line {error.lineno})"}
    except BaseException as error:  # noqa: BLE001 - whatever the file raises
        return None, {"failed": f"to load the file raises {told(error, file)}"}
    try:
        return _find(vars(module), name, arguments)
    except BaseException as error:  # noqa: BLE001 - a name may stand for anything
        return None, {"failed": told(error, file)}


def _find(
    names: dict[str, object], name: str, arguments: Sequence[str]
) -> tuple[Function | None, dict[str, object]]:
    if name in names:
        found = names[name]
        if isclass(found):
            try:
                found = found()
            except TypeError as error:
                said = f"{name} is a class that cannot be made without arguments"
                return None, {"failed": f"{said}: {error}"}
        if not callable(found):
            return None, {"failed": f"{name} is no function"}
        return _fitted(found, arguments), {"note": ""}
    own = {
        key: x
        for key, x in names.items()
        if isfunction(x) and x.__module__ == NAME and not key.startswith("_")
    }
    fitting = [key for key, x in own.items() if _takes(x, len(arguments))]
    if len(fitting) == 1:
        note = f"there is no {name} in the file; {fitting[0]} was taken for it"
        return _fitted(own[fitting[0]], arguments), {"note": note}
    said = f"it has {', '.join(own)}" if own else "it defines no function"
    return None, {"failed": f"there is no function {name} in the file: {said}"}


def _takes(function: Function, number: int) -> bool:
    """Say whether a function can be called with so many arguments, in order."""
    try:
        signature(function).bind(*[None] * number)
    except (TypeError, ValueError):
        return False
    return True


def _fitted(function: Function, names: Sequence[str]) -> Function:
    """Give a function its arguments by name, if it takes them in no order."""
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):
        return function
    if _takes(function, len(names)) or not {*names} <= parameters.keys():
        return function

    def by_name(*args: object) -> object:
        return function(**dict(zip(names, args, strict=False)))

    return by_name
