"""Every module of the package is one graph."""

import ast
import importlib
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import tformer
from every_module import MODULES, tensors

PACKAGE = Path(tformer.__file__).parent
everywhere = pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)


def test_every_module_of_the_package_is_here():
    found = set()
    for folder in ("nn", "models", "fast"):
        for path in sorted((PACKAGE / folder).glob("*.py")):
            module = importlib.import_module(f"tformer.{folder}.{path.stem}")
            for node in ast.parse(path.read_text()).body:
                kind = getattr(module, getattr(node, "name", ""), None)
                if isinstance(kind, type) and issubclass(kind, nn.Module):
                    found.add(kind)
    missing = {
        kind.__name__
        for kind in found - set(MODULES)
        if not kind.__name__.startswith("_")
    }
    assert not missing


def check_one_graph(kind, train, sizes):
    """`fullgraph` makes an error of each place where Python would have to step in."""
    torch.manual_seed(0)
    make, draw = MODULES[kind]
    module = make().train(train)
    torch.compiler.reset()
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for size in sizes:
        inputs = draw(*size)
        torch.manual_seed(1)
        output = compiled(*inputs)
        torch.manual_seed(1)
        assert_close(tensors(output), tensors(module(*inputs)))


@everywhere
def test_one_graph_in_training(kind):
    check_one_graph(kind, True, [(2, 5)])


@pytest.mark.nightly
@everywhere
def test_one_graph_of_any_size(kind):
    check_one_graph(kind, False, [(2, 5), (3, 7)])
