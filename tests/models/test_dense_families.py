"""What each dense family changes, and which words it refuses.

That the numbers are Hugging Face's too is in tests/parity.
"""

import re

import pytest
import torch
from torch.testing import assert_close

from tformer import greedy
from tformer.models.families import family_of
from tformer.nn import (
    LongRotaryEmbedding,
    longrope_factor,
    rotary_frequencies,
    scale_yarn,
    yarn_factor,
)

SMALL = {"vocab_size": 13, "hidden_size": 24, "intermediate_size": 20}
SMALL |= {"num_hidden_layers": 4, "num_attention_heads": 6, "pad_token_id": None}
TYPES = ["full_attention", "sliding_attention"]
GROUPS = {"num_key_value_heads": 2}
LONG = {"rope_type": "longrope", "short_factor": [1.1, 2], "long_factor": [4, 8]}
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64}


def made(kind, **config):
    config = {"model_type": kind, **SMALL, **config}
    return family_of(config).build(config)


def attentions(kind, **config):
    return [block.attention for block in made(kind, **config).blocks]


@pytest.mark.parametrize(
    ("kind", "config", "windows"),
    [
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 3}, "---w"),
        ("qwen2", {"layer_types": 4 * ["sliding_attention"]}, "----"),
        ("olmo3", {}, "www-"),
        ("smollm3", {"sliding_window": 4096}, "----"),
        ("smollm3", {"sliding_window": 4096, "use_sliding_window": True}, "---w"),
        ("cohere2", {"sliding_window_pattern": 2}, "w-w-"),
        ("exaone4", {}, "www-"),
        ("exaone4", {"sliding_window_pattern": "LLLG"}, "www-"),
        ("exaone4", {"sliding_window_pattern": 2}, "w-w-"),
        ("exaone4", {"sliding_window": None, "sliding_window_pattern": None}, "----"),
        ("gemma2", {"head_dim": 8}, "w-w-"),
        ("gemma3_text", {"head_dim": 8}, "wwww"),
        ("gemma3_text", {"head_dim": 8, "sliding_window_pattern": 3}, "ww-w"),
        ("phi3", {}, "----"),
        ("phi3", {"sliding_window": 4096}, "wwww"),
        ("ministral3", {}, "----"),
    ],
)
def test_which_layers_have_a_window(kind, config, windows):
    found = [each.window for each in attentions(kind, **GROUPS, **config)]
    assert found == [{"w": 4096, "-": None}[each] for each in windows]


@pytest.mark.parametrize(
    ("kind", "config", "turning"),
    [
        ("smollm3", {}, "rrr-"),
        ("smollm3", {"no_rope_layer_interval": 2}, "r-r-"),
        ("smollm3", {"no_rope_layers": [0, 1, 1, 0, 1]}, "-rr-"),
        ("cohere2", {}, "rrr-"),
        ("exaone4", {}, "rrr-"),
        ("exaone4", {"sliding_window": None, "sliding_window_pattern": None}, "rrrr"),
        (
            "cohere2",
            {"layer_types": 2 * TYPES},
            "-r-r",
        ),
    ],
)
def test_which_layers_have_positions(kind, config, turning):
    found = [each.rotary is not None for each in attentions(kind, **GROUPS, **config)]
    assert found == [each == "r" for each in turning]


def test_bases_of_layers_near_and_far():
    words = {"head_dim": 8, "sliding_window_pattern": 2, "rope_theta": 90.0}
    words |= {"rope_local_base_freq": 7.0, "rope_scaling": {**YARN, "type": "yarn"}}
    near, far = attentions("gemma3_text", **GROUPS, **words)[:2]
    exact = rotary_frequencies(8, base=7.0)
    assert_close(near.rotary.frequencies, exact, rtol=0, atol=0)
    exact = scale_yarn(rotary_frequencies(8, base=90.0), 8, trained_len=64)
    assert_close(far.rotary.frequencies, exact, rtol=0, atol=0)
    assert (near.rotary.factor, far.rotary.factor) == (1, yarn_factor(8))


def test_a_part_of_a_head_is_rotated():
    both = {"rope_parameters": {"rope_theta": 50.0, "partial_rotary_factor": 0.5}}
    for config in (both, {"rope_theta": 50.0, "partial_rotary_factor": 0.5}):
        rotary = attentions("llama", head_dim=8, **config)[0].rotary
        assert rotary.head_dim == 8
        assert_close(rotary.frequencies, rotary_frequencies(4, base=50.0))


def test_two_mscales():
    words = {**YARN, "mscale": 0.7, "mscale_all_dim": 1.2}
    rotary = attentions("llama", rope_scaling=words)[0].rotary
    assert rotary.factor == yarn_factor(8, 0.7) / yarn_factor(8, 1.2)
    given = {**words, "attention_factor": 3.0}
    assert attentions("llama", rope_scaling=given)[0].rotary.factor == 3


def test_alpha_raises_the_base():
    words = {"rope_theta": 50.0, "rope_scaling": {"type": "dynamic", "alpha": 7.0}}
    rotary = attentions("hunyuan_v1_dense", head_dim=8, **words)[0].rotary
    raised = rotary_frequencies(8, base=50.0 * 7.0 ** (8 / 6))
    assert_close(rotary.frequencies, raised)


