"""Importing: every public name, what it costs, and each module alone."""

import ast
import importlib
import json
import os
import pickle
import pkgutil
import sys
from pathlib import Path

import pytest

import tformer

PACKAGES = [tformer]
PACKAGE = Path(tformer.__file__).parent
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages([str(PACKAGE)], "tformer.")
    if not info.name.endswith("__main__")
)
# Modules that a reader copies: nothing beside torch and the standard library.
CORE_FOLDERS = ("tformer.nn", "tformer.fast", "tformer.models")
CORE = ["tformer.checks", *(name for name in MODULES if name.startswith(CORE_FOLDERS))]


@pytest.fixture(params=PACKAGES, ids=lambda package: package.__name__)
def package(request):
    return request.param


def modules_of(package) -> dict[str, str]:
    """Return for each public name of a package its module."""
    names_of = package._NAMES_OF
    return {n: f"{package.__name__}.{m}" for m in names_of for n in names_of[m]}


def place_of(package) -> str:
    return Path(package.__file__).relative_to(PACKAGE.parent).as_posix()


IMPORT_ALONE = """
import importlib, json, os, sys
if sys.argv[2] == "torch":
    import torch
results = {}
for name in json.loads(sys.argv[1]):
    end, start = os.pipe()
    if os.fork() == 0:
        before = set(sys.modules)
        try:
            importlib.import_module(name)
            answer = sorted({m.split(".")[0] for m in set(sys.modules) - before})
        except BaseException as error:
            answer = repr(error)
        with os.fdopen(start, "w") as stream:
            json.dump(answer, stream)
        os._exit(0)
    os.close(start)
    with os.fdopen(end) as stream:
        results[name] = json.load(stream)
print(json.dumps(results))
"""


def test_every_public_name_is_listed_twice(package):
    listed, given = set(package.__all__), set(modules_of(package))
    missing = {"__all__": given - listed, "_NAMES_OF": listed - given}
    problems = [
        f"{place_of(package)}: add {', '.join(sorted(names))} to {place}"
        for place, names in missing.items()
        if names
    ]
    assert not problems, "\n".join(problems)


def test_every_public_name_is_where_it_says(package):
    for name, module in modules_of(package).items():
        value = getattr(package, name)
        assert value is getattr(importlib.import_module(module), name)
        assert value.__module__.startswith(f"{package.__name__}.")
    assert len(set(package.__all__)) == len(package.__all__)
    assert set(package.__all__) <= set(dir(package))


def test_type_checkers_see_the_same_names(package):
    tree = ast.parse(Path(package.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    there = {
        f"from {node.module} import {alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    folders = {f"from tformer import {name}" for name in tformer._FOLDERS}
    wanted = {f"from {m} import {name}" for name, m in modules_of(package).items()}
    wanted |= folders if package is tformer else set()
    problems = [
        f"{place_of(package)}: {verb} under TYPE_CHECKING: {line}"
        for verb, lines in (("add", wanted - there), ("remove", there - wanted))
        for line in sorted(lines)
    ]
    assert not problems, "\n".join(problems)
    assert (PACKAGE / "py.typed").exists()


def test_type_checkers_do_not_see_names_that_are_not_there(package):
    """They take a `__getattr__` of a module for a promise of every name there is."""
    tree = ast.parse(Path(package.__file__).read_text())
    assert not [x for x in ast.walk(tree) if isinstance(x, ast.FunctionDef)]


def test_unknown_names(package, raises):
    name = package.__name__
    with raises(AttributeError, f"module '{name}' has no attribute 'Nothing'"):
        _ = package.Nothing


def test_modules_are_found_from_the_top(fresh):
    code = """
import tformer
print(tformer.interop.from_torch.__name__, tformer.reference.__name__)
"""
    assert fresh(code) == "from_torch tformer.reference"


def test_importing_waits_for_nothing(fresh):
    """`import tformer` costs what the standard library does, and the twin no torch."""
    code = """
import sys, tformer
print(sorted({"torch", "numpy"} & set(sys.modules)))
import tformer.reference
print(sorted({"torch", "numpy"} & set(sys.modules)))
"""
    assert fresh(code).split("\n") == ["[]", "['numpy']"]


def test_the_twin_names_each_class_and_function_once():
    """`x as x` tells type checkers that a name is public; no module hides one."""
    init = Path(tformer.reference.__file__)
    for node in ast.parse(init.read_text()).body[1:]:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name
            value = getattr(tformer.reference, alias.name)
            assert value is getattr(importlib.import_module(node.module), alias.name)
            assert value.__module__ == node.module


def test_a_package_can_be_pickled():
    """As a library does that sends functions, and what they name, to other machines."""
    for package in PACKAGES:
        assert pickle.loads(pickle.dumps(package)) is package


def test_importing_every_name_waits_for_what_is_used_later(fresh):
    code = """
import sys
from tformer import *
later = {"matplotlib", "tokenizers", "babel", "safetensors", "numpy.random"}
print(sorted(later & set(sys.modules)))
"""
    assert fresh(code) == "[]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process for each module")
def test_every_module_can_be_imported_alone(fresh):
    """In a process of its own: a cycle of imports would show from one end."""
    torch_free = [name for name in MODULES if name.startswith("tformer.reference")]
    results = json.loads(fresh(IMPORT_ALONE, json.dumps(torch_free), "numpy"))
    for name, loaded in results.items():
        assert isinstance(loaded, list), (name, loaded)
        assert "torch" not in loaded, name
    others = [name for name in MODULES if name not in torch_free]
    results = json.loads(fresh(IMPORT_ALONE, json.dumps(others), "torch"))
    for name, loaded in results.items():
        assert isinstance(loaded, list), (name, loaded)
    standard = {*sys.stdlib_module_names, "tformer"}
    assert len(CORE) > 20
    for name in [*CORE, "tformer.interop"]:
        assert set(results[name]) <= standard, name
