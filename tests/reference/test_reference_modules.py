"""Each twin computes what its torch module does, with the same weights."""

import numpy as np
import pytest
import torch
from torch import nn

import every_module
import tformer
from every_module import LANGUAGE_MODELS, MODULES, language_model
from tformer import nn as parts
from tformer import reference
from tformer.nn.feed_forward import ACTIVATIONS, GATES

B, T, S, D, H, G, Dh, F, V = 2, 5, 7, 12, 6, 2, 4, 11, 13
WITHOUT_TWIN = {"BERT", "EncoderDecoder", "MultiTokenHead", "MultiTokenHeads"}
WITHOUT_TWIN |= {"QuantizedLinear", "ViT"}


@pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)
def test_each_module(exact, kind):
    make, inputs = MODULES[kind]
    if kind.__name__ in WITHOUT_TWIN:
        with pytest.raises(TypeError, match="has no"):
            reference.from_torch(make())
        return
    tensors = (torch.as_tensor(x) for x in inputs(B, T))
    given = [x.double() if x.is_floating_point() else x for x in tensors]
    given = [x if x.ndim else int(x) for x in given]
    exact.same(*exact.twin_of(make()), *given)


ALL = LANGUAGE_MODELS | {
    "other numbers": language_model(
        tie_embeddings=False, bias=False, logit_scale=0.3, score_scale=1.0
    )
}


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_language_models(parity, make):
    twin, module = parity.twin_of(make())
    ids = parity.ids(every_module.V, B, T)
    loose = 1e-4 if parity.dtype == torch.float32 else None
    output = parity.same(twin, module, ids, tolerance=loose)
    ids[:, -1] = (ids[:, -1] + 1) % every_module.V
    np.testing.assert_array_equal(twin(ids.numpy())[:, :-1], output[:, :-1])


def rotary(**options):
    return parts.RotaryEmbedding(parts.rotary_frequencies(Dh), **options)


def latent(layout, **options):
    sizes = {"kv_rank": 7, "head_dim": 5, "value_dim": 3, "q_rank": 8}
    return parts.LatentAttention(D, 3, rotary=rotary(layout=layout), **sizes, **options)


def mixture(**options):
    def expert():
        return parts.GatedFeedForward(D, F, gate="geglu")

    return parts.Experts(D, 6, expert, top_k=3, scale=2.5, **options)


OF_TORCH = {"activation": "gelu", "batch_first": True, "layer_norm_eps": 0.1}
OPTIONS = {  # beside what is in `every_module`
    **{
        f"FeedForward, {name}": lambda name=name: parts.FeedForward(
            D, F, activation=name, bias=name != "relu2"
        )
        for name in ACTIVATIONS
    },
    **{
        f"GatedFeedForward, {gate}": lambda gate=gate: parts.GatedFeedForward(
            D, F, gate=gate, bias=gate == "glu"
        )
        for gate in GATES
    },
    "sinusoids, halves": lambda: parts.SinusoidalPositionalEncoding(D, layout="halves"),
    "learned, offset": lambda: parts.LearnedPositionalEmbedding(T, D, offset=3),
    "Experts, softmax": lambda: mixture(shared=parts.FeedForward(D, F)),
    "Experts, sigmoid": lambda: mixture(scores="sigmoid", renormalise=False),
    "Experts, in groups": lambda: mixture(groups=3, top_groups=2, scores="sigmoid"),
    "Experts, gpt-oss": lambda: parts.Experts(
        D, 6, lambda: parts.ClampedFeedForward(D, F, limit=0.5), bias=True
    ),
    "Experts, a gate of the shared": lambda: mixture(
        shared=parts.FeedForward(D, F),
        shared_gate=nn.Linear(D, 1, bias=False),
        selection_bias=False,
    ),
    "encoder": lambda: tformer.transformer_encoder(
        D, H, F, 2, norm_first=True, activation="gelu", num_kv_heads=G, bias=False
    ),
    "encoder of torch": lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(D, H, F, **OF_TORCH), 2, nn.LayerNorm(D, 0.2), False
    ),
    "scale and a scaled rotation": lambda: parts.MultiHeadAttention(
        D, H, head_dim=Dh, scale=0.9, rotary=rotary(factor=1.3)
    ),
    "latent, absorbed": lambda: latent("pairs", absorbed=True),
    "latent, options": lambda: latent("halves", scale=0.9, eps=0.3),
    "latent, no positions": lambda: parts.LatentAttention(
        D, 3, kv_rank=7, head_dim=5, rotary=None, rotary_dim=4, absorbed=True
    ),
    "linear attention": lambda: parts.LinearAttention(D, H, bias=True, chunk=3),
    "delta rule": lambda: parts.GatedDeltaRule(D, H, chunk=3),
    "delta rule, convolution and gate": lambda: parts.GatedDeltaRule(
        D,
        4,
        num_key_heads=2,
        key_dim=3,
        value_dim=5,
        kernel=3,
        gate=nn.Linear(D, 20, bias=False),
        eps=0.1,
    ),
    "Mamba-2": lambda: parts.Mamba2(
        D, 6, head_dim=5, state_dim=3, groups=3, kernel=3, bias=True, eps=0.1, chunk=2
    ),
    "KDA": lambda: parts.KimiDeltaAttention(
        D, 4, key_dim=3, value_dim=5, rank=2, kernel=3, eps=0.1, chunk=2
    ),
}


