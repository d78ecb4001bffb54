"""The gated delta rule's own; what it has in common is in test_linear_attention."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from pieces import check_cached
from tformer.nn import (
    GatedDeltaRule,
    ShortConvolution,
    delta_rule,
    delta_rule_recurrent,
    short_convolution,
    unit_length,
)

B, H, T, DK, DV, D = 2, 3, 7, 5, 11, 6
both_forms = pytest.mark.parametrize("attend", [delta_rule_recurrent, delta_rule])


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


@pytest.mark.usefixtures("float64")
def test_is_the_papers_formula():
    """S ← α S (I − β k kᵀ) + β v kᵀ with S (Dv, Dk), then o = S q."""
    q, k, v = draw(B, H, T, DK), unit_length(draw(B, H, T, DK)), draw(B, H, T, DV)
    beta, decay = torch.rand(2, B, H, T)
    first = draw(B, H, DK, DV)
    ours = delta_rule_recurrent(q, k, v, beta, log_decay=-decay, state=first)
    S, outputs = first.mT, []
    for t in range(T):
        key, value = k[:, :, t, :, None], v[:, :, t, :, None]
        rate, alpha = beta[:, :, t, None, None], (-decay)[:, :, t, None, None].exp()
        kept = torch.eye(DK) - rate * key @ key.mT
        S = alpha * S @ kept + rate * value @ key.mT
        outputs.append((S @ q[:, :, t, :, None]).squeeze(-1))
    assert_close(ours, (torch.stack(outputs, dim=2), S.mT), rtol=0, atol=1e-13)


@both_forms
def test_the_last_value_of_a_key_is_what_it_answers(attend):
    """With β = 1 a key that comes again has its value replaced, and not added to."""
    keys = torch.eye(DK, dtype=torch.float64)[[0, 1, 0, 2, 1]]
    values = draw(5, DV)
    beta = torch.ones(1, 1, 5, dtype=torch.float64)
    _, state = attend(keys[None, None], keys[None, None], values[None, None], beta)
    assert_close(state[0, 0, :3], values[[2, 4, 3]])
    assert not state[0, 0, 3:].any()


def test_unit_length():
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], dtype=torch.float64)
    assert_close(unit_length(x, eps=1e-12), torch.tensor([[0.6, 0.8], [0, 0]]).double())


@pytest.mark.usefixtures("float64")
def test_the_layer_is_its_formula_and_every_weight_learns():
    module, x = GatedDeltaRule(D, H, chunk=3), draw(B, T, D)
    heads = [
        proj(x).view(B, T, H, 2).transpose(1, 2)
        for proj in (module.q_proj, module.k_proj, module.v_proj)
    ]
    beta = module.beta_proj(x).sigmoid().mT
    step = F.softplus(module.decay_proj(x) + module.step_bias)
    decay = -(module.log_rate.exp() * step).mT
    q, k, v = unit_length(heads[0]) / math.sqrt(2), unit_length(heads[1]), heads[2]
    output, _ = delta_rule_recurrent(q, k, v, beta, log_decay=decay)
    wanted = module.out_proj(module.norm(output).transpose(1, 2).flatten(2))
    assert_close(module(x), wanted)
    module(x).square().sum().backward()
    for name, weight in module.named_parameters():
        assert weight.grad.abs().max() > 0, name


def test_the_layer_begins_with_little_forgetting():
    module = GatedDeltaRule(64, 32)
    step = F.softplus(module.step_bias)
    assert 0.001 <= step.min() < step.max() <= 0.1
    assert 1 <= module.log_rate.exp().min() < module.log_rate.exp().max() <= 16


def with_everything(**options):
    """As Qwen3-Next: fewer heads of keys, other widths, a convolution, a gate."""
    sizes = {"num_key_heads": 2, "key_dim": 3, "value_dim": 5, "kernel": 3}
    gate = torch.nn.Linear(D, 4 * 5, bias=False)
    return GatedDeltaRule(D, 4, **sizes, gate=gate, eps=0.1, **options)


@pytest.mark.usefixtures("float64")
def test_the_layer_with_everything_is_its_formula_and_every_weight_learns():
    module, x = with_everything(chunk=2), draw(B, T, D)
    q, k, v = module.q_proj(x), module.k_proj(x), module.v_proj(x)
    assert [y.shape[-1] for y in (q, k, v)] == [6, 6, 20]
    mixed, _ = short_convolution(torch.cat((q, k, v), -1), module.convolution.weight)
    q, k, v = F.silu(mixed).split([6, 6, 20], dim=-1)
    outputs = []
    for head in range(4):  # two of them share a key
        key = slice(3 * (head // 2), 3 * (head // 2) + 3)
        beta = module.beta_proj(x)[..., head].sigmoid()
        step = F.softplus(module.decay_proj(x)[..., head] + module.step_bias[head])
        output, _ = delta_rule_recurrent(
            unit_length(q[:, None, :, key]) / math.sqrt(3),
            unit_length(k[:, None, :, key]),
            v[:, None, :, 5 * head : 5 * head + 5],
            beta[:, None],
            log_decay=-(module.log_rate[head].exp() * step)[:, None],
        )
        length = (output.square().mean(-1, keepdim=True) + 0.1).sqrt()
        outputs.append((output / length * module.norm.weight)[:, 0])
    gated = torch.cat(outputs, dim=-1) * F.silu(module.gate(x))
    assert_close(module(x), module.out_proj(gated))
    module(x).square().sum().backward()
    for name, weight in module.named_parameters():
        assert weight.grad.abs().max() > 0, name


@pytest.mark.usefixtures("float64")
def test_a_convolution_is_cached_in_every_split_and_rows_change_places():
    nbytes = 8 * B * (4 * 3 * 5 + 2 * (6 + 6 + 20))
    check_cached(with_everything(chunk=2), draw(B, 5, D), nbytes)


def test_what_the_layer_refuses(raises):
    with raises(ValueError, "num_heads (4) must be divisible by num_key_heads (3)"):
        GatedDeltaRule(8, 4, num_key_heads=3)
    with raises(ValueError, "kernel (0) must be at least 1"):
        GatedDeltaRule(8, 4, kernel=0)
    with raises(ValueError, "value_dim (0) must be at least 1"):
        GatedDeltaRule(8, 4, value_dim=0)
    assert isinstance(GatedDeltaRule(8, 4, kernel=2).convolution, ShortConvolution)
