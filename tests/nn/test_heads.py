"""Multi-head attention with each part: by its definition, cached in every split."""

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
from tformer.check.attention import attention
from tformer.nn import (
    ALiBi,
    LateNormAttention,
    NormOverHeads,
    QueryTemperature,
    RelativeBias,
    SharedKeysAttention,
    attend_to_segments,
    cache_of,
    merge_heads,
    rotary_frequencies,
    split_heads,
)
from tformer.reference import from_torch

B, T, D, H, Dh = 2, 6, 20, 6, 4


def turning():
    return RotaryEmbedding(rotary_frequencies(Dh))


def turning_half():
    return RotaryEmbedding(rotary_frequencies(Dh // 2), head_dim=Dh)


def of_t5(heads=H, both=False):
    size = 8 if both else 4
    return RelativeBias(heads, num_buckets=size, max_distance=4, bidirectional=both)


ALL = {
    "plain": {},
    "rotary": {"rotary": turning},
    "partial rotary": {"rotary": turning_half},
    "ALiBi": {"relative": lambda: ALiBi(H)},
    "T5's bias, and a window": {"relative": of_t5, "window": lambda: 2},
    "T5's bias of both ways": {"relative": lambda: of_t5(both=True)},
    "one bias for all heads": {"relative": lambda: of_t5(1)},
    "qk_norm": {"qk_norm": lambda: RMSNorm},
    "qk_norm over all heads": {"norm_over_heads": lambda: RMSNorm},
    "norm after the rotation": {"late_norm": lambda: RMSNorm, "rotary": turning},
    "norm of values": {"v_norm": lambda: RMSNorm},
    "keys are values": {"k_eq_v": lambda: True, "rotary": turning},
    "window": {"window": lambda: 3},
    "sinks": {"sinks": lambda: nn.Parameter(torch.zeros(H))},
    "gate": {"gate": lambda: nn.Linear(D, H * Dh)},
    "gate of each head": {"gate": lambda: nn.Linear(D, H)},
    "temperature": {"temperature": lambda: QueryTemperature(0.7, 2)},
    "scale": {"scale": lambda: 0.9},
    "bias": {"bias": lambda: True},
    "biases of q, k, v alone": {"bias": lambda: True, "out_bias": lambda: False},
    "everything": {
        "rotary": turning,
        "relative": of_t5,
        "qk_norm": lambda: LayerNorm,
        "v_norm": lambda: RMSNorm,
        "k_eq_v": lambda: True,
        "window": lambda: 2,
        "sinks": lambda: nn.Parameter(torch.zeros(H)),
        "softcap": lambda: 0.7,
        "scale": lambda: 0.9,
        "bias": lambda: True,
        "gate": lambda: nn.Linear(D, H, bias=False),
    },
    "everything else": {
        "temperature": lambda: QueryTemperature(0.7, 3),
        "rotary": turning_half,
        "norm_over_heads": lambda: LayerNorm,
        "bias": lambda: True,
        "out_bias": lambda: False,
        "gate": lambda: nn.Linear(D, H * Dh, bias=False),
    },
}
every_part = pytest.mark.parametrize("parts", ALL.values(), ids=ALL)


def built(parts, randomised=None, **options):
    made = {name: make() for name, make in parts.items()}
    options = {"num_kv_heads": 2, "head_dim": Dh, "bias": False, **options, **made}
    if norm := options.pop("qk_norm", None):
        options |= {"q_norm": norm(Dh), "k_norm": norm(Dh)}
    late = options.pop("late_norm", None)
    if late:
        options |= {"q_norm": late(Dh), "k_norm": late(Dh)}
    if norm := options.pop("v_norm", None):
        options["v_norm"] = norm(Dh)
    if norm := options.pop("norm_over_heads", None):
        of_keys = options["num_kv_heads"] * Dh
        options["q_norm"] = NormOverHeads(norm(H * Dh))
        options["k_norm"] = NormOverHeads(norm(of_keys))
    shares = {"v_norm", "k_eq_v"} & options.keys()
    kind = SharedKeysAttention if shares else MultiHeadAttention
    kind = LateNormAttention if late else kind
    module = kind(D, H, **options).eval()
    if isinstance(module.relative, RelativeBias):
        nn.init.normal_(module.relative.table)
    return randomised(module) if randomised else module


@torch.no_grad()
def slowly(module, x):
    """By the loops of the spec of attention."""
    q, k = module.q_proj(x), module.k_proj(x)
    shares = isinstance(module, SharedKeysAttention)
    v = (module.k_proj if shares and module.k_eq_v else module.v_proj)(x)
    over_heads = isinstance(module.q_norm, NormOverHeads)
    if over_heads:  # before the cut into heads
        q, k = module.q_norm.norm(q), module.k_norm.norm(k)
    q = split_heads(q, H)
    k, v = (split_heads(each, module.num_kv_heads) for each in (k, v))
    if shares and module.v_norm is not None:
        v = module.v_norm(v)
    late = isinstance(module, LateNormAttention)
    if module.q_norm is not None and not over_heads and not late:
        q, k = module.q_norm(q), module.k_norm(k)
    if module.rotary is not None:
        q, k = module.rotary(q), module.rotary(k)
    if late:
        q, k = module.q_norm(q), module.k_norm(k)
    if module.temperature is not None:
        of = module.temperature
        steps = torch.tensor([p // of.length for p in range(T)])
        q = q * (1 + of.beta * (1 + steps).double().log())[:, None]
    names = ("window", "scale", "softcap")
    options = {"is_causal": True, **{name: getattr(module, name) for name in names}}
    if module.relative is not None:
        options["bias"] = module.relative(T, T).numpy()
    if module.sinks is not None:
        options["sinks"] = module.sinks.numpy()
    heads = attention(*(y.numpy() for y in (q, k, v)), **options)
    merged = merge_heads(torch.from_numpy(heads))
    if module.gate is not None:
        opened = 1 / (1 + torch.exp(-module.gate(x)))
        merged *= opened.repeat_interleave(H * Dh // opened.shape[-1], dim=-1)
    return module.out_proj(merged)


@every_part
@pytest.mark.usefixtures("float64")
def test_the_definition_its_weights_and_its_twin(parts, randomised):
    for kv_heads in (H, 3, 1):
        module = built(parts, randomised, num_kv_heads=kv_heads)
        x = torch.randn(B, T, D)
        wanted = slowly(module, x)
        output = module(x, is_causal=True)
        assert_close(output, wanted, atol=1e-13, rtol=0)
        of_twin = from_torch(module)(x.numpy(), is_causal=True)
        assert_close(torch.from_numpy(of_twin), wanted)
        with record_weights(module) as weights:
            assert_close(module(x, is_causal=True), wanted)
        kept = weights[module]
        seen = causal_mask(T, window=module.window)
        assert torch.equal(kept > 0, seen.expand(B, H, T, T))
        # A sink takes a part, and has no column.
        whole = (kept.sum(-1) - 1).abs() < 1e-12
        assert (whole == (module.sinks is None)).all()
        output.pow(3).sum().backward()
        for name, p in module.named_parameters():
            # Softmax forgets it, where no rotation and no norm comes after it.
            if name != "k_proj.bias" or parts.keys() - {"bias", "out_bias"}:
                assert (p.grad.abs() > 1e-12).any(), name


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype):
    module, x = built(ALL["everything"]), torch.randn(B, T, D)
    wanted = module(x, is_causal=True)
    half = module.to(dtype)(x.to(dtype), is_causal=True)
    assert half.dtype == dtype
    assert_close(half.float(), wanted, atol=0.03, rtol=0.03)


def test_norms_in_float32_beside_values_in_16_bits_as_under_autocast_on_cuda():
    class Wide(nn.Module):
        def forward(self, x):
            return nn.functional.layer_norm(x.float(), (Dh,))

    norms = {"q_norm": Wide(), "k_norm": Wide()}
    attention, x = MultiHeadAttention(D, H, head_dim=Dh, **norms), torch.randn(B, T, D)
    with torch.autocast("cpu", torch.bfloat16):
        assert attention(x).dtype == torch.bfloat16


def test_key_and_value_default():
    attention, x, memory = built({}), torch.randn(B, T, D), torch.randn(B, 7, D)
    assert torch.equal(attention(x), attention(x, x, x))
    assert torch.equal(attention(x, memory), attention(x, memory, memory))
    assert not torch.allclose(attention(x, memory), attention(x, memory, 2 * memory))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.usefixtures("float64")
def test_sequences_side_by_side_are_as_each_alone(is_causal):
    attention, both = built({"relative": of_t5}), torch.randn(1, T + 7, D)
    around = partial(attend_to_segments, segments=[T, 0, 7])
    alone = [attention(x, is_causal=is_causal) for x in both.split((T, 7), dim=1)]
    row = attention(both, around=around, is_causal=is_causal)
    assert_close(row, torch.cat(alone, dim=1))


def test_first_weights_are_glorots():
    attention = MultiHeadAttention(64, 4, num_kv_heads=2)
    for name, rows in (("q", 64), ("k", 32), ("v", 32), ("out", 64)):
        part = getattr(attention, f"{name}_proj")
        assert part.weight.shape == (rows, 64)
        bound = (6 / (rows + 64)) ** 0.5
        assert 0.97 * bound < part.weight.abs().max() <= bound
        assert part.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
        assert (part.bias == 0).all()
    before = attention.q_proj.weight.clone()
    nn.init.ones_(attention.k_proj.bias)
    attention.reset_parameters()
    assert not torch.equal(before, attention.q_proj.weight)
    assert (attention.k_proj.bias == 0).all()
