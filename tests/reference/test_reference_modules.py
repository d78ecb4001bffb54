"""Each twin computes what its torch module does, with the same weights."""

import numpy as np
import pytest
import torch
from torch import nn

import tformer
from tformer import reference
from tformer.models.causal_config import CausalLMConfig, Parts
from tformer.nn.experts import Experts
from tformer.nn.gated import GATES
from tformer.nn.positions import sinusoidal_positions
from tformer.nn.rotary import rotary_frequencies

B, T, S, D, H, G, Dh, F, V = 2, 5, 7, 12, 6, 2, 4, 11, 13


def rotary(**options):
    return tformer.RotaryEmbedding(rotary_frequencies(Dh), **options)


def latent(layout="pairs", **options):
    sizes = {"kv_rank": 7, "head_dim": 5, "value_dim": 3}
    return tformer.LatentAttention(
        D, 3, rotary=rotary(layout=layout), **sizes, **options
    )


def language_model(tie_embeddings=True, **parts):
    sizes = {"vocab_size": V, "d_model": 24, "tie_embeddings": tie_embeddings}
    config = CausalLMConfig.tiny(**sizes, logit_scale=0.3, parts=Parts(**parts))
    return tformer.CausalLM(config)


def mixture(**options):
    part = tformer.GatedFeedForward
    return Experts(
        D, 6, lambda: part(D, F, gate="geglu"), top_k=3, scale=2.5, **options
    )


def block(placement):
    parts = tformer.SelfAttention(D, 3), tformer.FeedForward(D, F)
    return tformer.Block(*parts, lambda: tformer.RMSNorm(D), placement=placement)


