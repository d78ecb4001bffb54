"""Families with experts and linear attention: sizes, and where each word arrives.

That the numbers are Hugging Face's too is in tests/parity.
"""

import re

import pytest
import torch
from torch.testing import assert_close

from published_sizes import COUNTS, EACH
from tformer.models.families import family_of, gpt_oss, mixtures
from tformer.models.folder import NothingDrawn
from tformer.nn import (
    ClampedFeedForward,
    Experts,
    GatedDeltaRule,
    GatedFeedForward,
    LatentAttention,
    MultiHeadAttention,
    yarn_factor,
)

SMALL = {"vocab_size": 13, "hidden_size": 24, "intermediate_size": 20}
SMALL |= {"num_hidden_layers": 4, "num_attention_heads": 6, "num_key_value_heads": 2}
OTHER = {"moe_intermediate_size": 10, "num_experts_per_tok": 2}
DELTA = {"head_dim": 8, "linear_key_head_dim": 3, "linear_value_head_dim": 5}
DELTA |= {"linear_num_key_heads": 2, "linear_num_value_heads": 4}
OF_KIND = {
    "mixtral": {"num_local_experts": 3},
    "qwen3_moe": {**OTHER, "num_experts": 3, "head_dim": 4},
    "gpt_oss": {"num_local_experts": 4, "head_dim": 16},
    "deepseek_v3": {
        **OTHER,
        "num_key_value_heads": 6,
        "q_lora_rank": 9,
        "kv_lora_rank": 7,
        "qk_nope_head_dim": 5,
        "qk_rope_head_dim": 4,
        "v_head_dim": 3,
        "n_routed_experts": 6,
        "n_group": 3,
        "topk_group": 2,
    },
    "glm4_moe": {**OTHER, "n_routed_experts": 4, "head_dim": 8},
    "minimax_m2": {"num_local_experts": 8, "head_dim": 4},
    "qwen3_next": {
        **OTHER,
        **DELTA,
        "num_experts": 4,
        "shared_expert_intermediate_size": 7,
    },
    "qwen3_5_text": DELTA,
}


def made(kind, **config):
    config = {"model_type": kind, **SMALL, **OF_KIND[kind], **config}
    return family_of(config).build(config)


def counted(kind, config):
    with torch.device("meta"), NothingDrawn():
        model = family_of({"model_type": kind}).build(config)
    return sum(p.numel() for p in model.parameters())


@pytest.mark.by_day(4)
@pytest.mark.parametrize(("kind", "name"), [x for x in EACH if "kimi" not in x[1]])
def test_published_sizes(kind, name):
    """A model is as large as a shallow one and the further layers, which are alike."""
    family = family_of({"model_type": kind})
    config = family.SIZES[name]
    whole = {**family.DEFAULTS, **config}
    first = whole.get("first_k_dense_replace", 0)
    period = whole.get("full_attention_interval", 2 if kind == "gpt_oss" else 1)
    short, more = (
        counted(kind, {**config, "num_hidden_layers": first + n * period})
        for n in (1, 2)
    )
    times, rest = divmod(whole["num_hidden_layers"] - first - period, period)
    assert rest == 0
    assert short + times * (more - short) == COUNTS[kind][name]


def test_which_layers_have_experts():
    def experts(kind, **config):
        blocks = made(kind, **config).blocks
        kinds = [type(block.feed_forward) for block in blocks]
        assert {*kinds} <= {Experts, GatedFeedForward}
        return [i for i, each in enumerate(kinds) if each is Experts]

    assert experts("mixtral") == [0, 1, 2, 3]
    assert experts("qwen3_moe", decoder_sparse_step=2) == [1, 3]
    assert experts("qwen3_moe", decoder_sparse_step=3, mlp_only_layers=[2]) == []
    assert experts("qwen3_next", mlp_only_layers=[0, 3]) == [1, 2]
    assert experts("deepseek_v3") == [3]
    assert experts("glm4_moe") == [1, 2, 3]
    dense, sparse = made("glm4_moe").blocks[:2]
    assert dense.feed_forward.down_proj.in_features == 20
    assert sparse.feed_forward.experts[0].down_proj.in_features == 10


