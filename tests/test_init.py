"""Importing: every public name, what it costs, and each module alone."""

import ast
import importlib
import json
import os
import pkgutil
import sys
from pathlib import Path

import pytest

import tformer

PACKAGE = Path(tformer.__file__).parent
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages([str(PACKAGE)], "tformer.")
    if not info.name.endswith("__main__")
)
# Modules that a reader copies: nothing beside torch and the standard library.
CORE_FOLDERS = ("tformer.nn", "tformer.fast", "tformer.models")
CORE = ["tformer.checks", *(name for name in MODULES if name.startswith(CORE_FOLDERS))]

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


def test_every_public_name_is_listed_twice():
    listed, given = set(tformer.__all__), set(tformer._MODULE_OF)
    missing = {"__all__": given - listed, "_NAMES_OF": listed - given}
    problems = [
        f"tformer/__init__.py: add {', '.join(sorted(names))} to {place}"
        for place, names in missing.items()
        if names
    ]
    assert not problems, "\n".join(problems)


def test_every_public_name_is_where_it_says():
    for name in tformer.__all__:
        value = getattr(tformer, name)
        module = importlib.import_module(f"tformer.{tformer._MODULE_OF[name]}")
        assert value is getattr(module, name)
        assert value.__module__.startswith("tformer.")
    assert len(set(tformer.__all__)) == len(tformer.__all__)
    assert set(tformer.__all__) <= set(dir(tformer))


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(tformer.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module.removeprefix("tformer.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    folders = {name for name, module in seen.items() if module == "tformer"}
    assert folders == tformer._FOLDERS
    seen = {name: module for name, module in seen.items() if name not in folders}
    wanted = {
        f"from tformer.{module} import {name}"
        for name, module in tformer._MODULE_OF.items()
    }
    there = {f"from tformer.{module} import {name}" for name, module in seen.items()}
    problems = [
        f"tformer/__init__.py: {verb} under TYPE_CHECKING: {line}"
        for verb, lines in (("add", wanted - there), ("remove", there - wanted))
        for line in sorted(lines)
    ]
    assert not problems, "\n".join(problems)
    assert (PACKAGE / "py.typed").exists()


def test_type_checkers_do_not_see_names_that_are_not_there():
    """They take a `__getattr__` of a module for a promise of every name there is."""
    tree = ast.parse(Path(tformer.__file__).read_text())
    hidden = [
        function.name
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "not TYPE_CHECKING"
        for function in node.body
        if isinstance(function, ast.FunctionDef)
    ]
    everywhere = [f.name for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    assert hidden == ["__getattr__"]
    assert everywhere.count("__getattr__") == 1


def test_unknown_names(raises):
    with raises(AttributeError, "module 'tformer' has no attribute 'Nothing'"):
        _ = tformer.Nothing


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
