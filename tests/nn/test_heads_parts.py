"""Multi-head attention with parts: by its definition, cached in every split."""

import math

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
from tformer.check.attention import attention
from tformer.nn import (
    ALiBi,
    RelativeBias,
    cache_of,
    merge_heads,
    rotary_frequencies,
    split_heads,
)
from tformer.reference import from_torch

B, T, D, H, Dh = 2, 6, 20, 6, 4


def turning():
    return RotaryEmbedding(rotary_frequencies(Dh))


def of_t5(heads=H, both=False):
    size = 8 if both else 4
    return RelativeBias(heads, num_buckets=size, max_distance=4, bidirectional=both)


ALL = {
    "plain": {},
    "rotary": {"rotary": turning},
    "ALiBi": {"relative": lambda: ALiBi(H)},
    "T5's bias, and a window": {"relative": of_t5, "window": lambda: 2},
    "T5's bias of both ways": {"relative": lambda: of_t5(both=True)},
    "one bias for all heads": {"relative": lambda: of_t5(1)},
    "qk_norm": {"qk_norm": lambda: RMSNorm},
    "window": {"window": lambda: 3},
    "sinks": {"sinks": lambda: True},
    "scale": {"scale": lambda: 0.9},
    "bias": {"bias": lambda: True},
    "everything": {
        "rotary": turning,
        "relative": of_t5,
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
    if isinstance(module.relative, RelativeBias):
        nn.init.normal_(module.relative.table)
    return randomised(module) if randomised else module


@torch.no_grad()
def slowly(module, x):
    """By the loops of the spec of attention."""
    q = split_heads(module.q_proj(x), H)
    k, v = (
        split_heads(proj(x), module.num_kv_heads)
        for proj in (module.k_proj, module.v_proj)
    )
    if module.q_norm is not None:
        q, k = module.q_norm(q), module.k_norm(k)
    if module.rotary is not None:
        q, k = module.rotary(q), module.rotary(k)
    names = ("window", "scale", "softcap")
    options = {"is_causal": True, **{name: getattr(module, name) for name in names}}
    if module.relative is not None:
        options["bias"] = module.relative(T, T).numpy()
    if module.sinks is not None:
        options["sinks"] = module.sinks.numpy()
    heads = attention(*(y.numpy() for y in (q, k, v)), **options)
    return module.out_proj(merge_heads(torch.from_numpy(heads)))


@every_part
@pytest.mark.usefixtures("float64")
def test_the_definition_and_its_weights(parts, randomised):
    for kv_heads in (H, 3, 1):
        module = built(parts, randomised, num_kv_heads=kv_heads)
        x = torch.randn(B, T, D)
        wanted = slowly(module, x)
        assert_close(module(x, is_causal=True), wanted, atol=1e-13, rtol=0)
        with record_weights(module) as weights:
            assert_close(module(x, is_causal=True), wanted)
        kept = weights[module]
        seen = causal_mask(T, window=module.window)
        assert torch.equal(kept > 0, seen.expand(B, H, T, T))
        # A sink takes a part, and has no column.
        whole = (kept.sum(-1) - 1).abs() < 1e-12
        assert (whole == (module.sinks is None)).all()


@every_part
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_the_twin_has_every_part(parts, randomised):
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
@pytest.mark.usefixtures("float64")
def test_every_parameter_is_learned(parts, randomised):
    module = built(parts, randomised)
    module(torch.randn(B, T, D), is_causal=True).pow(3).sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        if name != "k_proj.bias" or parts.keys() - {"bias"}:  # softmax forgets that one
            assert (parameter.grad.abs() > 1e-12).any(), name


@pytest.mark.parametrize("name", ["ALiBi", "everything"])
@pytest.mark.usefixtures("float64")
def test_compiled_whole(name, randomised):
    module, x = built(ALL[name], randomised), torch.randn(B, T, D)
    torch.compiler.reset()
    fast = torch.compile(module, fullgraph=True, backend="eager")
    gradients = []
    for each in (module, fast):
        output = each(x, is_causal=True)
        loss = output.pow(3).sum()
        gradients.append((output, *torch.autograd.grad(loss, [*module.parameters()])))
    assert_close(*gradients)


def test_a_sink_at_minus_infinity_is_none():
    x, module, without = torch.randn(B, T, D), built({"sinks": lambda: 1}), built({})
    assert (module.sinks == 0).all()
    nn.init.constant_(module.sinks, -math.inf)
    without.load_state_dict(module.state_dict(), strict=False)
    assert_close(module(x, is_causal=True), without(x, is_causal=True))
    nn.init.constant_(module.sinks, 1e4)
    assert module(x, is_causal=True).abs().max() < 1e-6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["ALiBi", "everything"])
def test_half_precision(name, dtype):
    module, x = built(ALL[name]), torch.randn(B, T, D)
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
