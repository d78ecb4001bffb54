"""Multi-head attention with parts: by its definition, cached in every split."""

import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer import (
    LayerNorm,
    MultiHeadAttention,
    RMSNorm,
    RotaryEmbedding,
    causal_mask,
    record_weights,
)
from tformer.nn import cache_of, merge_heads, rotary_frequencies, split_heads
from tformer.reference import from_torch

B, T, D, H, Dh = 2, 6, 20, 6, 4


class Distances(nn.Module):
    """A bias that depends on head and distance; the last query is at the last key."""

    def __init__(self, heads=H):
        super().__init__()
        self.slopes = nn.Parameter(torch.randn(heads))

    def forward(self, query_len, key_len):
        query = torch.arange(key_len - query_len, key_len)[:, None]
        distance = query - torch.arange(key_len)
        return -self.slopes[None, :, None, None] * distance  # (1, H, T, S)


def turning():
    return RotaryEmbedding(rotary_frequencies(Dh))


ALL = {
    "plain": {},
    "rotary": {"rotary": turning},
    "relative": {"relative": Distances},
    "one bias for all heads": {"relative": partial(Distances, 1)},
    "qk_norm": {"qk_norm": lambda: RMSNorm},
    "window": {"window": lambda: 3},
    "sinks": {"sinks": lambda: True},
    "softcap": {"softcap": lambda: 0.7},
    "scale": {"scale": lambda: 0.9},
    "bias": {"bias": lambda: True},
    "everything": {
        "rotary": turning,
        "relative": Distances,
        "qk_norm": lambda: LayerNorm,
        "window": lambda: 2,
        "sinks": lambda: True,
        "softcap": lambda: 0.7,
        "scale": lambda: 0.9,
        "bias": lambda: True,
    },
}
every_part = pytest.mark.parametrize("parts", ALL.values(), ids=ALL)


def built(parts, randomised=None, **options):
    made = {name: make() for name, make in parts.items()}
    options = {"num_kv_heads": 2, "head_dim": Dh, "bias": False, **options, **made}
    if norm := options.pop("qk_norm", None):
        options |= {"q_norm": norm(Dh), "k_norm": norm(Dh)}
    if options.pop("sinks", False):
        options["sinks"] = nn.Parameter(torch.zeros(H))
    module = MultiHeadAttention(D, H, **options).eval()
    return module if randomised is None else randomised(module)


def slowly(module, x, start=0):
    """What it shall compute, by its definition: one query at a time."""
    q = split_heads(module.q_proj(x), H)
    k, v = (
        split_heads(proj(x), module.num_kv_heads)
        for proj in (module.k_proj, module.v_proj)
    )
    if module.q_norm is not None:
        q, k = module.q_norm(q), module.k_norm(k)
    if module.rotary is not None:
        q, k = module.rotary(q, start=start), module.rotary(k, start=start)
    bias = torch.zeros(1, H, T, T)
    if module.relative is not None:
        bias = bias + module.relative(T, T)
    heads = torch.empty(B, H, T, Dh)
    for h in range(H):
        of = h // (H // module.num_kv_heads)
        for i in range(T):
            first = 0 if module.window is None else max(0, i - module.window + 1)
            seen = slice(first, i + 1)
            scale = module.scale or 1 / math.sqrt(Dh)
            scores = (k[:, of, seen] @ q[:, h, i, :, None])[..., 0] * scale  # (B, seen)
            if cap := module.softcap:
                scores = cap * (scores / cap).tanh()
            scores = scores + bias[0, h, i, seen]
            if module.sinks is not None:
                sink = module.sinks[h].expand(B, 1)
                weights = torch.cat((scores, sink), -1).softmax(-1)[:, :-1]
            else:
                weights = scores.softmax(-1)
            heads[:, h, i] = (weights[..., None] * v[:, of, seen]).sum(1)
    return module.out_proj(merge_heads(heads))


@every_part
@pytest.mark.parametrize("kv_heads", [H, 3, 1])
@pytest.mark.usefixtures("float64")
def test_the_definition(parts, kv_heads, randomised):
    module = built(parts, randomised, num_kv_heads=kv_heads)
    x = torch.randn(B, T, D)
    assert_close(module(x, is_causal=True), slowly(module, x), atol=1e-13, rtol=0)


@every_part
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_the_twin_has_every_part(parts, randomised):
    """But `Distances`, which stands here alone."""
    parts = {name: make for name, make in parts.items() if name != "relative"}
    module, x = built(parts, randomised), torch.randn(B, T, D)
    output = from_torch(module)(x.numpy(), is_causal=True)
    assert_close(torch.from_numpy(output), module(x, is_causal=True))


@every_part
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_every_split(parts, randomised):
    module = built(parts, randomised)
    x = torch.randn(B, T, D)
    whole = module(x, is_causal=True)
    for pieces in splits(T):
        cache = cache_of(module, T)
        parts_of = in_pieces(
            lambda begin, end, cache=cache: module(
                x[:, begin:end], is_causal=True, cache=cache
            ),
            pieces,
        )
        assert_close(parts_of, whole, atol=1e-13, rtol=0)
        assert cache.length == T


