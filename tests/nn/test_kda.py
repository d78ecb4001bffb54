"""Kimi Delta Attention's own; what all rules must do is in test_linear_attention."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from pieces import check_cached
from tformer.nn import (
    KimiDeltaAttention,
    delta_rule,
    delta_rule_recurrent,
    kda,
    short_convolution,
    unit_length,
)

B, H, T, DK, DV, D = 2, 3, 7, 5, 11, 6
both_forms = pytest.mark.parametrize(
    ("attend", "delta"),
    [(delta_rule_recurrent, delta_rule_recurrent), (kda, delta_rule)],
)


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


def inputs():
    q, k, v = draw(B, H, T, DK), unit_length(draw(B, H, T, DK)), draw(B, H, T, DV)
    return q, k, v, torch.rand(B, H, T, dtype=torch.float64)


def papers(q, k, v, beta, log_decay, state, kept=None, decays=None):
    """S ← (I − β k kᵀ) Diag(α) S + β k vᵀ, o = Sᵀ q, of one head and one text."""
    S, outputs = state, []
    for t in range(len(q)):
        alpha = torch.diag(log_decay[t].exp()) if decays is None else decays(t)
        forgets = torch.eye(DK, dtype=S.dtype) - beta[t] * torch.outer(k[t], k[t])
        both = forgets @ alpha if kept is None else kept(forgets, alpha)
        S = both @ S + beta[t] * torch.outer(k[t], v[t])
        outputs.append(S.mT @ q[t])
    return torch.stack(outputs), S


@pytest.mark.parametrize("attend", [delta_rule_recurrent, partial(kda, chunk=3)])
def test_is_the_papers_formula(attend):
    each, decay, state = inputs(), -3 * torch.rand(B, H, T, DK).double(), draw(DK, DV)
    state = state.expand(B, H, DK, DV)
    output, new = attend(*each, log_decay=decay, state=state)
    assert (output.shape, new.shape) == ((B, H, T, DV), (B, H, DK, DV))
    for b in range(B):
        for h in range(H):
            one = [x[b, h] for x in (*each, decay, state)]
            ours = output[b, h], new[b, h]
            assert_close(ours, papers(*one), rtol=0, atol=1e-12)


@both_forms
def test_with_all_channels_equal_it_is_the_delta_rule(attend, delta):
    each, decay = inputs(), -torch.rand(B, H, T).double()
    ours = attend(*each, log_decay=decay[..., None].expand(B, H, T, DK))
    assert_close(ours, delta(*each, log_decay=decay), rtol=0, atol=1e-13)
    assert_close(attend(*each), delta(*each), rtol=0, atol=1e-13)


@both_forms
def test_what_a_channel_forgets_the_others_keep(attend, delta):
    """The rows of the state: keys and values of one channel each."""
    keys = torch.eye(DK, dtype=torch.float64)[None, None]
    values, beta = draw(1, 1, DK, DV), torch.ones(1, 1, DK, dtype=torch.float64)
    decay = torch.zeros(1, 1, DK, DK, dtype=torch.float64)
    decay[..., -1, 2] = -torch.inf  # at the last token row 2 is emptied
    _, state = attend(keys, keys, values, beta, log_decay=decay)
    assert not state[0, 0, 2].any()
    rest = [0, 1, 3, 4]
    assert_close(state[0, 0, rest], values[0, 0, rest])


MISTAKES = {
    "error of a state that has not decayed": {"kept": lambda f, a: a @ f},
    "one decay for all channels": "mean",
    "decays of the value's columns": "columns",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_differs(mistake):
    """Each is the delta rule where all channels decay alike, and differs here."""
    q, k, v, beta = (x[0, 0] for x in inputs())
    v = v[:, :DK]  # so that rows and columns can be mixed up
    decay, alike = -2 * torch.rand(T, DK).double(), torch.full((T, DK), -0.4).double()
    state = draw(DK, DK)

    def wrong(decay):
        if mistake == "one decay for all channels":
            decay = decay.mean(-1, keepdim=True).expand(T, DK)
        if mistake == "decays of the value's columns":
            S, outputs = state, []
            for t in range(T):
                S = S * decay[t].exp()  # the mistake: [:, None] is missing
                S = S + beta[t] * torch.outer(k[t], v[t] - S.mT @ k[t])
                outputs.append(S.mT @ q[t])
            return torch.stack(outputs), S
        options = MISTAKES[mistake] if isinstance(MISTAKES[mistake], dict) else {}
        return papers(q, k, v, beta, decay, state, **options)

    def right(decay):
        one = [x[None, None] for x in (q, k, v, beta)]
        output, S = kda(*one, log_decay=decay[None, None], state=state[None, None])
        return output[0, 0], S[0, 0]

    assert_close(wrong(alike), right(alike), rtol=0, atol=1e-12)
    assert (wrong(decay)[0] - right(decay)[0]).abs().max() > 0.01


def layer(**options):
    sizes = {"key_dim": 3, "value_dim": 5, "rank": 2, "kernel": 3, "eps": 0.1}
    return KimiDeltaAttention(D, 4, **{**sizes, **options})


@pytest.mark.usefixtures("float64")
def test_the_layer_is_its_formula_and_every_weight_learns():
    module, x = layer(chunk=2), draw(B, T, D)
    each = module.q_proj(x), module.k_proj(x), module.v_proj(x)
    assert [y.shape[-1] for y in each] == [12, 12, 20]
    mixed, _ = short_convolution(torch.cat(each, -1), module.convolution.weight)
    q, k, v = F.silu(mixed).split([12, 12, 20], dim=-1)
    low = module.decay_up(module.decay_down(x))
    step = F.softplus(low + module.step_bias)  # (B, T, H · Dk)
    outputs = []
    for head in range(4):
        key, value = slice(3 * head, 3 * head + 3), slice(5 * head, 5 * head + 5)
        output, _ = delta_rule_recurrent(
            unit_length(q[:, None, :, key]) / math.sqrt(3),
            unit_length(k[:, None, :, key]),
            v[:, None, :, value],
            module.beta_proj(x)[..., head].sigmoid()[:, None],
            log_decay=-(module.log_rate[head].exp() * step[..., key])[:, None],
        )
        length = (output.square().mean(-1, keepdim=True) + 0.1).sqrt()
        outputs.append((output / length * module.norm.weight)[:, 0])
    gate = module.gate_up(module.gate_down(x)).sigmoid()
    assert_close(module(x), module.out_proj(torch.cat(outputs, dim=-1) * gate))
    module(x).square().sum().backward()
    for name, weight in module.named_parameters():
        assert weight.grad.abs().max() > 0, name


@pytest.mark.usefixtures("float64")
def test_cached_in_every_split_and_rows_change_places():
    nbytes = 8 * B * (4 * 3 * 5 + 2 * (12 + 12 + 20))
    check_cached(layer(chunk=2), draw(B, 5, D), nbytes)


def test_what_is_refused(raises):
    q, k, v, beta = inputs()
    beside = "with query (2, 3, 7, 5), not"
    with raises(ValueError, f"log_decay must be (2, 3, 7, 5) {beside} (2, 3, 7)"):
        kda(q, k, v, beta, log_decay=-beta)
    with raises(ValueError, f"beta must be (2, 3, 7) {beside} (2, 3, 7, 5)"):
        kda(q, k, v, q)
    with raises(ValueError, "rank (0) must be at least 1"):
        KimiDeltaAttention(D, H, rank=0)
    with raises(ValueError, "kernel (0) must be at least 1"):
        KimiDeltaAttention(D, H, kernel=0)
