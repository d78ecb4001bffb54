"""Kimi Linear: its size, and where each word of a config arrives.

That the numbers are Hugging Face's too is in tests/parity.
"""

import re

import pytest
import torch
from torch.testing import assert_close

from published_sizes import COUNTS
from tformer.models.families import family_of, kimi_linear
from tformer.models.folder import NothingDrawn
from tformer.nn import Experts, KimiDeltaAttention, LatentAttention

SMALL = {"vocab_size": 13, "hidden_size": 24, "intermediate_size": 20}
SMALL |= {"num_hidden_layers": 5, "num_attention_heads": 6, "num_key_value_heads": 6}
SMALL |= {"kv_lora_rank": 7, "qk_nope_head_dim": 5, "qk_rope_head_dim": 4}
SMALL |= {"v_head_dim": 3, "moe_intermediate_size": 10, "num_experts": 6}
SMALL |= {"num_experts_per_token": 2, "num_expert_group": 3, "topk_group": 2}
SMALL |= {"linear_head_dim": 3, "linear_num_heads": 4, "model_type": "kimi_linear"}


def made(**config):
    config = {**SMALL, **config}
    return family_of(config).build(config)


def kinds(**config):
    blocks = made(**config).blocks
    return "".join("dl"[isinstance(b.attention, LatentAttention)] for b in blocks)


@pytest.mark.nightly
def test_published_size():
    [(name, count)] = COUNTS["kimi_linear"].items()
    with torch.device("meta"), NothingDrawn():
        model = kimi_linear.build(kimi_linear.SIZES[name])
    assert sum(p.numel() for p in model.parameters()) == count
    latent = [isinstance(b.attention, LatentAttention) for b in model.blocks]
    assert [i for i, each in enumerate(latent) if each] == [3, 7, 11, 15, 19, 23, 26]


def test_which_layers_have_attention():
    assert kinds() == "ddddl"
    assert kinds(num_hidden_layers=9) == "ddddldddl"
    told = {"full_attn_layers": [1, 4], "kda_layers": [2, 3, 5]}
    assert kinds(linear_attn_config=told) == "lddld"
    types = ["full_attention", *4 * ["linear_attention"]]
    assert kinds(linear_attn_config=told, layer_types=types) == "ldddd"


def test_which_layers_have_experts():
    def experts(**config):
        blocks = made(**config).blocks
        return [i for i, b in enumerate(blocks) if isinstance(b.feed_forward, Experts)]

    assert experts() == [1, 2, 3, 4]
    assert experts(first_k_dense_replace=3) == [3, 4]
    assert experts(mlp_layer_types=["sparse", *3 * ["dense"], "sparse"]) == [0, 4]


def test_where_words_arrive():
    model = made(rms_norm_eps=0.5, linear_conv_kernel_dim=3, q_lora_rank=8)
    delta, latent = model.blocks[0].attention, model.blocks[4].attention
    assert isinstance(delta, KimiDeltaAttention)
    assert (delta.num_heads, delta.norm.d_model, delta.norm.eps) == (4, 3, 0.5)
    assert delta.convolution.kernel == 3
    assert (latent.rotary, latent.rotary_dim, latent.scale) == (None, 4, 9**-0.5)
    assert latent.kv_norm.eps == 1e-6
    assert latent.q_down.out_features == 8
    router = model.blocks[1].feed_forward.router
    told = {"head_dim": 5, "num_heads": 2, "short_conv_kernel_size": 6}
    delta = made(linear_attn_config=told).blocks[0].attention
    assert (delta.num_heads, delta.norm.d_model, delta.convolution.kernel) == (2, 5, 6)
    assert (router.groups, router.top_groups, router.scale) == (3, 2, 2.446)
    assert made(model_max_length=77).max_len == 77
    assert (
        made(moe_renormalize=False).blocks[1].feed_forward.router.renormalise is False
    )


def test_three_convolutions_of_a_file_are_one():
    name = "model.layers.2.self_attn"
    parts = {f"{name}.{kind}_conv1d.weight": torch.randn(5, 1, 4) for kind in "vqk"}
    ours = kimi_linear.rename(parts, {})
    assert [*ours] == ["blocks.2.attention.convolution.weight"]
    [whole] = ours.values()
    for kind, part in zip("qkv", whole.split(5), strict=True):
        assert torch.equal(part[:, None], parts[f"{name}.{kind}_conv1d.weight"])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"mla_use_nope": False}, "mla_use_nope (False) must be one of [True]"),
        ({"attention_bias": True}, "attention_bias (True) must be one of [False]"),
        ({"moe_router_activation_func": "softmax"}, "('softmax') must be one of"),
        ({"num_key_value_heads": 2}, "num_key_value_heads (2) must be one of"),
        ({"layer_types": 5 * ["mamba"]}, "layer_types ('mamba') must be one of"),
        ({"layer_types": ["full_attention"]}, "layer_types are 1, num_hidden_layers"),
        ({"mlp_layer_types": 5 * ["moe"]}, "mlp_layer_types ('moe') must be one of"),
        ({"max_position_embeddings": 5}, "max_position_embeddings (5) must be one of"),
        ({"n_group": 3}, "config has n_group (3), which is unknown here"),
    ],
)
def test_what_is_refused(config, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        made(**config)


@pytest.mark.usefixtures("float64")
def test_it_learns_and_what_is_cached_is_what_is_whole():
    model = made()
    ids = torch.randint(13, (2, 7))
    logits = model(ids)
    cache = model.new_cache(7)
    with torch.no_grad():
        parts = [model(part, cache=cache) for part in ids.split([3, 1, 3], dim=1)]
    assert_close(torch.cat(parts, dim=1), logits, rtol=0, atol=1e-11)
    logits.square().sum().backward()
    for name, p in model.named_parameters():
        bias = "selection_bias" in name
        assert bias or "experts" in name or p.grad.abs().max() > 0, name