@pytest.mark.parametrize("kind", OF_KIND)
def test_which_router(kind):
    routers = [m for m in made(kind).modules() if isinstance(m, Experts)]
    if kind == "qwen3_5_text":
        assert not routers
        return
    router = routers[0].router
    sigmoid = kind in ("deepseek_v3", "glm4_moe", "minimax_m2")
    assert router.scores == ("sigmoid" if sigmoid else "softmax")
    assert (router.selection_bias is not None) == sigmoid
    assert (router.proj.bias is not None) == (kind == "gpt_oss")
    assert router.renormalise == (kind != "qwen3_moe")
    assert router.scale == (2.5 if kind == "deepseek_v3" else 1)
    assert (router.groups, router.top_groups) == {
        "deepseek_v3": (3, 2),
        "glm4_moe": (1, 1),
    }.get(kind, (1, None))
    shared = kind in ("glm4_moe", "deepseek_v3", "qwen3_next")
    assert (routers[0].shared is not None) == shared
    assert (routers[0].shared_gate is not None) == (kind == "qwen3_next")


def test_gpt_oss():
    model = made("gpt_oss", swiglu_limit=3.0, swiglu_alpha=1.5)
    windows = [block.attention.window for block in model.blocks]
    assert windows == [128, None, 128, None]
    for block in model.blocks:
        assert block.attention.sinks.shape == (6,)
        assert block.attention.out_proj.bias is not None
        assert not block.attention_norm.cast_first
        for expert in block.feed_forward.experts:
            assert isinstance(expert, ClampedFeedForward)
            assert (expert.limit, expert.alpha) == (3.0, 1.5)
    assert model.blocks[0].attention.rotary.factor == yarn_factor(32)
    told = {"rope_scaling": {"type": "linear", "factor": 2.0}}
    assert made("gpt_oss", **told).blocks[0].attention.rotary.factor == 1


def test_deepseek_v3():
    yarn = {"rope_type": "yarn", "factor": 40.0, "mscale": 0.8, "mscale_all_dim": 1.1}
    for word in ("rope_parameters", "rope_scaling"):
        attention = made("deepseek_v3", **{word: dict(yarn)}).blocks[0].attention
        assert isinstance(attention, LatentAttention)
        assert attention.scale == 9**-0.5 * yarn_factor(40, 1.1) ** 2
        factor = yarn_factor(40, 0.8) / yarn_factor(40, 1.1)
        assert attention.rotary.factor == factor
    assert attention.rotary.layout == "pairs"
    assert attention.q_norm.eps == attention.kv_norm.eps == 1e-6
    assert attention.q_norm.cast_first
    other = made("deepseek_v3", rope_interleave=False, n_shared_experts=3)
    assert other.blocks[0].attention.rotary.layout == "halves"
    assert other.blocks[0].attention.scale == 9**-0.5
    assert other.blocks[3].feed_forward.shared.down_proj.in_features == 30


def test_the_others_attention():
    glm = made("glm4_moe", attention_bias=True, use_qk_norm=True).blocks[0].attention
    assert (glm.q_proj.bias is None, glm.out_proj.bias is None) == (False, True)
    assert len(glm.q_norm.weight) == 8
    assert len(glm.rotary.frequencies) == 2
    minimax = made("minimax_m2", rotary_dim=2).blocks[0].attention
    assert len(minimax.rotary.frequencies) == 1
    assert len(minimax.q_norm.norm.weight) == 24
    assert len(made("minimax_m2").blocks[0].attention.rotary.frequencies) == 2


