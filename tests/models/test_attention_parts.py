"""How a model turns, and latent attention in it: what is made, and what is refused."""

import dataclasses
import json
import math
import re

import pytest
import torch
from torch.testing import assert_close

from tformer.models.attention_parts import LatentParts, RotaryParts
from tformer.models.by_name import make_config
from tformer.models.causal_config import CausalLMConfig, Parts
from tformer.models.causal_lm import CausalLM
from tformer.models.nested import finite_above
from tformer.nn.latent import LatentAttention
from tformer.nn.rotary import rotary_frequencies
from tformer.nn.rotary_scaling import (
    scale_linear,
    scale_llama3,
    scale_ntk,
    scale_yarn,
    yarn_factor,
)

SIZES = {"vocab_size": 13, "d_model": 20, "num_heads": 4, "num_layers": 3}
SIZES |= {"head_dim": 8, "max_len": 11}


def made(parts, **changes):
    return CausalLM(CausalLMConfig(**{**SIZES, **changes}, parts=Parts(**parts))).eval()


def rotaries(model):
    return [block.attention.rotary for block in model.blocks]


@pytest.mark.parametrize(
    ("values", "wanted", "factor"),
    [
        ({"scaling": "linear"}, lambda f: scale_linear(f, 8), 1),
        ({"scaling": "ntk"}, lambda f: scale_ntk(f, 8), 1),
        (
            {"scaling": "llama3", "trained_len": 64, "low": 0.5, "high": 3},
            lambda f: scale_llama3(f, 8, trained_len=64, low=0.5, high=3),
            1,
        ),
        (
            {"scaling": "yarn", "trained_len": 64},
            lambda f: scale_yarn(f, 8, trained_len=64),
            yarn_factor(8),
        ),
        (
            {"scaling": "yarn", "trained_len": 64, "factor": 1.5, "high": 16},
            lambda f: scale_yarn(f, 8, trained_len=64, high=16),
            1.5,
        ),
    ],
)
def test_frequencies_are_scaled(values, wanted, factor):
    parts = {"rotary": RotaryParts(base=500, scale=8, layout="pairs", **values)}
    for rotary in rotaries(made(parts)):
        exact = wanted(rotary_frequencies(8, base=500.0))
        assert_close(rotary.frequencies, exact, rtol=0, atol=0)
        assert (rotary.factor, rotary.layout) == (factor, "pairs")


def test_layers_with_a_window_have_their_own_base_and_no_scaling():
    rotary = RotaryParts(base=1e6, local_base=100, scaling="linear", scale=8)
    parts = {"rotary": rotary, "window": 3, "global_every": 2}
    local, whole, third = rotaries(made(parts))
    assert local is third
    assert_close(local.frequencies, rotary_frequencies(8, base=100.0))
    assert_close(whole.frequencies, rotary_frequencies(8, base=1e6) / 8)
    parts["rotary"] = dataclasses.replace(rotary, local_base=None)
    assert len(set(rotaries(made(parts)))) == 1


def test_latent_attention():
    latent = LatentParts(kv_rank=6, q_rank=5, rotary_dim=4, value_dim=7)
    model = made({"latent": latent, "score_scale": 0.4}, dropout=0.25, eps=0.125)
    for block in model.blocks:
        attention = block.attention
        assert isinstance(attention, LatentAttention)
        sizes = attention.kv_rank, attention.head_dim, attention.rotary_dim
        assert sizes == (6, 8, 4)
        assert (attention.value_dim, attention.q_proj.in_features) == (7, 5)
        assert (attention.scale, attention.dropout) == (0.4, 0.25)
        assert attention.kv_norm.eps == 0.125
    ids = torch.randint(13, (2, 9))
    cache = model.new_cache(9)
    with torch.no_grad():
        steps = [model(ids[:, t : t + 1], cache=cache) for t in range(9)]
        assert_close(torch.cat(steps, dim=1), model(ids))
    plain = made({"latent": LatentParts(kv_rank=6)}).blocks[0].attention
    assert (plain.rotary_dim, plain.value_dim, plain.q_down) == (4, 8, None)


