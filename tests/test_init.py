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

PACKAGE = Path(tformer.__file__).parent
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages([str(PACKAGE)], "tformer.")
    if not info.name.endswith("__main__")
)
# Packages whose names are typed once, in a stub, and imported when they are first used.
STUBS = sorted(PACKAGE.rglob("__init__.pyi"))
PACKAGES = [
    importlib.import_module(".".join(stub.parent.relative_to(PACKAGE.parent).parts))
    for stub in STUBS
]
# Modules that a reader copies: nothing beside torch and the standard library.
CORE_FOLDERS = ("tformer.nn", "tformer.models")
CORE = ["tformer.checks", *(name for name in MODULES if name.startswith(CORE_FOLDERS))]


@pytest.fixture(params=PACKAGES, ids=lambda package: package.__name__)
def package(request):
    return request.param


def names_of(package) -> list[tuple[str, str, str]]:
    """Return each public name of a package, its module, and what it is called there."""
    tree = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    return [
        (alias.asname, node.module, alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


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


def test_every_public_name_is_where_it_says(package):
    names = [name for name, *_ in names_of(package)]
    assert None not in names, "type checkers take `x as x` alone for a public name"
    assert len({*names}) == len(names)
    assert {*names} <= {*dir(package)}
    assert (PACKAGE / "py.typed").exists()
    for name, module, original in names_of(package):
        value = getattr(package, name)
        if module == package.__name__:  # a folder
            assert value is importlib.import_module(f"{module}.{original}")
        else:
            assert value is getattr(importlib.import_module(module), original)
            assert value.__module__ == module


def test_all_names_no_folder(package):
    """`from tformer import *` would put `tformer.nn` where `torch.nn` was."""
    wanted = [name for name, home, _ in names_of(package) if home != package.__name__]
    assert package.__all__ == sorted(wanted)


def test_a_function_keeps_its_name_beside_a_module_of_that_name(fresh):
    """Python puts a module into its package when it is imported, there by that name."""
    code = """
import tformer.nn.delta_rule
from tformer.nn import delta_rule, rms_norm
import tformer.nn.linear_attention
print(delta_rule.__name__, tformer.nn.linear_attention.__name__, rms_norm.__name__)
"""
    assert fresh(code) == "delta_rule linear_attention rms_norm"


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
print(sorted({"torch", "numpy"} & set(sys.modules)), tformer.reference.Encoder.__name__)
print(sorted({"torch", "numpy"} & set(sys.modules)))
"""
    assert fresh(code).split("\n") == ["[]", "[] Encoder", "['numpy']"]


def test_a_package_can_be_pickled(package):
    """As a library does that sends functions, and what they name, to other machines."""
    assert pickle.loads(pickle.dumps(package)) is package


def test_importing_every_name_waits_for_what_is_used_later(fresh):
    code = """
import sys
from tformer import *
later = {"matplotlib", "tokenizers", "babel", "safetensors", "numpy.random"}
print(sorted(later & set(sys.modules)))
"""
    assert fresh(code) == "[]"


@pytest.mark.nightly
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
