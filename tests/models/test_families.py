"""Families in Hugging Face's words: known sizes, and where each word arrives.

That the numbers are Hugging Face's too is in tests/parity.
"""

import re

import pytest
import torch
from torch.testing import assert_close

from tformer.models.families import FAMILIES, family_of, gpt2
from tformer.nn import (
    rotary_frequencies,
    scale_linear,
    scale_llama3,
    scale_yarn,
    yarn_factor,
)

SMALL = {"vocab_size": 13, "hidden_size": 24, "intermediate_size": 20}
SMALL |= {"num_hidden_layers": 4, "num_attention_heads": 6}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 0.5}
LLAMA3 |= {"high_freq_factor": 3.0, "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64}


def made(kind, **config):
    sizes = {} if kind == "gpt2" else SMALL
    config = {"model_type": kind, **sizes, **config}
    return family_of(config).build(config)


def test_gpt2():
    dropouts = {"embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.3}
    sizes = {**gpt2.SIZES["tiny"], **dropouts, "n_inner": 50}
    model = made("gpt2", **sizes, layer_norm_epsilon=0.5, pad_token_id=7)
    assert (model.max_len, model.pad_id, model.vocab_size) == (64, 7, 256)
    assert model.dropout.p == 0.1
    assert model.norm.eps == 0.5
    for block in model.blocks:
        assert (block.attention.dropout, block.dropout.p) == (0.2, 0.3)
        assert block.attention_norm.eps == block.feed_forward_norm.eps == 0.5
        assert block.placement == "pre"
        assert block.feed_forward.activation == "gelu_tanh"
        assert block.feed_forward.linear1.out_features == 50
        assert block.feed_forward.dropout is not block.dropout
    assert model.output is None
    untied = made("gpt2", **gpt2.SIZES["tiny"], tie_word_embeddings=False, bias=False)
    assert untied.output.bias is None
    assert not any(name.endswith("bias") for name, _ in untied.named_parameters())


@pytest.mark.parametrize(
    ("words", "wanted", "factor"),
    [
        ({}, lambda f: f, 1),
        ({"rope_type": "linear", "factor": 8.0}, lambda f: scale_linear(f, 8), 1),
        (
            LLAMA3,
            lambda f: scale_llama3(f, 8, trained_len=64, low=0.5, high=3),
            1,
        ),
        (YARN, lambda f: scale_yarn(f, 8, trained_len=64), yarn_factor(8)),
        (
            {**YARN, "attention_factor": 1.5, "beta_fast": 2, "beta_slow": 0.5},
            lambda f: scale_yarn(f, 8, trained_len=64, low=0.5, high=2),
            1.5,
        ),
        (
            {**YARN, "truncate": False},
            lambda f: scale_yarn(f, 8, trained_len=64, truncate=False),
            yarn_factor(8),
        ),
    ],
)
def test_how_a_llama_rotates(words, wanted, factor):
    exact = wanted(rotary_frequencies(16, base=500.0))
    of_today = {"rope_parameters": {**words, "rope_theta": 500.0}}
    of_old = {"rope_theta": 500.0, "rope_scaling": words or None}
    older = dict(words)
    if words:
        older["type"] = older.pop("rope_type")
    for config in (of_today, of_old, {**of_old, "rope_scaling": older}):
        [rotary] = {
            block.attention.rotary
            for block in made("llama", head_dim=16, **config).blocks
        }
        assert_close(rotary.frequencies, exact, rtol=0, atol=0)
        assert (rotary.factor, rotary.layout) == (factor, "halves")


@pytest.mark.parametrize(
    ("kind", "config", "windows"),
    [
        ("llama", {}, [None] * 4),
        ("mistral", {}, [4096] * 4),
        ("mistral", {"sliding_window": None}, [None] * 4),
        ("qwen3", {"sliding_window": 5}, [None] * 4),
        (
            "qwen3",
            {"use_sliding_window": True, "max_window_layers": 3},
            [*3 * [None], 4096],
        ),
        (
            "qwen3",
            {
                "use_sliding_window": True,
                "sliding_window": 5,
                "layer_types": 2 * ["full_attention", "sliding_attention"],
            },
            [None, 5, None, 5],
        ),
    ],
)
def test_which_layers_have_a_window(kind, config, windows):
    model = made(kind, num_key_value_heads=2, **config)
    assert [block.attention.window for block in model.blocks] == windows


def test_what_else_reaches_a_llama():
    options = {"num_key_value_heads": 3, "head_dim": 8, "attention_dropout": 0.25}
    model = made("llama", **options, rms_norm_eps=0.5, attention_bias=True)
    for block in model.blocks:
        attention = block.attention
        assert (attention.num_kv_heads, attention.head_dim) == (3, 8)
        assert (attention.dropout, attention.q_norm) == (0.25, None)
        assert attention.q_proj.bias is not None
        assert block.feed_forward.down_proj.bias is None
        assert block.attention_norm.eps == block.feed_forward_norm.eps == 0.5
    assert model.norm.eps == 0.5
    assert made("llama").blocks[0].attention.num_kv_heads == 6
    assert made("llama").output is not None
    biased = made("llama", mlp_bias=True).blocks[0]
    assert biased.feed_forward.down_proj.bias is not None
    assert biased.attention.q_proj.bias is None
    norm = made("qwen3", num_key_value_heads=2).blocks[0].attention.k_norm
    assert len(norm.weight) == 128


@pytest.mark.parametrize(
    ("kind", "config", "message"),
    [
        ("llama", {"pad_token_id": 13}, "pad_id (13) must be in [0, vocab_size = 13)"),
        ("gpt2", {"n_layers": 3}, "config has n_layers (3), which is unknown here"),
        ("gpt2", {"activation_function": "silu"}, "_function ('silu') must be"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "layer_idx (True) must be"),
        ("gpt2", {"n_embd": 30}, "d_model (30) must be divisible by num_heads (12)"),
        ("gpt2", {"n_layer": 0}, "blocks (none) must be at least 1"),
        ("gpt2", {"n_inner": 0}, "d_ff (0) must be at least 1"),
        (
            "llama",
            {"hidden_act": "gelu"},
            "hidden_act ('gelu') must be one of ['silu']",
        ),
        ("llama", {"rope_scaling": {"type": "dynamic"}}, "rope_type ('dynamic') must"),
        (
            "llama",
            {"rope_scaling": {"type": "yarn"}},
            "rope_type ('yarn') needs factor",
        ),
        (
            "llama",
            {"rope_parameters": {**LLAMA3, "mscale": 2}},
            "has mscale (2), unkno",
        ),
        ("qwen3", {"layer_types": ["full_attention"]}, "layer_types are 1, num_hidden"),
        ("qwen3", {"layer_types": ["chunked"] * 4}, "layer_types ('chunked') must be"),
        ("llama", {"tie_word_embeddings": "false"}, "must be a bool, not str"),
    ],
)
def test_what_is_refused(kind, config, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        made(kind, **config)


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_family_builds_no_model_of_another(kind):
    build = family_of({"model_type": kind}).build
    with (
        torch.device("meta"),  # what it would build is large
        pytest.raises(ValueError, match=r"model_type \('bloom'\) must be one of"),
    ):
        build({"model_type": "bloom"})


def test_an_unknown_architecture(raises):
    known = ", ".join(FAMILIES)
    with raises(ValueError, f"model_type ('bloom') must be one of {known}"):
        family_of({"model_type": "bloom"})


@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen3"])
def test_norms_round_twice_in_16_bits_as_hugging_faces_code_does(kind):
    model = made(kind, num_key_value_heads=2)
    norms = [m for m in model.modules() if hasattr(m, "cast_first")]
    assert norms
    assert all(norm.cast_first for norm in norms)
