import copy
import pickle
from contextlib import nullcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from tformer import MultiHeadAttention, causal_mask, length_mask, record_weights
from tformer.nn import combine_masks, merge_heads, split_heads

B, T, S, H, DH = 2, 5, 7, 3, 11
D = H * DH


@pytest.fixture
def attention(float64, randomised):
    return randomised(MultiHeadAttention(D, H))


@pytest.mark.usefixtures("float64")
class TestAgainstTorch:
    @pytest.fixture(params=[True, False])
    def pair(self, request, randomised):
        theirs = nn.MultiheadAttention(D, H, bias=request.param, batch_first=True)
        randomised(theirs)
        ours = MultiHeadAttention(D, H, bias=request.param)
        weights = theirs.state_dict()
        parts = zip("qkv", weights["in_proj_weight"].chunk(3), strict=True)
        renamed = {f"{name}_proj.weight": part for name, part in parts}
        if request.param:
            parts = zip("qkv", weights["in_proj_bias"].chunk(3), strict=True)
            renamed |= {f"{name}_proj.bias": part for name, part in parts}
        renamed |= {k: v for k, v in weights.items() if k.startswith("out_proj")}
        ours.load_state_dict(renamed)
        return ours, theirs

    @pytest.mark.parametrize("key_len", [T, S])
    @pytest.mark.parametrize("mask", ["none", "all", "heads", "causal"])
    @pytest.mark.parametrize("padded", [False, True])
    def test_output_weights_and_gradients(self, pair, key_len, mask, padded):
        ours, theirs = pair
        query = torch.randn(B, T, D, requires_grad=True)
        key = torch.randn(B, key_len, D, requires_grad=True)
        value = torch.randn(B, key_len, D, requires_grad=True)
        allowed = {
            "none": None,
            "all": torch.rand(T, key_len) < 0.7,
            "heads": torch.rand(B, H, T, key_len) < 0.7,
            "causal": causal_mask(T, key_len),
        }[mask]
        if allowed is not None:
            allowed[..., 0] = True
        real = length_mask(torch.tensor([key_len, 2]), key_len) if padded else None
        wanted, wanted_weights = theirs(
            query,
            key,
            value,
            attn_mask=None
            if allowed is None
            else ~allowed.reshape(-1, T, key_len)
            if allowed.ndim == 4
            else ~allowed,
            key_padding_mask=None if real is None else ~real[:, 0, 0],
            average_attn_weights=False,
        )
        attn_mask = combine_masks(allowed, real)
        with record_weights(ours) as recorded:
            output = ours(query, key, value, attn_mask)
        weights = recorded[ours]
        assert output.shape == (B, T, D)
        assert weights.shape == (B, H, T, key_len)
        assert_close(output, wanted)
        assert_close(weights, wanted_weights)
        fused = ours(query, key, value, attn_mask)
        assert_close(fused, wanted)
        gradients = [
            torch.autograd.grad(x.square().sum(), [query, key, value])
            for x in (output, fused, wanted)
        ]
        assert_close(gradients[0], gradients[2])
        assert_close(gradients[1], gradients[2])


