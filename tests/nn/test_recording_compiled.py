"""Attention weights that are kept where a model is compiled, or exported."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from recorded_model import NAMES, draw_inputs, make_model, untouched
from tformer import causal_mask, record_weights


@pytest.fixture
def model(randomised):
    return randomised(make_model())


@pytest.fixture
def inputs():
    return draw_inputs()


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_was_compiled_and_used_before(model, inputs):
    torch._dynamo.reset()
    with record_weights(model) as wanted:
        output = model(*inputs)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    assert_close(compiled(*inputs), output)
    with record_weights(compiled) as weights:
        assert_close(compiled(*inputs), output)
    assert list(weights.by_name()) == NAMES
    assert_close(weights.by_name(), wanted.by_name())
    sum(w.square().sum() for w in weights.values()).backward()
    assert model.encoder.blocks[0].attention.q_proj.weight.grad.abs().max() > 0
    kept = weights[NAMES[0]]
    assert_close(compiled(*inputs), output)
    assert weights[NAMES[0]] is kept
    assert untouched(model)


@pytest.mark.filterwarnings("ignore")
def test_names_are_those_of_the_model_before_a_part_was_compiled(model, inputs):
    torch._dynamo.reset()
    model.encoder = torch.compile(model.encoder, backend="eager")
    with record_weights(model) as weights:
        model(*inputs)
    assert list(weights.by_name()) == NAMES


@pytest.mark.filterwarnings("ignore")
def test_export_of_a_module_that_returns_weights(model, inputs):
    class WithWeights(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, src, tgt):
            with record_weights(self.model) as weights:
                output = self.model(src, tgt, causal_mask(tgt.shape[1]))
            return output, weights.by_name()

    both = WithWeights().eval()
    program = torch.export.export(both, inputs)
    others = tuple(torch.randn_like(x) for x in inputs)
    output, weights = program.module()(*others)
    wanted, wanted_weights = both(*others)
    assert_close(output, wanted)
    assert list(weights) == NAMES
    assert_close(dict(weights), wanted_weights)
    assert untouched(model)
