"""Gemma 4: which layers share, who is told what, and what is refused.

That the numbers are Hugging Face's too is in tests/parity.
"""

import re

import pytest
import torch
from torch.testing import assert_close

from tformer import greedy
from tformer.models.cache_size import cache_nbytes
from tformer.models.families import gemma4
from tformer.nn import NoCache, keep_fastest, rotary_frequencies
from tformer.reference import from_torch

V = 13
NEAR, FAR = "sliding_attention", "full_attention"
SMALL = {"vocab_size": V, "hidden_size": 24, "intermediate_size": 20}
SMALL |= {"num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2}
SMALL |= {"head_dim": 6, "global_head_dim": 16, "sliding_window": 3}
SMALL |= {"layer_types": 3 * [NEAR, FAR], "num_kv_shared_layers": 3}
SMALL |= {"hidden_size_per_layer_input": 5, "vocab_size_per_layer_input": V}


def made(randomised=None, **config):
    model = gemma4.build({**SMALL, **config}).eval()
    return randomised(model) if randomised else model


def test_which_layers_share():
    model = made()
    assert model.kv_sources == {3: 1, 4: 2, 5: 1}
    attentions = [block.attention for block in model.blocks]
    assert [a.shared_kv for a in attentions] == 3 * [False] + 3 * [True]
    assert [a.head_dim for a in attentions] == 3 * [6, 16]
    assert [a.window for a in attentions] == 3 * [3, None]
    inner = [b.feed_forward.gate_proj.out_features for b in model.blocks]
    assert inner == 6 * [20]
    wide = made(use_double_wide_mlp=True)
    inner = [b.feed_forward.gate_proj.out_features for b in wide.blocks]
    assert inner == 3 * [20] + 3 * [40]


@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_the_twin_and_writing_token_for_token(randomised):
    model, ids = made(randomised), torch.randint(V, (2, 9))
    wanted = model(ids)
    assert_close(torch.from_numpy(from_torch(model)(ids.numpy())), wanted)
    cache, parts = model.new_cache(9), []
    for begin, end in ((0, 5), (5, 6), (6, 9)):
        parts.append(model(ids[:, begin:end], cache=cache))
    assert_close(torch.cat(parts, dim=1), wanted, atol=1e-13, rtol=0)
    assert [isinstance(b.sequence, NoCache) for b in cache.blocks] == 3 * [0] + 3 * [1]
    assert cache_nbytes(model, 9) == cache.nbytes / 2  # of one sequence
    short = model.new_cache(9)
    model(ids[:, :2], cache=short)
    short.truncate(1)
    again = short.copy(9)
    again.reorder(torch.tensor([1, 0]))
    assert_close(model(ids.flip(0)[:, 1:], cache=again), wanted.flip(0)[:, 1:])
    assert greedy(model, ids[:, :4], max_len=4).shape == (2, 4)


@pytest.mark.usefixtures("float64")
def test_each_part_changes_the_logits(randomised):
    model, ids = made(randomised), torch.randint(V, (2, 9))
    model(ids).pow(2).sum().backward()
    for name, p in model.named_parameters():
        assert (p.grad.abs() > 1e-12).any(), name
    with torch.no_grad():
        before = model(ids)
        model.blocks[2].output_scale *= 1.5
        assert not torch.allclose(model(ids), before)


def test_the_fastest_pairs_alone_rotate():
    near, far = (block.attention.rotary.frequencies for block in made().blocks[:2])
    assert_close(near, rotary_frequencies(6))
    assert_close(far[:2], rotary_frequencies(16, base=1e6)[:2])
    assert (far[2:] == 0).all()
    assert len(far) == 8


def test_how_many_are_kept():
    frequencies = rotary_frequencies(16)
    for part, kept in ((1, 8), (0.5, 4), (0.37, 2), (0.125, 1)):
        assert (keep_fastest(frequencies, part) > 0).sum() == kept
    for part in (0, 0.1, 1.1):
        with pytest.raises(ValueError, match=re.escape(f"part ({part}) must be")):
            keep_fastest(frequencies, part)


def test_words_of_each_layer_in_one():
    each = {"01": {"head_dim": 8}, "3": {"head_dim": 8}, 5: {"head_dim": 8}}
    words = {"per_layer_config": each}
    model = made(**words)
    assert [b.attention.head_dim for b in model.blocks] == 3 * [6, 8]
    assert model.config["global_head_dim"] == 8
    assert model.config["per_layer_config"] is None


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"enable_moe_block": True}, "enable_moe_block (True) must be one of [False]"),
        ({"num_kv_shared_layers": 5}, "num_kv_shared_layers (5) must leave layers"),
        ({"num_kv_shared_layers": 9}, "num_kv_shared_layers (9) must leave layers"),
        ({"num_kv_shared_layers": -1}, "num_kv_shared_layers (-1) must leave"),
        ({"use_bidirectional_attention": "all"}, "use_bidirectional_attention ('all')"),
        ({"hidden_activation": "silu"}, "hidden_activation ('silu') must"),
        ({"rope_theta": 5.0}, "config has rope_theta (5.0), which is unknown"),
        ({"rope_parameters": {"rope_theta": 5.0}}, "rope_parameters must be of"),
        ({"per_layer_config": {"1": {"head_dim": 8}}}, "per_layer_config ({'1'"),
        ({"per_layer_config": {"0": {"head_dim": 8}}}, "per_layer_config ({'0'"),
        ({"model_type": "gemma4"}, "model_type ('gemma4') must be one of"),
        ({"vision_config": {}}, "config has vision_config ({}), which is unknown"),
    ],
)
def test_what_is_refused(config, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        made(**config)


def test_what_is_told_and_from_which_layer_must_fit():
    model, ids = made(), torch.zeros(1, 2, dtype=int)
    model.per_layer = None
    with pytest.raises(ValueError, match="given must be there with layer_input"):
        model(ids)
    parts = {"norm": None, "max_len": 4}
    for sources in ({0: 0}, {1: 2}, {2: 1, 1: 0}, {9: 0}, {1: -1}):
        with pytest.raises(ValueError, match="must be an earlier one, with keys"):
            type(model)(model.embedding, model.blocks, kv_sources=sources, **parts)
