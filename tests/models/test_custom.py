"""The parts that the book chooses: what each makes, and what is refused."""

import pytest
import torch

from every_module import LANGUAGE_MODELS, NEEDS, OTHER_PARTS
from tformer.models.families.custom import DEFAULTS, PARTS, build, check_config
from tformer.nn import (
    ALiBi,
    Experts,
    FeedForward,
    GatedFeedForward,
    LatentAttention,
    LayerNorm,
    LearnedPositionalEmbedding,
    RelativeBias,
    RMSNorm,
    SinusoidalPositionalEncoding,
)
from tformer.nn.block import PLACEMENTS


def made(**config):
    return build({"num_layers": 3, **config})


def test_every_part_is_in_one_of_the_models_that_all_is_tested_with():
    configs = [make().config for make in LANGUAGE_MODELS.values()]
    for name, part in PARTS.items():
        assert name in OTHER_PARTS, (
            f"tests/support/every_module.py: give OTHER_PARTS a value of {name}"
        )
        assert any(config[name] != part.default for config in configs), (
            f"tests/support/every_module.py: let one of LANGUAGE_MODELS have {name}"
        )


@pytest.mark.parametrize("latent", [False, True], ids=["heads", "latent"])
@pytest.mark.parametrize("name", PARTS)
def test_each_part_reaches_the_model(name, latent):
    """With gradients, as a part may begin as nothing: a soft bound, a gain of 1."""
    base = {"kv_rank": 6, "positions": "rotary"} if latent else {}
    if name in base:
        return
    told = []
    for config in (base, {**base, name: OTHER_PARTS[name]}):
        config = {**NEEDS.get(name, {}), **config}
        if latent and any(not PARTS[n].latent for n in config):
            with pytest.raises(ValueError, match="is not for kv_rank"):
                build(config)
            return
        torch.manual_seed(0)
        model = build(config)
        logits = model(torch.arange(24)[None])
        names = [name for name, _ in model.named_parameters()]
        told.append((names, logits.double().square().sum().item()))
    assert told[0] != told[1]


def test_a_gpt_by_default():
    model = made()
    assert isinstance(model.positions, LearnedPositionalEmbedding)
    assert isinstance(model.norm, LayerNorm)
    assert model.output is None
    for block in model.blocks:
        assert block.placement == "pre"
        assert block.feed_forward.activation == "gelu_tanh"
        assert block.feed_forward.linear1.out_features == 4 * 64
        assert block.attention.q_proj.bias is not None
    assert model.config == {**DEFAULTS, "num_layers": 3}


@pytest.mark.parametrize(
    ("positions", "added", "relative"),
    [
        ("sinusoidal", SinusoidalPositionalEncoding, type(None)),
        ("rotary", type(None), type(None)),
        ("alibi", type(None), ALiBi),
        ("t5", type(None), RelativeBias),
        ("none", type(None), type(None)),
    ],
)
def test_positions(positions, added, relative):
    model = made(positions=positions)
    assert isinstance(model.positions, added)
    attentions = [block.attention for block in model.blocks]
    assert isinstance(attentions[0].relative, relative)
    assert len({attention.relative for attention in attentions}) == 1
    assert (attentions[0].rotary is not None) == (positions == "rotary")
    if positions == "rotary":
        assert attentions[0].rotary.layout == "halves"


def test_a_long_table_of_sinusoids_is_not_computed_beforehand():
    assert made(positions="sinusoidal", max_len=10**12).positions.max_len == 4096


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(
    ("norm", "kind"),
    [("layer", LayerNorm), ("rms", RMSNorm), ("rms_plus_one", RMSNorm)],
)
def test_norms(placement, norm, kind):
    model = made(placement=placement, norm=norm, eps=0.5, qk_norm=True)
    assert (model.norm is None) == (placement == "post")
    norms = [m for m in model.modules() if isinstance(m, LayerNorm | RMSNorm)]
    in_a_block = 6 if placement == "sandwich" else 4
    assert len(norms) == 3 * in_a_block + (placement != "post")
    for each in norms:
        assert isinstance(each, kind)
        assert each.eps == 0.5
        assert getattr(each, "plus_one", False) == (norm == "rms_plus_one")
    assert len(model.blocks[0].attention.q_norm.weight) == 16


def test_which_layers_have_a_window():
    def windows(**config):
        return [block.attention.window for block in made(num_layers=6, **config).blocks]

    assert windows(window=5, global_every=3) == [5, 5, None, 5, 5, None]
    assert windows(window=5) == [5] * 6
    assert windows() == [None] * 6


