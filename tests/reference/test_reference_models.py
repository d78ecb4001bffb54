"""The twins of stacks and of whole models."""

import numpy as np
import pytest
import torch
from torch import nn

import tformer
from tformer import nn as parts
from tformer import reference
from tformer.models.encoder_decoder import EncoderDecoder
from tformer.models.families import custom

B, T, S, D, H, F, V = 2, 5, 7, 12, 6, 11, 13
OF_TORCH = {"activation": "gelu", "batch_first": True, "layer_norm_eps": 0.1}
LLAMA = {"positions": "rotary", "norm": "rms", "feed_forward": "swiglu", "bias": False}
LANGUAGE_MODELS = {
    "GPT": {},
    "Llama": {**LLAMA, "tie_embeddings": False, "kv_heads": 2, "qk_norm": True},
    "Gemma": {"norm": "rms_plus_one", "placement": "sandwich", "logit_cap": 3.0},
    "windows": {"window": 2, "global_every": 2, "sinks": True, "gate": True},
    "post": {"positions": "alibi", "placement": "post", "feed_forward": "relu2"},
    "T5": {"positions": "t5", "score_scale": 1.0, "softcap": 2.0},
    "experts and latents": {**LLAMA, "experts": 4, "shared_experts": 1, "kv_rank": 7},
}
BOTH_STACKS = {
    "by default": {},
    "learned": {"positions": "learned", "tgt_vocab_size": 19, "tie_embeddings": False},
    "tied targets": {"tgt_vocab_size": 19},
    "pre-norm": {"norm_first": True, "activation": "gelu", "eps": 0.01},
    "grouped": {"num_kv_heads": 1, "bias": False, "pad_id": None, "dropout": 0.5},
}


def exact(module):
    """Keep sinusoids in float64, which the module rounds to float32."""
    module._table = parts.sinusoidal_positions(T + S, D)
    return module


def of_both(pairs):
    """The arrays of pairs, and the tensors; None stays None."""
    return zip(*(pair or (None, None) for pair in pairs), strict=True)


@pytest.mark.parametrize("cross_attention", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"eps": 0.1},
        {"norm_first": True, "activation": "gelu", "num_kv_heads": 1, "bias": False},
    ],
)
def test_decoder(parity, options, cross_attention):
    build = tformer.transformer_decoder
    twin, module = parity.twin_of(
        lambda: build(D, H, F, 2, cross_attention=cross_attention, **options),
    )
    own, hidden = parity.mask(T, T), parity.mask(B, 1, 1, S)
    x, memory = parity.numbers(B, T, D), parity.numbers(B, S, D)
    for masks, is_causal in (((None, None), True), ((own, hidden), False)):
        pairs = (x, memory, *masks) if cross_attention else (x, None, masks[0], None)
        arrays, tensors = of_both(pairs)
        output = twin(*arrays, is_causal=is_causal)
        parity.same(output, module(*tensors, is_causal=is_causal))


@pytest.mark.parametrize("norm_first", [False, True])
def test_both_stacks_without_embeddings(parity, norm_first):
    ours = EncoderDecoder(
        tformer.transformer_encoder(D, H, F, 2, norm_first=norm_first),
        tformer.transformer_decoder(D, H, F, 3, activation="gelu"),
    )
    (src, src_tensor), (x, x_tensor) = (parity.numbers(B, n, D) for n in (S, T))
    for module in (
        nn.Transformer(D, H, 2, 3, F, norm_first=norm_first, **OF_TORCH),
        ours,
    ):
        twin = reference.from_torch(parity.module(module))
        assert isinstance(twin, reference.EncoderDecoder)
        parity.same(twin(src, x), module(src_tensor, x_tensor))
    names = "attn_mask", "src_mask", "memory_mask"
    drawn = of_both([parity.mask(T, T), parity.mask(S, S), parity.mask(B, 1, 1, S)])
    one, other = (dict(zip(names, each, strict=True)) for each in drawn)
    output = twin(src, x, **one, is_causal=True)
    parity.same(output, ours(src_tensor, x_tensor, **other, is_causal=True))


@pytest.mark.parametrize("changes", LANGUAGE_MODELS.values(), ids=LANGUAGE_MODELS)
def test_language_model(parity, changes):
    sizes = {"vocab_size": V, "d_model": 24, "logit_scale": 0.3}
    twin, module = parity.twin_of(lambda: custom.build({**sizes, **changes}))
    array, tensor = parity.ids(V, B, T)
    parity.same(twin(array), module(tensor), {"float32": 1e-4}.get(parity.dtype))


def both_stacks(**choice):
    sizes = {"vocab_size": V, "d_model": D, "num_heads": 3, "d_ff": F, "max_len": T + S}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 3}
    module = tformer.Transformer(
        tformer.TransformerConfig(**{**sizes, **layers, **choice})
    )
    if module.config.positions == "sinusoidal":
        exact(module.src_positions), exact(module.tgt_positions)
    return module


@pytest.mark.parametrize("choice", BOTH_STACKS.values(), ids=BOTH_STACKS)
def test_transformer(parity, choice):
    twin, module = parity.twin_of(lambda: both_stacks(**choice))
    (src, src_tensor), (tgt, tgt_tensor) = parity.ids(V, B, S), parity.ids(V, B, T)
    src[:, -2:] = src_tensor[:, -2:] = 0  # padding
    parity.same(twin(src, tgt), module(src_tensor, tgt_tensor))
    hidden = parity.mask(B, S), parity.mask(B, T)
    one, other = (
        {"src_key_mask": hidden[0][i], "tgt_key_mask": hidden[1][i]} for i in (0, 1)
    )
    masked = twin(src, tgt, **one)
    parity.same(masked, module(src_tensor, tgt_tensor, **other))
    assert np.abs(masked - twin(src, tgt)).max() > 1e-3
    memory = twin.encode(src, src_key_mask=hidden[0][0])
    parity.same(memory, module.encode(src_tensor, src_key_mask=hidden[0][1]))
    parity.same(
        twin.decode(tgt, memory, memory_key_mask=hidden[0][0]),
        module.decode(tgt_tensor, torch.tensor(memory), memory_key_mask=hidden[0][1]),
    )