@pytest.mark.parametrize("kind", ["qwen3_next", "qwen3_5_text"])
def test_qwen3_next(kind):
    def kinds(**config):
        blocks = made(kind, **config).blocks
        return "".join(
            "dm"[isinstance(b.attention, MultiHeadAttention)] for b in blocks
        )

    assert kinds() == "dddm"
    assert kinds(full_attention_interval=2) == "dmdm"
    types = 2 * ["full_attention", "linear_attention"]
    assert kinds(layer_types=types) == "mdmd"
    model = made(kind, linear_conv_kernel_dim=3, rms_norm_eps=0.5)
    delta, attention = model.blocks[0].attention, model.blocks[3].attention
    assert isinstance(delta, GatedDeltaRule)
    assert delta.convolution.kernel == 3
    assert (delta.num_heads, delta.num_key_heads) == (4, 2)
    assert delta.norm.eps == attention.q_norm.eps == model.norm.eps == 0.5
    assert (delta.norm.plus_one, attention.q_norm.plus_one) == (False, True)
    assert attention.gate.out_features == 48
    assert len(attention.rotary.frequencies) == 1


def test_layers_that_guess_further_tokens_are_left_out():
    state = {f"model.layers.{i}.input_layernorm.weight": torch.ones(1) for i in (0, 2)}
    extra = ("eh_proj", "enorm", "shared_head.norm", "embed_tokens")
    state |= {f"model.layers.2.{name}.weight": torch.ones(1) for name in extra}
    state |= {"model.layers.20.input_layernorm.weight": torch.ones(1), "mtp.x": 0}
    kept = ["blocks.0.attention_norm.weight", "blocks.20.attention_norm.weight"]
    assert [*mixtures.rename(state, {})] == kept


def test_gate_and_up_of_gpt_oss_take_turns():
    fused = torch.arange(24.0).view(1, 4, 6)  # (E, D, 2F)
    state = {"model.layers.0.mlp.experts.gate_up_proj": fused}
    ours = gpt_oss.rename(state, {})
    before = "blocks.0.feed_forward.experts.0"
    assert_close(ours[f"{before}.gate_proj.weight"], fused[0, :, 0::2].T)
    assert_close(ours[f"{before}.up_proj.weight"], fused[0, :, 1::2].T)


@pytest.mark.parametrize(
    ("kind", "config", "message"),
    [
        ("mixtral", {"router_jitter_noise": 0.1}, "router_jitter_noise (0.1) must be"),
        ("mixtral", {"hidden_act": "gelu"}, "hidden_act ('gelu') must be one of"),
        ("mixtral", {"num_experts_per_tok": 4}, "top_k (4) must be in [1, num_exper"),
        ("gpt_oss", {"quantization_config": {}}, "config has quantization_config ({})"),
        ("gpt_oss", {"layer_types": ["full_attention"]}, "layer_types are 1, num_hid"),
        ("deepseek_v3", {"attention_bias": True}, "attention_bias (True) must be one"),
        ("deepseek_v3", {"scoring_func": "softmax"}, "scoring_func ('softmax') must"),
        ("deepseek_v3", {"num_key_value_heads": 2}, "num_key_value_heads (2) must be"),
        ("deepseek_v3", {"n_group": 4}, "num_experts (6) must be divisible by groups"),
        ("glm4_moe", {"topk_group": 2}, "top_groups (2) must be in [1, groups = 1]"),
        ("minimax_m2", {"shared_intermediate_size": 4}, "which is unknown here"),
        ("qwen3_next", {"layer_types": 4 * ["mamba"]}, "layer_types ('mamba') must be"),
        ("qwen3_next", {"layer_types": ["full_attention"]}, "layer_types are 1, num_"),
        ("qwen3_next", {"full_attention_interval": 0}, "interval (0) must be at least"),
        ("qwen3_5_text", {"num_experts": 4}, "config has num_experts (4), which is"),
        ("qwen3_moe", {"decoder_sparse_step": 0}, "decoder_sparse_step (0) must be at"),
    ],
)
def test_what_is_refused(kind, config, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        made(kind, **config)


@pytest.mark.parametrize("kind", OF_KIND)
def test_it_learns_and_what_is_cached_is_what_is_whole(kind, float64):
    model = made(kind)
    ids = torch.randint(13, (2, 7))
    model(ids).square().sum().backward()
    for name, p in model.named_parameters():
        assert p.grad is not None or not p.requires_grad, name
    with torch.no_grad():
        whole, cache = model.eval()(ids), model.new_cache(7)
        parts = [model(ids[:, a:b], cache=cache) for a, b in ((0, 3), (3, 4), (4, 7))]
    assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-12)