def test_is_the_papers_formula(attention):
    """Concat(head₁, …) W^O with headᵢ = softmax(Q Wᵢ^Q (K Wᵢ^K)ᵀ / √d_k) V Wᵢ^V."""
    query, key, value = torch.randn(B, T, D), torch.randn(B, S, D), torch.randn(B, S, D)
    heads = []
    for i in range(H):
        own = slice(i * DH, (i + 1) * DH)
        q, k, v = (
            x @ part.weight[own].T + part.bias[own]
            for x, part in (
                (query, attention.q_proj),
                (key, attention.k_proj),
                (value, attention.v_proj),
            )
        )
        heads.append(torch.softmax(q @ k.mT / DH**0.5, dim=-1) @ v)
    out = attention.out_proj
    wanted = torch.cat(heads, dim=-1) @ out.weight.T + out.bias
    assert_close(attention(query, key, value), wanted)


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_groups_are_heads_with_shared_keys_and_values(float64, randomised, groups):
    grouped = randomised(MultiHeadAttention(6 * DH, 6, num_kv_heads=groups))
    full = MultiHeadAttention(6 * DH, 6)
    weights = grouped.state_dict()
    for name in ("k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"):
        heads = weights[name].unflatten(0, (groups, DH))
        weights[name] = heads.repeat_interleave(6 // groups, dim=0).flatten(0, 1)
    full.load_state_dict(weights)
    x, memory = torch.randn(B, T, 6 * DH), torch.randn(B, S, 6 * DH)
    assert_close(grouped(x, memory), full(x, memory))
    with record_weights(grouped) as of_grouped, record_weights(full) as of_full:
        assert_close(grouped(x, memory), full(x, memory))
    assert_close(of_grouped[grouped], of_full[full])


def test_key_and_value_default(attention):
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    assert torch.equal(attention(x), attention(x, x, x))
    assert torch.equal(attention(x, memory), attention(x, memory, memory))
    assert not torch.allclose(attention(x, memory), attention(x, memory, memory + 1))


def test_masks_combine(attention):
    x = torch.randn(B, T, D)
    attn_mask = torch.rand(T, T) < 0.8
    real = torch.tensor([[True] * 5, [False, True, True, True, False]])[:, None, None]
    together = attn_mask & causal_mask(T) & real  # (B, 1, T, T)
    options = {"attn_mask": combine_masks(attn_mask, real), "is_causal": True}
    with record_weights(attention) as recorded:
        wanted = attention(x, attn_mask=together)
        wanted_weights = recorded[attention]
        output = attention(x, **options)
    weights = recorded[attention]
    assert_close(output, wanted)
    assert_close(weights, wanted_weights)
    assert_close(attention(x, **options), wanted)
    assert (weights[~together.expand_as(weights)] == 0).all()


def test_every_argument_changes_the_output(attention):
    x, memory = torch.randn(B, T, D), torch.randn(B, T, D)
    plain = attention(x)
    for options in (
        {"key": memory},
        {"key": x, "value": memory},
        {"attn_mask": torch.rand(T, T) < 0.5},
        {"attn_mask": length_mask(torch.tensor([3, 5]))},
        {"bias": torch.randn(1, H, T, T)},
        {"is_causal": True},
    ):
        assert (attention(x, **options) - plain).abs().max() > 1e-3, options


@given(real=st.integers(1, S - 1))
def test_a_masked_key_has_no_gradient(real):
    attention = MultiHeadAttention(D, H)
    query, key = torch.randn(B, T, D), torch.randn(B, S, D, requires_grad=True)
    attn_mask = length_mask(torch.tensor([real, S]))
    attention(query, key, attn_mask=attn_mask).square().sum().backward()
    assert (key.grad[0, real:] == 0).all()
    assert (key.grad[0, :real] != 0).all()
    assert (key.grad[1] != 0).all()


def test_rows_of_a_batch_do_not_mix(attention):
    x = torch.randn(B, T, D)
    assert_close(attention(x)[:1], attention(x[:1]))


@pytest.mark.parametrize("recording", [nullcontext, record_weights])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_query_without_keys_gets_the_output_bias(randomised, dtype, recording):
    attention = randomised(MultiHeadAttention(D, H)).to(dtype)
    x = torch.randn(B, T, D).to(dtype).requires_grad_()
    real = torch.tensor([[False] * T, [True] * T])
    with recording(attention):
        output = attention(x, attn_mask=real[:, None, None])
    assert torch.equal(output[0], attention.out_proj.bias.expand(T, D))
    output.float().square().sum().backward()
    assert (x.grad[0] == 0).all()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in attention.parameters())


def test_split_heads_cuts_the_width():
    x = torch.randn(B, T, D)
    heads = split_heads(x, H)
    assert heads.shape == (B, H, T, DH)
    for h in range(H):
        assert torch.equal(heads[:, h], x[..., h * DH : (h + 1) * DH])
    assert torch.equal(merge_heads(heads), x)
    turned = torch.randn(T, B, D).transpose(0, 1)
    assert torch.equal(merge_heads(split_heads(turned, H)), turned)


def test_first_weights_are_glorots():
    attention = MultiHeadAttention(64, 4, num_kv_heads=2)
    for name, rows in (("q", 64), ("k", 32), ("v", 32), ("out", 64)):
        part = getattr(attention, f"{name}_proj")
        assert isinstance(part, nn.Linear)
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


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 4 * (D * D + D)),
        ({"bias": False}, 4 * D * D),
        ({"num_kv_heads": 1}, 2 * (D * D + D) + 2 * (D * DH + DH)),
    ],
)
def test_number_of_parameters(options, count):
    attention = MultiHeadAttention(D, H, **options)
    assert sum(p.numel() for p in attention.parameters()) == count


def test_dropout_is_for_training_only():
    attention = MultiHeadAttention(D, H, dropout=0.5)
    x = torch.randn(B, T, D)
    assert not torch.equal(attention(x), attention(x))
    output = attention(x)
    attention.eval()
    assert torch.equal(attention(x), attention(x))
    assert not torch.allclose(attention(x), output)
    wanted = MultiHeadAttention(D, H)
    wanted.load_state_dict(attention.state_dict())
    assert torch.equal(attention(x), wanted(x))


def test_copies_compute_the_same(attention):
    x = torch.randn(B, T, D)
    for twin in (copy.deepcopy(attention), pickle.loads(pickle.dumps(attention))):
        assert torch.equal(twin(x), attention(x))
        nn.init.zeros_(twin.q_proj.weight)
        assert not torch.allclose(twin(x), attention(x))
