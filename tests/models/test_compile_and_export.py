"""Every module of the package is one graph, and can be exported for any size."""

import ast
import copy
import importlib
import pickle
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.testing import assert_close

import tformer
from every_module import LANGUAGE_MODELS, MODULES, SMALL, ids, tensors
from tformer.models import BERT, CausalLM, MultiTokenHeads, Transformer
from tformer.models.encoder_decoder import EncoderDecoder
from tformer.models.vit import ViT
from tformer.nn import (
    ALiBi,
    Block,
    Decoder,
    Encoder,
    FeedForward,
    GatedFeedForward,
    LatentAttention,
    LearnedPositionalEmbedding,
    MultiHeadAttention,
    RelativeBias,
)

PACKAGE = Path(tformer.__file__).parent
everywhere = pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)

EXAMPLE = (3, 6)  # the batch and the length that an export sees
BATCH, LENGTH = Dim("batch", max=64), Dim("length", max=4096)
# Learned positions end, and so does the length.
UP_TO_THE_LAST_POSITION = Dim("length", max=SMALL["max_len"])
LENGTHS = {
    CausalLM: UP_TO_THE_LAST_POSITION,
    BERT: UP_TO_THE_LAST_POSITION,
    LearnedPositionalEmbedding: UP_TO_THE_LAST_POSITION,
    # Two heads look at two and three tokens ahead.
    MultiTokenHeads: Dim("length", min=4, max=SMALL["max_len"]),
}
WITH_DROPOUT = (
    *(FeedForward, GatedFeedForward, MultiHeadAttention, LatentAttention),
    *(Block, Encoder, BERT, ViT, CausalLM, Transformer),
)
# Take two ints and no tensor: they are exported in the language models below.
GIVEN_INTS = {ALiBi, RelativeBias}
# Exported as parts of Transformer.
IN_A_TRANSFORMER = {Block, Decoder, Encoder, EncoderDecoder}


def test_every_module_of_the_package_is_here():
    found = set()
    for folder in ("nn", "models"):
        for path in sorted((PACKAGE / folder).glob("*.py")):
            module = importlib.import_module(f"tformer.{folder}.{path.stem}")
            for node in ast.parse(path.read_text()).body:
                kind = getattr(module, getattr(node, "name", ""), None)
                if isinstance(kind, type) and issubclass(kind, nn.Module):
                    found.add(kind)
    assert found == {*MODULES}


@everywhere
def test_copies_compute_the_same(kind):
    make, draw = MODULES[kind]
    module, other, inputs = make().eval(), make().eval(), draw(2, 5)
    wanted = tensors(module(*inputs))
    other.load_state_dict(module.state_dict())
    for twin in (other, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert_close(tensors(twin(*inputs)), wanted, rtol=0, atol=0)
        own, its = ({id(p) for p in each.parameters()} for each in (module, twin))
        assert not own & its


@pytest.mark.parametrize("kind", WITH_DROPOUT, ids=lambda kind: kind.__name__)
def test_dropout_is_for_training(kind):
    make, draw = MODULES[kind]
    module, inputs = make(), draw(3, 7)
    assert not torch.equal(module(*inputs), module(*inputs))
    assert torch.equal(module.eval()(*inputs), module(*inputs))


@everywhere
def test_every_parameter_learns(kind):
    make, draw = MODULES[kind]
    module = make().eval()
    output = tensors(module(*draw(2, 5)))
    for x in [output] if isinstance(output, torch.Tensor) else output:
        if x.requires_grad:
            (x * torch.randn_like(x)).sum().backward(retain_graph=True)
    for name, parameter in module.named_parameters():
        # A bias of the keys adds the same to every score of a query; what LoRA adds is
        # first multiplied by zeros; an indexer's choice has no gradient.
        if name.endswith(("k_proj.bias", "down")) or name.startswith("indexer."):
            continue
        if parameter.requires_grad:
            assert parameter.grad.abs().max() > 1e-6, name


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


@pytest.mark.by_day(5)
@everywhere
def test_one_graph_in_training(kind):
    check_one_graph(kind, True, [(2, 5)])


@pytest.mark.nightly
@everywhere
def test_one_graph_of_any_size(kind):
    check_one_graph(kind, False, [(2, 5), (3, 7)])


def export(module, draw, length=LENGTH):
    """Export with every axis dynamic that changes with the batch or the length."""
    (B, T), example = EXAMPLE, draw(*EXAMPLE)
    shapes = []
    for x, wider, longer in zip(example, draw(B + 1, T), draw(B, T + 1), strict=True):
        axes = {}
        for axis, size in enumerate(x.shape):
            if wider.shape[axis] != size:
                axes[axis] = BATCH
            elif longer.shape[axis] != size:
                axes[axis] = length if size == T else length + (size - T)
        shapes.append(axes)
    return torch.export.export(module, example, dynamic_shapes=tuple(shapes))


def check_export(module, draw, length=LENGTH):
    module.eval()
    before = draw(4, 9)
    expected = tensors(module(*before))  # it may be used before, which grows tables
    program = export(module, draw, length).module()
    assert_close(tensors(program(*before)), expected)
    assert_close(tensors(module(*before)), expected)  # and after
    for size in ((2, 5), (5, min(length.max, 150))):
        inputs = draw(*size)
        assert_close(tensors(program(*inputs)), tensors(module(*inputs)))


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    "kind",
    [kind for kind in MODULES if kind not in GIVEN_INTS | IN_A_TRANSFORMER],
    ids=lambda kind: kind.__name__,
)
def test_a_module_is_exported_for_any_batch_and_length(kind):
    make, draw = MODULES[kind]
    check_export(make(), draw, LENGTHS.get(kind, LENGTH))


# Latent attention and experts are modules of their own.
@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", sorted({*LANGUAGE_MODELS} - {"latent", "experts"}))
def test_a_language_model_is_exported_with_each_part(name):
    # With gradients torch 2.13 cannot compare the strides of S + 1 keys in groups.
    with torch.set_grad_enabled(name != "sinks"):
        check_export(LANGUAGE_MODELS[name](), ids)
