"""Each twin computes what its torch module does, with the same weights."""

import numpy as np
import pytest
import torch
from torch import nn

import tformer
from tformer import nn as parts
from tformer import reference
from tformer.nn.feed_forward import ACTIVATIONS, GATES

B, T, S, D, H, G, Dh, F, V = 2, 5, 7, 12, 6, 2, 4, 11, 13


def rotary(**options):
    return parts.RotaryEmbedding(parts.rotary_frequencies(Dh), **options)


def heads(**options):
    return parts.MultiHeadAttention(
        D, H, num_kv_heads=G, head_dim=Dh, bias=False, **options
    )


def latent(layout="pairs", **options):
    sizes = {"kv_rank": 7, "head_dim": 5, "value_dim": 3}
    return parts.LatentAttention(D, 3, rotary=rotary(layout=layout), **sizes, **options)


def mixture(**options):
    expert = parts.GatedFeedForward
    return parts.Experts(
        D, 6, lambda: expert(D, F, gate="geglu"), top_k=3, scale=2.5, **options
    )


def block(placement):
    network = parts.FeedForward(D, F)
    return parts.Block(heads(), network, lambda: parts.RMSNorm(D), placement=placement)


PLAIN = {
    "Linear": lambda: nn.Linear(D, F),
    "LayerNorm of torch": lambda: nn.LayerNorm(D, 0.1),
    **{
        f"FeedForward, {name}": lambda name=name: parts.FeedForward(
            D, F, activation=name, bias=name != "relu2", dropout=0.5
        )
        for name in ACTIVATIONS
    },
    **{
        f"GatedFeedForward, {gate}": lambda gate=gate: parts.GatedFeedForward(
            D, F, gate=gate, bias=gate == "glu"
        )
        for gate in GATES
    },
    "Experts": lambda: mixture(shared=parts.FeedForward(D, F)),
    "Experts, sigmoid": lambda: mixture(scores="sigmoid", renormalise=False),
    "LoRALinear": lambda: parts.LoRALinear(nn.Linear(D, F), 3, alpha=5.0),
    "LinearAttention": lambda: parts.LinearAttention(D, H, bias=True, chunk=3),
    "GatedDeltaRule": lambda: parts.GatedDeltaRule(D, H, chunk=3),
}
CAUSAL = {  # beside what the spec of multi-head attention asks
    "window": lambda: heads(window=3),
    "sinks and ALiBi": lambda: heads(
        sinks=nn.Parameter(torch.zeros(H)), relative=parts.ALiBi(H)
    ),
    "softcap and T5": lambda: heads(
        softcap=0.7, relative=parts.RelativeBias(H, num_buckets=6, max_distance=5)
    ),
    "scale and a scaled rotation": lambda: heads(scale=0.9, rotary=rotary(factor=1.3)),
    "biases": lambda: tformer.MultiHeadAttention(D, H, dropout=0.5),
    "latent": latent,
    "latent, absorbed": lambda: latent(absorbed=True, q_rank=8),
    "latent, options": lambda: latent("halves", scale=0.9, eps=0.3, q_rank=8),
    **{
        f"block, {placement}": lambda placement=placement: block(placement)
        for placement in ("pre", "post", "sandwich", "output")
    },
}
OF_TORCH = {"activation": "gelu", "batch_first": True, "layer_norm_eps": 0.1}
TO_ALL = {
    "heads of torch": lambda: nn.MultiheadAttention(D, H, batch_first=True),
    "encoder": lambda: tformer.transformer_encoder(D, H, F, 2, eps=0.1),
    "encoder, pre-norm": lambda: tformer.transformer_encoder(
        D, H, F, 2, norm_first=True, activation="gelu", num_kv_heads=G, bias=False
    ),
    "encoder of torch": lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(D, H, F, **OF_TORCH), 2, nn.LayerNorm(D, 0.2), False
    ),
}


