"""Experts beside Hugging Face's blocks of Mixtral, Qwen3-MoE and DeepSeek-V3.

Their routers score in float32 whatever the model's dtype. That cast is taken away here,
so that all can be compared in float64.
"""

import pytest
import torch
from torch.testing import assert_close

from tformer.nn.experts import Experts, record_routing
from tformer.nn.feed_forward import GatedFeedForward
from tformer.nn.router import load_balance_loss

transformers = pytest.importorskip("transformers")
mixtral = pytest.importorskip("transformers.models.mixtral.modeling_mixtral")
qwen = pytest.importorskip("transformers.models.qwen3_moe.modeling_qwen3_moe")
deepseek = pytest.importorskip("transformers.models.deepseek_v3.modeling_deepseek_v3")

B, T, D, F, E, K = 2, 13, 10, 7, 6, 3
CLOSE = {"atol": 1e-14, "rtol": 1e-12}
SIZES = {"hidden_size": D, "num_experts_per_tok": K}


@pytest.fixture(autouse=True)
def in_float64(monkeypatch, float64):
    monkeypatch.setattr(torch.Tensor, "float", lambda x: x)
    monkeypatch.setattr(torch.Tensor, "type", lambda x, _: x)
    softmax = torch.nn.functional.softmax
    monkeypatch.setattr(
        torch.nn.functional, "softmax", lambda x, dim, **_: softmax(x, dim)
    )


def the_block_of(name, **options):
    if name == "mixtral":
        config = transformers.MixtralConfig(
            num_local_experts=E, intermediate_size=F, **SIZES
        )
        return mixtral.MixtralSparseMoeBlock(config)
    if name == "qwen3_moe":
        config = transformers.Qwen3MoeConfig(
            num_experts=E, moe_intermediate_size=F, **SIZES, **options
        )
        return qwen.Qwen3MoeSparseMoeBlock(config)
    config = transformers.DeepseekV3Config(
        n_routed_experts=E,
        moe_intermediate_size=F,
        n_shared_experts=2,
        n_group=1,
        topk_group=1,
        routed_scaling_factor=2.5,
        **SIZES,
        **options,
    )
    return deepseek.DeepseekV3MoE(config).double()  # its router is made in float32


def copy_of(block, **options):
    """Our module with the weights of theirs, which hold all experts in one tensor."""
    shared = None
    if hasattr(block, "shared_experts"):
        shared = GatedFeedForward(D, 2 * F)
        shared.load_state_dict(block.shared_experts.state_dict())
        options |= {"scores": "sigmoid", "scale": 2.5}
    ours = Experts(
        D, E, lambda: GatedFeedForward(D, F), shared=shared, top_k=K, **options
    )
    with torch.no_grad():
        ours.router.proj.weight.copy_(block.gate.weight)
        if shared is not None:
            ours.router.selection_bias.copy_(block.gate.e_score_correction_bias)
        for i, each in enumerate(ours.experts):
            gate, up = block.experts.gate_up_proj[i].chunk(2)
            each.gate_proj.weight.copy_(gate)
            each.up_proj.weight.copy_(up)
            each.down_proj.weight.copy_(block.experts.down_proj[i])
    return ours


@pytest.mark.parametrize(
    ("name", "renormalise"),
    [
        ("mixtral", True),
        *((name, flag) for name in ("qwen3_moe", "deepseek") for flag in (True, False)),
    ],
)
def test_the_block(name, renormalise):
    options = {} if name == "mixtral" else {"norm_topk_prob": renormalise}
    block = the_block_of(name, **options)
    with torch.no_grad():
        for tensor in (*block.parameters(), *block.buffers()):
            tensor.copy_(torch.randn(tensor.shape) / 2)
    ours = copy_of(block, renormalise=renormalise)
    x = torch.randn(B, T, D, requires_grad=True)
    with record_routing(ours) as routings:
        y = ours(x)
    _, weights, chosen = block.gate(x.flatten(0, 1))
    order = routings["router"].chosen.flatten(0, 1).argsort(-1)
    theirs = chosen.argsort(-1)  # in which order a token's experts stand is free
    kept = [each.flatten(0, 1).gather(1, order) for each in routings["router"][1:]]
    assert torch.equal(kept[0], chosen.gather(1, theirs))
    assert_close(kept[1], weights.gather(1, theirs), **CLOSE)
    wanted = block(x)
    assert_close(y, wanted, atol=1e-13, rtol=1e-12)
    out = torch.randn(B, T, D)
    assert_close(
        *(torch.autograd.grad(each, x, out)[0] for each in (y, wanted)),
        atol=1e-12,
        rtol=1e-11,
    )


@pytest.mark.parametrize("k", [1, 2, 4])
def test_their_loss_is_k_times_ours(k):
    """As their f sums to k: `router_aux_loss_coef` means another thing for each k."""
    logits = torch.randn(B * T, E)
    scores = logits.softmax(-1)
    theirs = mixtral.load_balancing_loss_func((logits,), E, k)
    ours = load_balance_loss(scores, scores.topk(k).indices)
    assert_close(theirs, k * ours, atol=1e-6, rtol=0)