PLAIN = {
    "Linear": lambda: nn.Linear(D, F),
    "Linear, no bias": lambda: nn.Linear(D, F, bias=False),
    "LayerNorm": lambda: tformer.LayerNorm(D, 1e-3),
    "LayerNorm, no bias": lambda: tformer.LayerNorm(D, bias=False),
    "LayerNorm of torch": lambda: nn.LayerNorm(D, 0.1),
    "RMSNorm": lambda: tformer.RMSNorm(D),
    "RMSNorm, 1 + w": lambda: tformer.RMSNorm(D, 0.3, plus_one=True),
    **{
        f"FeedForward, {name}": lambda name=name, bias=bias: tformer.FeedForward(
            D, F, activation=name, bias=bias, dropout=0.5
        )
        for name, bias in zip(
            ("relu", "gelu", "gelu_tanh", "relu2"), (1, 1, 0, 0), strict=True
        )
    },
    **{
        f"GatedFeedForward, {gate}": lambda gate=gate, bias=bias: (
            tformer.GatedFeedForward(D, F, gate=gate, bias=bias)
        )
        for gate, bias in zip(GATES, (0, 1, 0, 1, 0), strict=True)
    },
    "Experts": lambda: mixture(shared=tformer.FeedForward(D, F)),
    "Experts, sigmoid": lambda: mixture(scores="sigmoid", renormalise=False),
    "LoRALinear": lambda: tformer.LoRALinear(nn.Linear(D, F), 3, alpha=5.0),
    "SinusoidalPositionalEncoding": lambda: exact(
        tformer.SinusoidalPositionalEncoding(D, max_len=2)
    ),
    "LearnedPositionalEmbedding": lambda: tformer.LearnedPositionalEmbedding(T, D),
    "LinearAttention": lambda: tformer.LinearAttention(D, H, bias=True, chunk=3),
    "GatedDeltaRule": lambda: tformer.GatedDeltaRule(D, H, chunk=3),
}
ATTENDING = {
    "MultiHeadAttention": lambda: tformer.MultiHeadAttention(D, H, dropout=0.5),
    "MultiHeadAttention, grouped": lambda: tformer.MultiHeadAttention(
        D, H, num_kv_heads=G, bias=False
    ),
    "MultiHeadAttention of torch": lambda: nn.MultiheadAttention(
        D, H, batch_first=True
    ),
    "EncoderLayer": lambda: tformer.EncoderLayer(D, H, F, eps=0.1),
    "EncoderLayer, pre-norm": lambda: tformer.EncoderLayer(
        D, H, F, norm_first=True, activation="gelu", num_kv_heads=G, bias=False
    ),
    "Encoder": lambda: tformer.Encoder(D, H, F, 2),
    "Encoder, pre-norm": lambda: tformer.Encoder(D, H, F, 2, norm_first=True, eps=0.1),
    "Encoder of torch": lambda: nn.TransformerEncoder(
        torch_layer(nn.TransformerEncoderLayer), 2, nn.LayerNorm(D, 0.2), False
    ),
}
CAUSAL = {
    **{
        f"SelfAttention, {name}": lambda options=options: tformer.SelfAttention(
            D, H, num_kv_heads=G, head_dim=Dh, **options
        )
        for name, options in {
            "plain": {},
            "rotary": {"rotary": rotary(factor=1.3)},
            "qk_norm": {"qk_norm": tformer.RMSNorm},
            "window": {"window": 3},
            "sinks": {"sinks": True},
            "softcap": {"softcap": 0.7},
            "scale": {"scale": 0.9},
            "ALiBi": {"relative": tformer.ALiBi(H), "sinks": True},
            "T5": {"relative": tformer.RelativeBias(H, num_buckets=6, max_distance=5)},
            "all": {
                "rotary": rotary(layout="halves"),
                "qk_norm": tformer.LayerNorm,
                "window": 2,
                "sinks": True,
                "softcap": 0.7,
                "scale": 0.9,
                "bias": True,
            },
        }.items()
    },
    "LatentAttention": latent,
    "LatentAttention, absorbed": lambda: latent(absorbed=True, q_rank=8),
    "LatentAttention, options": lambda: latent("halves", scale=0.9, eps=0.3, q_rank=8),
    **{
        f"Block, {placement}": lambda placement=placement: block(placement)
        for placement in ("pre", "post", "sandwich")
    },
}
LANGUAGE_MODELS = {
    "Llama": {},
    "tied": {"tie_embeddings": False},
    "GPT": {"positions": "learned", "norm": "layer", "feed_forward": "gelu_tanh"},
    "Gemma": {"norm": "rms_plus_one", "placement": "sandwich", "logit_cap": 3.0},
    "windows": {"window": 2, "global_every": 2, "sinks": True, "scale_embedding": True},
    "post": {"positions": "alibi", "placement": "post", "feed_forward": "relu2"},
    "T5": {"positions": "t5", "score_scale": 1.0},
}
BOTH_STACKS = {
    "by default": {},
    "learned": {"positions": "learned", "tgt_vocab_size": 19, "tie_embeddings": False},
    "tied targets": {"tgt_vocab_size": 19},
    "pre-norm": {"norm_first": True, "activation": "gelu", "eps": 0.01},
    "grouped": {"num_kv_heads": 1, "bias": False, "pad_id": None, "dropout": 0.5},
}


def torch_layer(kind):
    options = {"activation": "gelu", "batch_first": True, "layer_norm_eps": 0.1}
    return kind(D, H, F, **options)


def exact(module):
    """Keep sinusoids in float64, which the module rounds to float32."""
    module.table = sinusoidal_positions(T + S, D)
    return module


def twin_of(parity, make):
    module = parity.module(make())
    twin = reference.from_torch(module)
    assert type(twin).__module__.startswith("tformer.reference.")
    return twin, module


def called(module, *inputs):
    output = module(*inputs)
    return output[0] if isinstance(output, tuple) else output


@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_parts(parity, make):
    twin, module = twin_of(parity, make)
    array, tensor = parity.numbers(B, T, D)
    before = array.copy()
    parity.same(twin(array), module(tensor))
    np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("make", ATTENDING.values(), ids=ATTENDING)