@every_part
def test_the_future_leaves_the_past_alone(parts, randomised):
    module, x = built(parts, randomised), torch.randn(B, T, D)
    later = x.clone()
    later[:, 3] += 1
    assert torch.equal(
        module(x, is_causal=True)[:, :3], module(later, is_causal=True)[:, :3]
    )
    assert not torch.allclose(
        module(x, is_causal=True)[:, 3], module(later, is_causal=True)[:, 3]
    )


@every_part
@pytest.mark.usefixtures("float64")
def test_every_parameter_is_learned(parts, randomised):
    module = built(parts, randomised)
    module(torch.randn(B, T, D), is_causal=True).pow(3).sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        if name != "k_proj.bias" or parts.keys() - {"bias"}:  # softmax forgets that one
            assert (parameter.grad.abs() > 1e-12).any(), name


@every_part
@pytest.mark.usefixtures("float64")
def test_compiled_whole(parts, randomised):
    module, x = built(parts, randomised), torch.randn(B, T, D)
    torch.compiler.reset()
    fast = torch.compile(module, fullgraph=True, backend="eager")
    assert_close(fast(x, is_causal=True), module(x, is_causal=True))


@pytest.mark.usefixtures("float64")
def test_a_query_head_reads_the_key_head_of_its_group():
    """Head h reads h // (H / G): equal to full heads, each repeated side by side."""
    grouped = MultiHeadAttention(D, H, num_kv_heads=2, head_dim=Dh, bias=False)
    full = MultiHeadAttention(D, H, head_dim=Dh, bias=False)
    state = grouped.state_dict()
    for name in ("k_proj.weight", "v_proj.weight"):
        by_head = state[name].view(2, Dh, D)
        state[name] = by_head.repeat_interleave(3, dim=0).flatten(0, 1)
        assert not torch.equal(state[name], by_head.repeat(3, 1, 1).flatten(0, 1))
    full.load_state_dict(state)
    x = torch.randn(B, T, D)
    assert_close(full(x), grouped(x))


@pytest.mark.usefixtures("float64")
def test_the_norm_of_queries_comes_before_the_turning(randomised):
    module = built({"rotary": turning, "qk_norm": lambda: RMSNorm}, randomised)
    assert module.q_norm.weight.shape == (Dh,)
    with torch.no_grad():
        module.q_norm.weight.copy_(torch.arange(1.0, Dh + 1))
        module.q_norm.weight[1] = -1.0
    x, turned = torch.randn(B, T, D), []
    module.rotary.register_forward_hook(lambda _, args, __: turned.append(args[0]))
    module(x, is_causal=True)
    q, k = split_heads(module.q_proj(x), H), split_heads(module.k_proj(x), 2)
    assert torch.equal(turned[0], module.q_norm(q))
    assert torch.equal(turned[1], module.k_norm(k))
    assert not torch.allclose(turned[0], module.k_norm(q))


@every_part
@pytest.mark.usefixtures("float64")
def test_recorded_weights(parts, randomised):
    module, x = built(parts, randomised), torch.randn(B, T, D)
    with record_weights(module) as weights:
        recorded = module(x, is_causal=True)
    assert_close(recorded, module(x, is_causal=True))
    kept = weights[module]
    assert kept.shape == (B, H, T, T)
    seen = causal_mask(T, window=module.window)
    assert torch.equal(kept > 0, seen.expand_as(kept))
    if module.sinks is None:
        assert_close(kept.sum(-1), torch.ones(B, H, T))
    else:  # a sink takes a part, and has no column
        assert (kept.sum(-1) < 1).all()


def test_a_sink_at_minus_infinity_is_none():
    x = torch.randn(B, T, D)
    module = built({"sinks": lambda: True})
    assert (module.sinks == 0).all()
    with torch.no_grad():
        module.sinks.fill_(-math.inf)
    without = built({})
    without.load_state_dict(
        {n: p for n, p in module.state_dict().items() if n != "sinks"}
    )
    assert_close(module(x, is_causal=True), without(x, is_causal=True))
    with torch.no_grad():
        module.sinks.fill_(1e4)
    assert module(x, is_causal=True).abs().max() < 1e-6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype):
    module = built(ALL["everything"])
    x = torch.randn(B, T, D)
    wanted = module(x, is_causal=True)
    half = module.to(dtype)(x.to(dtype), is_causal=True)
    assert half.dtype == dtype
    assert_close(half.float(), wanted, atol=0.03, rtol=0.03)


def test_dropout_is_of_the_training():
    module, x = built({}, dropout=0.5), torch.randn(B, T, D)
    assert torch.equal(module(x, is_causal=True), module(x, is_causal=True))
    module.train()
    assert not torch.equal(module(x, is_causal=True), module(x, is_causal=True))


def test_norms_in_float32_beside_values_in_16_bits_as_under_autocast_on_cuda():
    class Wide(nn.Module):
        def forward(self, x):
            return nn.functional.layer_norm(x.float(), (Dh,))

    norms = {"q_norm": Wide(), "k_norm": Wide()}
    attention, x = MultiHeadAttention(D, H, head_dim=Dh, **norms), torch.randn(B, T, D)
    with torch.autocast("cpu", torch.bfloat16):
        assert attention(x).dtype == torch.bfloat16
