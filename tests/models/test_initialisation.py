"""The first weights with depth: which matrices are smaller, and what that holds."""

import math

import pytest
import torch
from torch import nn

from tformer import GPT, CausalLM, CausalLMConfig, GPTConfig, Parts
from tformer.models.expert_parts import ExpertParts
from tformer.models.initialisation import LAST, depth_scaled_normal_


def deep(num_layers: int, **parts) -> CausalLM:
    torch.manual_seed(0)
    sizes = {"vocab_size": 211, "d_model": 80, "num_heads": 5, "num_kv_heads": None}
    return CausalLM(
        CausalLMConfig.tiny(num_layers=num_layers, **sizes, parts=Parts(**parts))
    )


def test_the_standard_deviation_of_each_matrix():
    model = deep(8)
    depth_scaled_normal_(model, 8, std=0.1)
    smaller = [name for name, _ in model.named_parameters() if name.endswith(LAST)]
    assert len(smaller) == 2 * 8  # one for each term of the sum
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            wanted = 0.1 / 4 if name in smaller else 0.1  # √(2 · 8) = 4
            assert parameter.std().item() == pytest.approx(wanted, rel=0.05), name


@pytest.mark.parametrize(
    "model",
    [
        deep(3, feed_forward="gelu"),
        deep(3, experts=ExpertParts(num_experts=4)),
        GPT(GPTConfig.tiny(num_layers=3)),
    ],
    ids=["two matrices", "experts", "GPT"],
)
def test_all_that_writes_into_the_stream_is_smaller(model):
    """Each linear layer whose output is the output of its sub-layer, and no other."""
    for name, part in model.named_modules():
        if isinstance(part, nn.Linear):
            writes = name.endswith(("out_proj", "linear2", "down_proj"))
            ratio = part.weight.std().item() / 0.02
            assert ratio == pytest.approx(6**-0.5 if writes else 1, rel=0.1), name


def test_biases_are_zero_and_other_vectors_are_left():
    part = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7))
    for parameter in part.parameters():
        nn.init.constant_(parameter, 3.0)
    depth_scaled_normal_(part, 1)
    assert (part[0].bias == 0).all()
    assert (part[1].bias == 0).all()
    assert (part[1].weight == 3).all()
    assert (part[0].weight.abs() < 0.2).all()


@torch.no_grad()
def test_the_sum_grows_by_as_much_at_every_depth():
    """Its matrices keep a vector's size: 2N terms, each of a variance like 1 / 2N."""
    growth = []
    for num_layers in (2, 8, 32):
        model = deep(num_layers)
        depth_scaled_normal_(model, num_layers, std=80**-0.5)
        x = first = torch.randn(3, 40, 80)
        for block in model.blocks:
            x = block(x)
        growth.append((x.square().mean() / first.square().mean()).item())
    assert max(growth) / min(growth) < 1.15
    unscaled = deep(32)
    depth_scaled_normal_(unscaled, 1, std=80**-0.5)  # as if it had one layer
    x = first
    for block in unscaled.blocks:
        x = block(x)
    assert x.square().mean() / first.square().mean() > 4 * max(growth)


def test_a_shared_matrix_is_drawn_once():
    torch.manual_seed(3)
    tied = nn.ModuleList([nn.Linear(5, 5, bias=False), nn.Linear(5, 5, bias=False)])
    tied[1].weight = tied[0].weight
    torch.manual_seed(4)
    depth_scaled_normal_(tied, 1, std=math.pi)
    torch.manual_seed(4)
    assert torch.equal(tied[1].weight, math.pi * torch.randn(5, 5))