def test_a_long_text_rotates_otherwise():
    lengths = {"original_max_position_embeddings": 4, "max_position_embeddings": 64}
    torch.manual_seed(0)
    model = made("phi3", rope_scaling=LONG, **lengths).eval()
    [rotary] = {block.attention.rotary for block in model.blocks}
    assert isinstance(rotary, LongRotaryEmbedding)
    plain = rotary_frequencies(4)
    assert_close(rotary.short.frequencies, plain / torch.tensor([1.1, 2.0]).double())
    assert_close(rotary.long.frequencies, plain / torch.tensor([4.0, 8.0]).double())
    assert rotary.short.factor == rotary.long.factor == longrope_factor(16, 4)
    ids = torch.tensor([[1, 2, 3]])
    written = torch.cat((ids, greedy(model, ids, max_len=4)), dim=1)
    anew = [model(written[:, :n])[0, -1].argmax().item() for n in range(3, 7)]
    assert written[0, 3:].tolist() == anew
    cache = model.new_cache(6)
    with torch.no_grad(), pytest.raises(ValueError, match=r"start \(3\) must be 0"):
        model(ids, cache=cache), model(torch.tensor([[4, 5]]), cache=cache)


def test_multipliers():
    words = {"embedding_multiplier": 12, "residual_multiplier": 0.22}
    model = made("granite", attention_multiplier=0.5, logits_scaling=8, **words)
    assert model.embedding.scale == 12
    assert model.logit_scale == 1 / 8
    for block in model.blocks:
        assert block.residual_scale == 0.22
        assert block.attention.scale == 0.5


def test_one_norm_for_both():
    model = made("cohere2")
    for block in model.blocks:
        assert block.feed_forward_norm is block.attention_norm
        assert block.placement == "parallel"
        assert block.attention_norm.bias is None


def test_gemmas_norms_and_bounds():
    words = {"head_dim": 8, "query_pre_attn_scalar": 4, **GROUPS}
    for kind in ("gemma2", "gemma3_text"):
        model = made(kind, **words)
        norms = [m for m in model.modules() if hasattr(m, "plus_one")]
        assert len(norms) == 4 * (4 if kind == "gemma2" else 6) + 1
        assert all(norm.plus_one and not norm.cast_first for norm in norms)
        assert model.embedding.scale == 24**0.5
        assert model.blocks[0].attention.scale == 0.5
        assert (model.logit_cap == 30) == (kind == "gemma2")


@pytest.mark.parametrize(
    ("kind", "config", "message"),
    [
        ("qwen2", {"attention_bias": False}, "attention_bias (False) must be one of"),
        ("qwen3", {"qk_norm": False}, "qk_norm (False) must be one of [True]"),
        ("gemma2", {"hidden_activation": "silu"}, "hidden_activation ('silu') must"),
        (
            "gemma2",
            {"use_bidirectional_attention": True},
            "use_bidirectional_attention",
        ),
        ("cohere2", {"use_qk_norm": True}, "use_qk_norm (True) must be one of"),
        ("cohere2", {"layer_types": ["chunked"] * 4}, "layer_types ('chunked')"),
        ("exaone4", {"sliding_window_pattern": "LG"}, "pattern must be an int, not"),
        ("exaone4", {"sliding_window_pattern": 0}, "sliding_window_pattern (0) must"),
        ("exaone4", {"attention_bias": True}, "attention_bias (True) must be one of"),
        ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers ([1]) must be of 4"),
        ("phi3", {"rope_scaling": {**LONG, "long_factor": [1]}}, "long_factor ([1])"),
        ("phi3", {"rope_scaling": {"type": "longrope"}}, "short_factor (None) must"),
        ("phi3", {"lm_head_bias": True}, "lm_head_bias (True) must be one of"),
        ("llama", {"rope_scaling": LONG}, "rope_type ('longrope') must be one of"),
        ("ministral3", {"rope_parameters": YARN}, "must have llama_4_scaling_beta"),
        (
            "hunyuan_v1_dense",
            {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
            "rope_type ('dynamic') must have alpha",
        ),
        ("hunyuan_v1_dense", {"use_cla": True}, "use_cla (True) must be one of"),
        ("nanochat", {"hidden_act": "gelu"}, "hidden_act ('gelu') must be one of"),
        ("gpt_neox", {"rope_theta": 5.0}, "rope_theta (5.0) must be one of"),
        (
            "gpt_neox",
            {"rotary_pct": 0.25},
            "partial_rotary_factor (0.25) must leave an",
        ),
        (
            "gpt_neox",
            {"rotary_pct": 0.5, "hidden_act": "silu"},
            "hidden_act ('silu') must be one of",
        ),
        ("gpt_neox", {"num_key_value_heads": 2}, "num_key_value_heads (2), which is"),
        (
            "gemma3_text",
            {"rope_parameters": {"rope_theta": 5.0}},
            "rope_parameters must be of full_attention, sliding_attention",
        ),
        (
            "olmo3",
            {"rope_parameters": {"full_attention": {}, "chunked": {}}},
            "rope_parameters must be of full_attention",
        ),
        (
            "llama",
            {"rope_parameters": {"full_attention": {}, "chunked": {}}},
            "rope_parameters has chunked ({}) beside types",
        ),
        ("granite", {"residual_multiplier": 0.0}, "residual_scale (0.0) must be above"),
    ],
)
def test_what_is_refused(kind, config, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        made(kind, **({} if kind == "gpt_neox" else GROUPS), **config)