def test_attention_to_everything(parity, make):
    twin, module = twin_of(parity, make)
    array, tensor = parity.numbers(B, T, D)
    of_torch = type(module).__module__.startswith("torch.nn")
    inputs = [tensor] * 3 if isinstance(module, nn.MultiheadAttention) else [tensor]
    parity.same(twin(array), called(module, *inputs))
    if of_torch:
        return
    for shape in ((T, T), (B, 1, 1, T), (B, H, T, T)):
        mask, mask_tensor = parity.mask(*shape)
        output = twin(array, attn_mask=mask)
        parity.same(output, module(tensor, attn_mask=mask_tensor))


@pytest.mark.parametrize("make", CAUSAL.values(), ids=CAUSAL)
def test_attention_to_the_past(parity, make):
    twin, module = twin_of(parity, make)
    array, tensor = parity.numbers(B, T, D)
    output = twin(array, is_causal=True)
    parity.same(output, module(tensor))
    changed = array.copy()
    changed[:, -1] += 9
    np.testing.assert_array_equal(twin(changed, is_causal=True)[:, :-1], output[:, :-1])


@pytest.mark.parametrize(
    ("mask_shape", "with_bias", "is_causal"),
    [(None, False, False), ((T, S), True, False), ((B, 1, 1, S), False, True)],
)
def test_attention_to_a_memory(parity, mask_shape, with_bias, is_causal):
    twin, module = twin_of(parity, ATTENDING["MultiHeadAttention, grouped"])
    inputs = [parity.numbers(B, length, D) for length in (T, S, S)]
    inputs.append(parity.mask(*mask_shape) if mask_shape else (None, None))
    bias = parity.numbers(1, H, 1, S) if with_bias else (None, None)
    arrays, tensors = zip(*inputs, strict=True)
    output = twin(*arrays, bias=bias[0], is_causal=is_causal)
    parity.same(output, module(*tensors, bias=bias[1], is_causal=is_causal))
    parity.same(twin(*arrays[:2]), module(*tensors[:2]))  # the value is the key


def test_the_gate_and_the_norm_after_attention(parity):
    """What the torch code has not: by hand."""
    plain, _ = twin_of(parity, ATTENDING["MultiHeadAttention"])
    x, _ = parity.numbers(B, T, D)
    gate, as_it_is = (
        reference.Linear(parity.numbers(D, D)[0]),
        reference.Linear(np.eye(D)),
    )
    heads = reference.MultiHeadAttention(**{**vars(plain), "out_proj": as_it_is})(x)
    gated = reference.MultiHeadAttention(**{**vars(plain), "gate": gate})
    expected = plain.out_proj(heads / (1 + np.exp(-gate(x))))
    tolerance = {"float32": 1e-5}.get(parity.dtype, 1e-12)
    np.testing.assert_allclose(gated(x), expected, rtol=0, atol=tolerance)

    by_distance, bias = reference.ALiBi(H), parity.numbers(T, T)[0]
    far = reference.MultiHeadAttention(**{**vars(plain), "relative": by_distance})
    both = bias + by_distance(T, T)
    np.testing.assert_array_equal(far(x, bias=bias), plain(x, bias=both))

    norm, other = (reference.RMSNorm(parity.numbers(D)[0]) for _ in range(2))
    parts = plain, np.tanh, norm, other
    memory, _ = parity.numbers(B, S, D)
    output = reference.Block(*parts, placement="output")(x)
    y = x + norm(plain(x))
    np.testing.assert_array_equal(output, y + other(np.tanh(y)))
    cross = {"cross_attention": gated, "cross_norm": other}
    own, hidden = parity.mask(T, T)[0], parity.mask(B, 1, 1, S)[0]
    block = reference.Block(*parts, **cross)
    output = block(x, memory, own, hidden, is_causal=True)
    y = x + plain(norm(x), attn_mask=own, is_causal=True)
    y = y + gated(other(y), memory, attn_mask=hidden)
    np.testing.assert_array_equal(output, y + np.tanh(other(y)))


