"""Every module can be exported for any batch and any length."""

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.testing import assert_close

from every_module import LANGUAGE_MODELS, MODULES, SMALL, ids, tensors
from tformer import (
    BERT,
    GPT,
    ALiBi,
    LearnedPositionalEmbedding,
    MultiTokenHeads,
    RelativeBias,
)

EXAMPLE = (3, 6)  # the batch and the length that an export sees
BATCH, LENGTH = Dim("batch", max=64), Dim("length", max=4096)
# Learned positions end, and so does the length.
UP_TO_THE_LAST_POSITION = Dim("length", max=SMALL["max_len"])
LENGTHS = {
    GPT: UP_TO_THE_LAST_POSITION,
    BERT: UP_TO_THE_LAST_POSITION,
    LearnedPositionalEmbedding: UP_TO_THE_LAST_POSITION,
    # Two heads look at two and three tokens ahead.
    MultiTokenHeads: Dim("length", min=4, max=SMALL["max_len"]),
}
# Take two ints and no tensor: they are exported in the language models below.
GIVEN_INTS = {ALiBi, RelativeBias}


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


def check(module, draw, length=LENGTH):
    module.eval()
    before = draw(4, 9)
    expected = tensors(module(*before))  # it may be used before, which grows tables
    program = export(module, draw, length).module()
    assert_close(tensors(program(*before)), expected)
    assert_close(tensors(module(*before)), expected)  # and after
    for size in ((2, 5), (5, min(length.max, 150))):
        inputs = draw(*size)
        assert_close(tensors(program(*inputs)), tensors(module(*inputs)))


@pytest.mark.parametrize(
    "kind", [k for k in MODULES if k not in GIVEN_INTS], ids=lambda k: k.__name__
)
def test_a_module_at_any_batch_and_length(kind):
    make, draw = MODULES[kind]
    check(make(), draw, LENGTHS.get(kind, LENGTH))


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_model_with_each_part(name):
    # With gradients torch 2.13 cannot compare the strides of S + 1 keys in groups.
    with torch.set_grad_enabled(name != "sinks"):
        check(LANGUAGE_MODELS[name](), ids)


class BoundToItsBatch(nn.Module):
    def forward(self, x):
        return x * len(x)  # `len` makes a number of a size; x.shape[0] would not


def test_a_module_that_is_bound_to_a_size_is_refused():
    with pytest.raises(torch._dynamo.exc.UserError, match="specialized it to be a"):
        export(BoundToItsBatch(), lambda B, T: (torch.randn(B, T, 2),))


def test_a_length_beyond_the_last_position_is_refused():
    make, draw = MODULES[GPT]
    with pytest.raises(torch._dynamo.exc.UserError, match="max=20"):
        export(make().eval(), draw)