@pytest.mark.parametrize(
    ("head_dim", "turned"), [(1, 2), (2, 2), (7, 2), (8, 4), (128, 64), (192, 96)]
)
def test_the_part_that_turns_is_even(head_dim, turned):
    assert LatentParts(kv_rank=3).turned(head_dim) == turned


def test_through_json_and_from_an_older_version():
    rotary = RotaryParts(base=5e5, scaling="llama3", scale=8, trained_len=64)
    parts = Parts(rotary=rotary, latent=LatentParts(kv_rank=3))
    config = CausalLMConfig(**SIZES, parts=parts)
    values = json.loads(json.dumps(dataclasses.asdict(config)))
    assert make_config("CausalLM", values) == config
    old = {"rotary_base": 77.0, "rotary_layout": "pairs", "norm": "layer"}
    new = make_config("CausalLM", {**values, "parts": old}).parts
    assert new == Parts(rotary=RotaryParts(base=77.0, layout="pairs"), norm="layer")
    with pytest.raises(ValueError, match="parts has an unknown 'rotary_base'"):
        make_config("CausalLM", {**values, "parts": old | {"rotary": {}}})


@pytest.mark.parametrize("name", ["softcap", "logit_cap", "score_scale"])
def test_a_whole_number_that_torch_does_not_take(name):
    """It is a float then: of 10³⁰ torch would raise an OverflowError."""
    model = made({name: 10**30})
    value = getattr(model.config.parts, name)
    assert isinstance(value, float)
    model(torch.randint(13, (1, 4)))
    with pytest.raises(ValueError, match=rf"{name} \(inf\) must be above 0 and finite"):
        Parts(**{name: 10**400})


def test_numbers():
    assert finite_above(0, "x", 3) == 3.0
    for wrong in (True, "3", None):
        with pytest.raises(TypeError, match="x must be a number, not"):
            finite_above(0, "x", wrong)
    for wrong in (0, -1, math.nan, -(10**400)):
        with pytest.raises(ValueError, match=r"x \(.*\) must be above 0 and finite"):
            finite_above(0, "x", wrong)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rotary": {"layout": "half"}}, "layout ('half') must be one of pairs, halv"),
        ({"rotary": {"base": 1.0}}, "base (1.0) must be above 1 and finite"),
        ({"rotary": {"local_base": 50}}, "local_base (50.0) needs a window"),
        ({"rotary": {"scaling": "dynamic"}}, "scaling ('dynamic') must be one of"),
        ({"rotary": {"scale": 2}}, "scale (2.0) needs a scaling"),
        ({"rotary": {"scaling": "yarn"}}, "trained_len (None) is for scaling"),
        ({"rotary": {"trained_len": 8}}, "trained_len (8) is for scaling 'llama3'"),
        ({"rotary": {"high": 8}}, "high (8.0) is for scaling 'llama3' and 'yarn'"),
        ({"rotary": {"theta": 8}}, "rotary has an unknown 'theta'"),
        ({"latent": {"kv_rank": 0}}, "kv_rank (0) must be at least 1"),
        ({"latent": {"kv_rank": 2, "rotary_dim": 3}}, "rotary_dim (3) must be even"),
        (
            {"latent": {"kv_rank": 2}, "positions": "none"},
            "positions ('none') must be 'rotary' for latent attention",
        ),
        (
            {"latent": {"kv_rank": 2}, "window": 5},
            "window (5) is not for latent attention",
        ),
        (
            {"latent": {"kv_rank": 2}, "qk_norm": True},
            "qk_norm (True) is not for latent attention",
        ),
    ],
)
def test_what_cannot_be(values, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Parts(**values)


def test_kinds(raises):
    with raises(TypeError, "rotary must be RotaryParts, not NoneType"):
        Parts(rotary=None)
    with raises(TypeError, "latent must be LatentParts, not int"):
        Parts(latent=8)
    with raises(TypeError, "kv_rank must be an int, not float"):
        LatentParts(kv_rank=2.5)
    with raises(ValueError, "num_kv_heads (2) is not for latent attention"):
        CausalLMConfig.tiny(parts=Parts(latent=LatentParts(kv_rank=2)))