@pytest.mark.parametrize(
    "make", every_module.SEQ2SEQ.values(), ids=every_module.SEQ2SEQ
)
def test_models_from_sequence_to_sequence(parity, make):
    twin, module = parity.twin_of(make())
    src, tgt = (parity.ids(every_module.V, B, n) for n in (S, T))
    loose = 1e-4 if parity.dtype == torch.float32 else None
    parity.same(twin, module, src, tgt, tolerance=loose)


@pytest.mark.parametrize("manifold", [True, False])
def test_hyper_connections(parity, manifold):
    module = parts.HyperConnection(
        nn.Linear(D, D), D, norm=parts.RMSNorm(D), streams=3, manifold=manifold
    )
    nn.init.normal_(module.base)
    nn.init.normal_(module.scale)
    parity.same(*parity.twin_of(module), parity.numbers(B, T, 3, D))


@pytest.mark.parametrize("make", OPTIONS.values(), ids=OPTIONS)
def test_options(parity, make):
    parity.same(*parity.twin_of(make()), parity.numbers(B, T, D))


def test_heads_of_torch(exact):
    module = nn.MultiheadAttention(D, H, batch_first=True)
    twin, module = exact.twin_of(module)
    exact.same(twin, lambda x: module(x, x, x)[0], exact.numbers(B, T, D))


@pytest.mark.parametrize("scale", [True, False, 12.5])
def test_embedding(exact, scale):
    twin, module = exact.twin_of(parts.TokenEmbedding(V, D, scale=scale))
    exact.same(twin, module, exact.ids(V, B, T).int())
    exact.same(twin.logits, module.logits, exact.numbers(B, T, D))


@pytest.mark.parametrize("start", [0, 3])
def test_a_part_of_a_head_is_rotated(parity, start):
    options = {"layout": "halves", "factor": 1.3, "head_dim": 7}
    twin, module = parity.twin_of(rotary(**options))
    parity.same(twin, module, parity.numbers(B, H, T, 7), start=start)


def test_rotation_at_positions_of_each_row(parity):
    x, positions = parity.numbers(B, H, T, Dh), parity.numbers(B, T)
    parity.same(*parity.twin_of(rotary()), x, positions=positions)


@pytest.mark.parametrize(("queries", "keys"), [(T, T), (1, T), (T, 3)])
@pytest.mark.parametrize("both", [False, True])
def test_a_learned_bias_by_distance(exact, both, queries, keys):
    options = {"num_buckets": 8, "max_distance": 9, "bidirectional": both}
    exact.same(*exact.twin_of(parts.RelativeBias(H, **options)), queries, keys)


def test_the_choice_of_experts(exact):
    module = exact.module(OPTIONS["Experts, sigmoid"]())
    module.router.selection_bias.copy_(torch.linspace(-1, 1, 6))
    twin, x = reference.from_torch(module), exact.numbers(B, T, D)
    ours = exact.same(twin.router, module.router, x)
    unbiased = reference.route(twin.router.proj(x.numpy()), 3, scores="sigmoid")
    assert not np.array_equal(ours.chosen, unbiased.chosen)


def test_only_padding_leaves_the_bias_of_the_projection(exact):
    twin, _ = exact.twin_of(tformer.MultiHeadAttention(D, H))
    mask = reference.length_mask(np.array([T, 0]))
    output = twin(exact.numbers(B, T, D).numpy(), attn_mask=mask)
    np.testing.assert_array_equal(output[1], np.tile(twin.out_proj.bias, (T, 1)))


@pytest.mark.parametrize("cross_attention", [True, False])
def test_masks_of_a_decoder(exact, cross_attention):
    options = {"cross_attention": cross_attention, "num_kv_heads": 1, "eps": 0.1}
    module = tformer.transformer_decoder(D, H, F, 2, **options)
    both = exact.twin_of(module)
    x, memory = exact.numbers(B, T, D), exact.numbers(B, S, D)
    own, hidden = exact.mask(T, T), exact.mask(B, 1, 1, S)
    memory, hidden = (memory, hidden) if cross_attention else (None, None)
    exact.same(*both, x, memory, is_causal=True)
    exact.same(*both, x, memory, own, hidden)


BOTH_STACKS = {
    "by default": {},
    "learned": {"positions": "learned", "tgt_vocab_size": 19, "tie_embeddings": False},
    "tied targets": {"tgt_vocab_size": 19},
    "pre-norm": {"norm_first": True, "activation": "gelu", "eps": 0.01},
    "grouped": {"num_kv_heads": 1, "bias": False, "pad_id": None, "dropout": 0.5},
}


@pytest.mark.parametrize("choice", BOTH_STACKS.values(), ids=BOTH_STACKS)
def test_transformer(parity, choice):
    sizes = {"vocab_size": V, "d_model": D, "num_heads": 3, "d_ff": F, "max_len": T + S}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 3}
    config = tformer.TransformerConfig(**{**sizes, **layers, **choice})
    twin, module = parity.twin_of(tformer.Transformer(config))
    src, tgt = parity.ids(V, B, S), parity.ids(V, B, T)
    src[:, -2:] = 0  # padding
    plain = parity.same(twin, module, src, tgt)
    masks = {"src_key_mask": parity.mask(B, S), "tgt_key_mask": parity.mask(B, T)}
    masked = parity.same(twin, module, src, tgt, **masks)
    assert np.abs(masked - plain).max() > 1e-3
    hidden = masks["src_key_mask"]
    memory = parity.same(twin.encode, module.encode, src, src_key_mask=hidden)
    memory = torch.from_numpy(memory)
    parity.same(twin.decode, module.decode, tgt, memory, memory_key_mask=hidden)