@pytest.mark.parametrize("cross_attention", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"eps": 0.1},
        {"norm_first": True, "activation": "gelu", "num_kv_heads": 1, "bias": False},
    ],
)
@pytest.mark.parametrize("kind", [tformer.DecoderLayer, tformer.Decoder])
def test_decoder(parity, kind, options, cross_attention):
    sizes = (D, H, F) if kind is tformer.DecoderLayer else (D, H, F, 2)
    make = lambda: kind(*sizes, cross_attention=cross_attention, **options)  # noqa: E731
    twin, module = twin_of(parity, make)
    masks = parity.mask(T, T), parity.mask(B, 1, 1, S), parity.mask(B, H, T, S)
    x, memory = parity.numbers(B, T, D), parity.numbers(B, S, D)
    for own, other, is_causal in (
        (None, None, True),
        (masks[0], masks[1], False),
        (masks[0], masks[2], True),
    ):
        if not cross_attention:
            memory = other = None
        arrays, tensors = zip(
            *(pair or (None, None) for pair in (x, memory, own, other)), strict=True
        )
        output = twin(*arrays, is_causal=is_causal)
        parity.same(output, module(*tensors, is_causal=is_causal))


@pytest.mark.parametrize("norm_first", [False, True])
def test_both_stacks_without_embeddings(parity, norm_first):
    options = {"batch_first": True, "norm_first": norm_first, "activation": "gelu"}
    whole = nn.Transformer(D, H, 2, 3, F, layer_norm_eps=0.1, **options)
    ours = tformer.EncoderDecoder(
        tformer.Encoder(D, H, F, 2, norm_first=norm_first),
        tformer.Decoder(D, H, F, 3, activation="gelu"),
    )
    (src, src_tensor), (x, x_tensor) = (parity.numbers(B, n, D) for n in (S, T))
    for module in (whole, ours):
        twin = reference.from_torch(parity.module(module))
        assert isinstance(twin, reference.EncoderDecoder)
        parity.same(twin(src, x), module(src_tensor, x_tensor))
    drawn = [parity.mask(T, T), parity.mask(S, S), parity.mask(B, 1, 1, S)]
    names = "attn_mask", "src_mask", "memory_mask"
    one, other = (
        {name: pair[i] for name, pair in zip(names, drawn, strict=True)} for i in (0, 1)
    )
    output = twin(src, x, **one, is_causal=True)
    parity.same(output, ours(src_tensor, x_tensor, **other, is_causal=True))


@pytest.mark.parametrize("parts", LANGUAGE_MODELS.values(), ids=LANGUAGE_MODELS)
def test_language_model(parity, parts):
    twin, module = twin_of(parity, lambda: language_model(**parts))
    array, tensor = parity.ids(V, B, T)
    parity.same(twin(array), module(tensor), {"float32": 1e-4}.get(parity.dtype))


@pytest.mark.parametrize("scale", [True, False])
def test_embedding(parity, scale):
    twin, module = twin_of(parity, lambda: tformer.TokenEmbedding(V, D, scale=scale))
    ids, ids_tensor = parity.ids(V, B, T)
    x, x_tensor = parity.numbers(B, T, D)
    parity.same(twin(ids.astype("int32")), module(ids_tensor))
    parity.same(twin.logits(x), module.logits(x_tensor))


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
    twin, module = twin_of(parity, lambda: both_stacks(**choice))
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
    parity.same(twin.encode(src), module.encode(src_tensor))
    parity.same(
        twin.decode(tgt, memory, memory_key_mask=hidden[0][0]),
        module.decode(tgt_tensor, torch.tensor(memory), memory_key_mask=hidden[0][1]),
    )