def test_what_reaches_attention():
    options = {"dropout": 0.25, "kv_heads": 2, "head_dim": 6, "softcap": 7.0}
    model = made(**options, score_scale=0.3, gate=True, sinks=True, bias=False)
    for block in model.blocks:
        attention = block.attention
        assert (attention.num_heads, attention.num_kv_heads) == (4, 2)
        assert (attention.head_dim, attention.dropout) == (6, 0.25)
        assert (attention.window, attention.softcap, attention.scale) == (
            None,
            7.0,
            0.3,
        )
        assert attention.gate.weight.shape == (24, 64)
        assert attention.sinks.shape == (4,)
        assert block.dropout.p == model.dropout.p == 0.25
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())


def test_feed_forward():
    for name, kind, width in (
        ("relu2", FeedForward, 256),
        ("geglu", GatedFeedForward, 170),  # 8/3 · 64
    ):
        network = made(feed_forward=name, bias=True).blocks[0].feed_forward
        assert isinstance(network, kind)
        assert max(p.shape[0] for p in network.parameters()) == width
    experts = made(experts=5, shared_experts=2, d_ff=13).blocks[0].feed_forward
    assert isinstance(experts, Experts)
    assert (experts.router.top_k, experts.router.balance_rate) == (2, 0.001)
    assert experts.shared.linear1.out_features == 26
    assert [each.linear1.out_features for each in experts.experts] == [13] * 5
    assert made(experts=5, top_k=3).blocks[0].feed_forward.router.top_k == 3


def test_latent_attention():
    model = made(kv_rank=6, positions="rotary", score_scale=0.4, dropout=0.25, eps=0.5)
    for block in model.blocks:
        attention = block.attention
        assert isinstance(attention, LatentAttention)
        sizes = attention.kv_rank, attention.head_dim, attention.rotary_dim
        assert sizes == (6, 16, 8)
        assert (attention.scale, attention.dropout) == (0.4, 0.25)
        assert attention.kv_norm.eps == 0.5
    for width, rotated in ((1, 2), (2, 2), (7, 2), (8, 4), (192, 96)):  # even
        c = {"kv_rank": 3, "positions": "rotary", "head_dim": width}
        assert made(**c).blocks[0].attention.rotary_dim == rotated


LATENT = {"kv_rank": 8, "positions": "rotary"}
NUMBERS = "softcap", "logit_cap", "logit_scale", "score_scale"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"depth": 3}, "config has depth (3), which is unknown here"),
        ({"norm": "batch"}, "norm ('batch') must be one of ['layer', 'rms', 'rms_plus"),
        ({"top_k": 2}, "top_k (2) needs experts"),
        ({"shared_experts": 1}, "shared_experts (1) needs experts"),
        ({"experts": 2, "top_k": 3}, "top_k (3) must be in [1, num_experts = 2]"),
        ({"experts": 4, "top_k": 0}, "top_k (0) must be at least 1"),
        ({"global_every": 2}, "global_every (2) needs a window"),
        ({"kv_rank": 8}, "positions ('learned') must be 'rotary' for kv_rank"),
        ({**LATENT, "window": 5}, "window (5) is not for kv_rank (8)"),
        ({**LATENT, "qk_norm": True}, "qk_norm (True) is not for kv_rank (8)"),
        ({"window": 0}, "window (0) must be at least 1"),
        ({"kv_heads": 0}, "kv_heads (0) must be at least 1"),
        ({"max_len": 0}, "max_len (0) must be at least 1"),
        *(
            ({name: 0.0}, f"{name} (0.0) must be above 0 and finite")
            for name in NUMBERS
        ),
        ({"d_model": 30}, "d_model (30) must be divisible by num_heads (4)"),
        ({"kv_heads": 3}, "num_heads (4) must be divisible by kv_heads (3)"),
        (
            {"positions": "rotary", "d_model": 60},
            "positions ('rotary') need heads of an even width, and d_model (60) / "
            "num_heads (4) is 15",
        ),
        (
            {"positions": "sinusoidal", "d_model": 31, "head_dim": 8},
            "d_model (31) must",
        ),
        ({"qk_norm": "false"}, "qk_norm must be a bool, not str"),
        ({"window": 2.0}, "window must be an int, not float"),
        ({"window": True}, "window must be an int, not bool"),
        ({"softcap": "5"}, "softcap must be a float, not str"),
        ({"head_dim": "8"}, "head_dim must be an int, not str"),
    ],
)
def test_what_is_refused(config, message):
    with pytest.raises((TypeError, ValueError)) as error:
        build(config)
    assert str(error.value).startswith(message)


def test_a_config_is_completed_without_a_model():
    assert check_config({"window": 5}) == {**DEFAULTS, "window": 5}


def test_a_whole_number_that_torch_does_not_take():
    many = dict.fromkeys(("softcap", "logit_cap", "score_scale"), 10**30)
    assert build(many)(torch.zeros(1, 3, dtype=torch.long)).shape == (1, 3, 256)
