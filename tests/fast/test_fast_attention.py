"""How attention uses torch's fused kernel, and makes up for what the kernel lacks."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import tformer.fast.attention
from attention_inputs import CODE_PATHS, DV, B, G, H, S, T, by_formula, draw
from tformer import attention_weights, causal_mask, scaled_dot_product_attention


@pytest.fixture
def kernel_calls(monkeypatch):
    """Record what the fused kernel is given."""
    calls = []
    kernel = F.scaled_dot_product_attention

    def record(query, key, value, mask, dropout_p, is_causal, **options):
        calls.append(SimpleNamespace(**locals()))
        return kernel(query, key, value, mask, dropout_p, is_causal, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", record)
    return calls


def test_the_flag_is_handed_on_and_no_mask_is_made(kernel_calls):
    query, key, value = draw(length=S), draw(G, S), draw(G, S)
    scaled_dot_product_attention(query, key, value, is_causal=True)
    scaled_dot_product_attention(query[:, :, -1:], key, value, is_causal=True)
    scaled_dot_product_attention(query, key, value)
    assert [call.is_causal for call in kernel_calls] == [True, False, False]
    assert all(call.mask is None for call in kernel_calls)


def test_nothing_is_copied_without_need(kernel_calls):
    query, key = draw(G, S), draw(G, S)
    for width in (11, 5, 13):
        value = draw(G, S, width)
        output = scaled_dot_product_attention(query, key, value)
        assert output.shape[-1] == width
        call = kernel_calls.pop()
        assert not call.options["enable_gqa"]
        for given, name in ((query, "query"), (key, "key"), (value, "value")):
            taken = getattr(call, name)
            assert taken.shape[-1] == max(11, width)
            if given.shape[-1] == max(11, width):
                assert taken is given
            else:
                assert (taken[..., given.shape[-1] :] == 0).all()


def test_blocks_are_for_masks_with_rows_only(monkeypatch, kernel_calls):
    monkeypatch.setattr(tformer.fast.attention, "QUERIES_AT_A_TIME", 3)
    inputs = [draw(length=S), draw(G, S), draw(G, S)]
    keys = torch.rand(B, 1, 1, S) < 0.7
    for options, calls in (
        ({}, 1),
        ({"is_causal": True}, 1),
        ({"attn_mask": keys}, 1),
        ({"bias": torch.randn(1, H, 1, S)}, 1),
        ({"attn_mask": keys, "is_causal": True}, 3),
        ({"attn_mask": causal_mask(S)}, 3),
        ({"bias": torch.randn(S, S)}, 3),
    ):
        kernel_calls.clear()
        scaled_dot_product_attention(*inputs, **options)
        assert len(kernel_calls) == calls, options


def test_a_mask_is_handed_on_as_it_is(kernel_calls):
    query, key, value = draw(length=S), draw(G, S), draw(G, S)
    keys = torch.rand(B, 1, 1, S) < 0.7
    scaled_dot_product_attention(query, key, value, keys)
    scaled_dot_product_attention(query, key, value, causal_mask(S), is_causal=True)
    assert kernel_calls[0].mask is keys or torch.equal(kernel_calls[0].mask, keys)
    assert kernel_calls[0].mask.dtype == torch.bool
    assert kernel_calls[1].mask.shape == (1, 1, S, S)


def test_weights_and_softcap_leave_the_kernel(kernel_calls):
    query, key, value = draw(), draw(G, S), draw(G, S)
    attention_weights(query, key)
    by_formula(query, key, value)
    scaled_dot_product_attention(query, key, value, softcap=1.0)
    assert not kernel_calls


@pytest.mark.parametrize("lengths", [(7, 7), (7, 11), (11, 7), (2, 7), (3, 2)])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("mask", ["none", "keys", "rows", "bias", "rows and bias"])
def test_blocks_of_queries_change_nothing(
    lengths, is_causal, mask, monkeypatch, kernel_calls
):
    monkeypatch.setattr(tformer.fast.attention, "QUERIES_AT_A_TIME", 3)
    length, key_len = lengths
    inputs = [draw(H, length), draw(G, key_len), draw(G, key_len, DV)]
    options = {"is_causal": is_causal}
    if mask == "keys":
        options["attn_mask"] = torch.rand(B, 1, 1, key_len) < 0.7
    if "rows" in mask:
        options["attn_mask"] = torch.rand(1, H, length, key_len) < 0.7
    if "bias" in mask:
        options["bias"] = torch.randn(length, key_len, dtype=torch.float64)
        inputs.append(options["bias"])
    for x in inputs:
        x.requires_grad_()
    outputs = [
        attend(*inputs[:3], **options)
        for attend in (scaled_dot_product_attention, by_formula)
    ]
    assert_close(*outputs)
    factor = torch.randn_like(outputs[0])
    gradients = [torch.autograd.grad((x * factor).sum(), inputs) for x in outputs]
    assert_close(*gradients)
    for call in kernel_calls:
        rows = 1 if call.mask is None else call.mask.shape[-2]
        assert rows <= 3


@CODE_PATHS
@pytest.mark.parametrize("bias", [False, True])
def test_another_kernel_may_give_nan_where_nothing_is_seen(bias, attend, monkeypatch):
    """As kernels of other devices do, which also may not know of groups."""

    def kernel(query, key, value, mask, dropout_p, is_causal, *, scale, enable_gqa):
        assert not enable_gqa
        assert query.shape[1] == key.shape[1] == value.shape[1]
        scores = query @ key.mT * scale
        if mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(
                ~mask, -torch.inf
            )
        return torch.softmax(scores + mask, dim=-1) @ value

    inputs = [draw(), draw(G, S), draw(G, S, DV)]
    attn_mask = torch.rand(B, 1, T, S) < 0.7
    attn_mask[0, :, 2] = False
    added = torch.randn(T, S, dtype=torch.float64) if bias else None
    if bias:
        added[3] = -torch.inf  # a bias too may leave nothing to see
    wanted = attend(*inputs, attn_mask, bias=added)
    assert (wanted[0, :, 2] == 0).all()

    monkeypatch.setattr(tformer.fast.attention, "ZEROES_DEAD_ROWS", set())
    monkeypatch.setattr(tformer.fast.attention, "_serves_groups", lambda *_: False)
    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    for x in inputs:
        x.requires_grad_()
    output = attend(*inputs, attn_mask, bias=added)
    assert_close(output, wanted)
    output.square().sum().backward()
    assert all(x.grad.isfinite().all() for x in inputs)
    assert (inputs[0].grad[0, :, 2] == 0).all()


@pytest.mark.parametrize(
    ("device", "dtype", "masked", "served"),
    [
        ("cuda", torch.bfloat16, False, True),
        ("cuda", torch.float16, False, True),
        ("cuda", torch.float32, False, False),
        ("cuda", torch.float16, True, False),
        ("mps", torch.float16, False, False),
    ],
)
def test_where_the_kernel_knows_of_groups(device, dtype, masked, served):
    query = SimpleNamespace(
        device=torch.device(device), is_cuda=device == "cuda", dtype=dtype
    )
    mask = causal_mask(2) if masked else None
    assert tformer.fast.attention._serves_groups(query, mask) is served


@pytest.mark.parametrize("served", [False, True])
def test_the_kernel_of_the_cpu_knows_of_groups_in_newer_torch(
    served, monkeypatch, kernel_calls
):
    newer = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)
    assert tformer.fast.attention.CPU_SERVES_GROUPS is newer
    inputs = [draw(), draw(G, S), draw(G, S, DV)]
    wanted = by_formula(*inputs)
    monkeypatch.setattr(tformer.fast.attention, "CPU_SERVES_GROUPS", served)
    assert_close(scaled_dot_product_attention(*inputs), wanted)
    (call,) = kernel_calls
    assert call.key.shape[1] == call.value.shape[1] == (G if served else H)
    assert call.options["enable_gqa"] is served


@CODE_PATHS
def test_layout_in_memory_does_not_matter(attend):
    query = draw(T, H).transpose(1, 2)  # (B, H, T, Dh), strides of (B, T, H, Dh)
    key = draw(G, S, 2 * 11)[..., ::2]
    value = draw(1, S, DV).expand(B, G, S, DV)
    wanted = attend(query.contiguous(), key.contiguous(), value.contiguous())
    assert_close(attend(query, key, value), wanted)


@CODE_PATHS
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_does_not_overflow(dtype, attend):
    query, key, value = (draw(dtype=torch.float32) * 300 for _ in range(3))
    with torch.autocast("cpu", dtype):
        output = attend(query, key, value)
    assert output.isfinite().all()


@CODE_PATHS
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_function_transforms(attend):
    query, key, value = draw(batch=3), draw(G, S, batch=3), draw(G, S, batch=3)

    def of_one(query, key, value):
        return attend(query[None], key[None], value[None], causal_mask(T, S))[0]

    wanted = torch.stack([of_one(*x) for x in zip(query, key, value, strict=True)])
    assert_close(torch.func.vmap(of_one)(query, key, value), wanted)


def test_shapes_on_the_meta_device():
    query, key, value = (x.to("meta") for x in (draw(), draw(G, S), draw(G, S, DV)))
    assert by_formula(query, key, value).shape == (B, H, T, DV)
    assert attention_weights(query, key).shape == (B, H, T, S)
    for mask in (None, causal_mask(T, S).to("meta")):
        output = scaled_dot_product_attention(query, key, value, mask)
        assert output.is_meta
        assert output.shape == (B, H, T, DV)