def test_sinusoids_as_they_come(new_parity):
    """The module's own table is in float32: equal to 1e-6 all the same."""
    parity = new_parity()
    module = parity.module(tformer.SinusoidalPositionalEncoding(D, max_len=2))
    array, tensor = parity.numbers(B, T, D)
    for start in (0, 3):
        twin = reference.from_torch(module)(array, start=start)
        parity.same(twin, module(tensor, start=start), 5e-7)


@pytest.mark.parametrize("start", [0, 3])
def test_positions_from_a_start(parity, start):
    options = {"layout": "halves", "factor": 1.3, "head_dim": 7}
    for make, shape in (
        (lambda: tformer.LearnedPositionalEmbedding(T + 3, Dh), (B, T, Dh)),
        (rotary, (B, H, T, Dh)),
        (lambda: rotary(**options), (B, H, T, 7)),
    ):
        twin, module = twin_of(parity, make)
        array, tensor = parity.numbers(*shape)
        parity.same(twin(array, start=start), module(tensor, start=start))


@pytest.mark.parametrize("shape", [(T,), (B, T)])
def test_rotation_at_positions(parity, shape):
    twin, module = twin_of(parity, rotary)
    array, tensor = parity.numbers(B, H, T, Dh)
    places, torch_places = parity.numbers(*shape)
    parity.same(twin(array, positions=places), module(tensor, positions=torch_places))


@pytest.mark.parametrize(("queries", "keys"), [(T, T), (1, T), (3, T), (T, 3)])
@pytest.mark.parametrize(
    "make",
    [
        lambda: tformer.ALiBi(H),
        lambda: tformer.RelativeBias(H, num_buckets=6, max_distance=5),
        lambda: tformer.RelativeBias(
            H, num_buckets=8, max_distance=9, bidirectional=True
        ),
    ],
)
def test_biases_by_distance(new_parity, make, queries, keys):
    parity = new_parity()
    twin, module = twin_of(parity, make)
    parity.same(twin(queries, keys), module(queries, keys), 1e-12)


@pytest.mark.parametrize("norm_first", [False, True])
def test_residual(parity, norm_first):
    twin, module = twin_of(
        parity, lambda: tformer.Residual(D, norm_first=norm_first, eps=0.1)
    )
    array, tensor = parity.numbers(B, T, D)
    parity.same(twin(array, lambda x: x * x), module(tensor, lambda x: x * x))


def test_the_forms_of_latent_attention(new_parity):
    twin, module = twin_of(parity := new_parity(), CAUSAL["LatentAttention, absorbed"])
    array, tensor = parity.numbers(B, T, D)
    query, kept = twin.queries(array), twin.to_keep(array)
    parity.same(kept, module.to_keep(tensor, 0))
    parity.same(query, module.queries(tensor, 0))
    naive, absorbed = twin.naive_form(query, kept), twin.absorbed_form(query, kept)
    np.testing.assert_allclose(absorbed, naive, rtol=0, atol=1e-13)


def test_the_choice_of_experts(new_parity):
    twin, module = twin_of(parity := new_parity(), PLAIN["Experts, sigmoid"])
    array, tensor = parity.numbers(B, T, D)
    ours, theirs = twin.router(array), module.router(tensor)
    np.testing.assert_array_equal(ours.chosen, theirs.chosen.numpy())
    parity.same(ours.weights, theirs.weights)
    unbiased = reference.route(twin.router.proj(array), 3, scores="sigmoid")
    assert not np.array_equal(ours.chosen, unbiased.chosen)


def test_only_padding_leaves_the_bias_of_the_projection(new_parity):
    twin, _ = twin_of(parity := new_parity(), ATTENDING["MultiHeadAttention"])
    array, _ = parity.numbers(B, T, D)
    mask = reference.length_mask(np.array([T, 0]))
    bias = np.broadcast_to(twin.out_proj.bias, (T, D))
    np.testing.assert_array_equal(twin(array, attn_mask=mask)[1], bias)