@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_parts(parity, make):
    twin, module = parity.twin_of(make)
    array, tensor = parity.numbers(B, T, D)
    before = array.copy()
    parity.same(twin(array), module(tensor))
    np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("make", TO_ALL.values(), ids=TO_ALL)
def test_attention_to_everything(parity, make):
    twin, module = parity.twin_of(make)
    array, tensor = parity.numbers(B, T, D)
    if isinstance(module, nn.MultiheadAttention):
        parity.same(twin(array), module(tensor, tensor, tensor)[0])
        return
    parity.same(twin(array), module(tensor))
    if isinstance(module, tformer.Encoder):
        mask, mask_tensor = parity.mask(B, 1, 1, T)
        parity.same(twin(array, mask), module(tensor, mask_tensor))


@pytest.mark.parametrize("make", CAUSAL.values(), ids=CAUSAL)
def test_attention_to_the_past(parity, make):
    twin, module = parity.twin_of(make)
    array, tensor = parity.numbers(B, T, D)
    output = twin(array, is_causal=True)
    parity.same(output, module(tensor, is_causal=True))
    changed = array.copy()
    changed[:, -1] += 9
    np.testing.assert_array_equal(twin(changed, is_causal=True)[:, :-1], output[:, :-1])


@pytest.mark.parametrize("scale", [True, False])
def test_embedding(parity, scale):
    twin, module = parity.twin_of(lambda: parts.TokenEmbedding(V, D, scale=scale))
    ids, ids_tensor = parity.ids(V, B, T)
    x, x_tensor = parity.numbers(B, T, D)
    parity.same(twin(ids.astype("int32")), module(ids_tensor))
    parity.same(twin.logits(x), module.logits(x_tensor))


@pytest.mark.parametrize("start", [0, 3])
def test_a_part_of_a_head_is_rotated(parity, start):
    options = {"layout": "halves", "factor": 1.3, "head_dim": 7}
    twin, module = parity.twin_of(lambda: rotary(**options))
    array, tensor = parity.numbers(B, H, T, 7)
    parity.same(twin(array, start=start), module(tensor, start=start))


def test_rotation_at_positions_of_each_row(parity):
    twin, module = parity.twin_of(rotary)
    array, tensor = parity.numbers(B, H, T, Dh)
    places, torch_places = parity.numbers(B, T)
    parity.same(twin(array, positions=places), module(tensor, positions=torch_places))


@pytest.mark.parametrize(("queries", "keys"), [(T, T), (1, T), (T, 3)])
@pytest.mark.parametrize("both", [False, True])
def test_a_learned_bias_by_distance(new_parity, both, queries, keys):
    parity = new_parity()
    options = {"num_buckets": 8, "max_distance": 9, "bidirectional": both}
    twin, module = parity.twin_of(lambda: parts.RelativeBias(H, **options))
    parity.same(twin(queries, keys), module(queries, keys), 1e-12)


def test_the_choice_of_experts(new_parity):
    twin, module = (parity := new_parity()).twin_of(PLAIN["Experts, sigmoid"])
    module.router.selection_bias.copy_(torch.linspace(-1, 1, 6))
    twin = reference.from_torch(module)
    array, tensor = parity.numbers(B, T, D)
    ours, theirs = twin.router(array), module.router(tensor)
    np.testing.assert_array_equal(ours.chosen, theirs.chosen.numpy())
    parity.same(ours.weights, theirs.weights)
    unbiased = reference.route(twin.router.proj(array), 3, scores="sigmoid")
    assert not np.array_equal(ours.chosen, unbiased.chosen)


def test_only_padding_leaves_the_bias_of_the_projection(new_parity):
    twin, _ = (parity := new_parity()).twin_of(CAUSAL["biases"])
    array, _ = parity.numbers(B, T, D)
    mask = reference.length_mask(np.array([T, 0]))
    bias = np.broadcast_to(twin.out_proj.bias, (T, D))
    np.testing.assert_array_equal(twin(array, attn_mask=mask)[1], bias)
