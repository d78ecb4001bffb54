import copy
from functools import partial

import pytest
import torch
import torch.nn.functional as functional
from torch import nn
from torch.testing import assert_close

import tformer
from tformer import MultiHeadAttention, transformer_encoder
from tformer.interop import from_torch, to_torch
from tformer.models.encoder_decoder import EncoderDecoder

B, T, S, H, D, F = 2, 5, 7, 3, 21, 13

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

OURS = {
    nn.MultiheadAttention: "MultiHeadAttention",
    nn.TransformerEncoderLayer: "Block",
    nn.TransformerEncoder: "Encoder",
    nn.TransformerDecoderLayer: "Block",
    nn.TransformerDecoder: "Decoder",
    nn.Transformer: "EncoderDecoder",
}
KINDS = [kind.__name__ for kind in OURS]


def build(kind, **options):
    """Make a module of torch's, with a norm at the end of a stack."""
    if kind == "MultiheadAttention":
        names = {"dropout", "bias", "batch_first"}
        return nn.MultiheadAttention(
            D, H, **{k: v for k, v in options.items() if k in names}
        )
    if kind == "Transformer":
        return nn.Transformer(D, H, 1, 2, F, **options)
    layer = getattr(nn, f"{kind.removesuffix('Layer')}Layer")(D, H, F, **options)
    if kind.endswith("Layer"):
        return layer
    norm = nn.LayerNorm(D, bias=options.get("bias", True))
    return getattr(nn, kind)(layer, 2, norm)


def call(module, kind, x, memory):
    """Give a module, theirs or ours, the inputs of its kind."""
    if kind == "MultiheadAttention":
        output = module(x, memory, memory)
        return output[0] if isinstance(output, tuple) else output
    if kind == "Transformer":
        return module(memory, x)
    return module(x, memory) if "Decoder" in kind else module(x)


@pytest.fixture
def inputs(float64):
    return torch.randn(B, T, D), torch.randn(B, S, D)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(kind, bias, norm_first, randomised, inputs):
    options = {"bias": bias, "norm_first": norm_first, "dropout": 0.25}
    if kind != "MultiheadAttention":
        options |= {"activation": "gelu", "layer_norm_eps": 0.1}
    theirs = randomised(build(kind, batch_first=True, **options)).eval()
    ours = from_torch(theirs)
    assert type(ours).__name__ == OURS[getattr(nn, kind)]
    assert_close(call(ours, kind, *inputs), call(theirs, kind, *inputs))

    back = to_torch(ours)
    assert type(back) is type(theirs)
    assert_close(call(back, kind, *inputs), call(theirs, kind, *inputs))
    weights = back.state_dict()
    assert list(weights) == list(theirs.state_dict())
    for name, weight in theirs.state_dict().items():
        assert torch.equal(weights[name], weight), name
    assert repr(back) == repr(theirs)
    if kind == "Transformer":
        assert (back.d_model, back.nhead, back.batch_first) == (D, H, True)
    again = from_torch(back).state_dict()
    for name, weight in ours.state_dict().items():
        assert torch.equal(again[name], weight), name


@pytest.mark.parametrize("kind", KINDS)
def test_ours_are_batch_first_whatever_theirs_are(kind, inputs):
    theirs = build(kind, batch_first=False).eval()
    turned = [x.transpose(0, 1) for x in inputs]
    wanted = call(theirs, kind, *turned).transpose(0, 1)
    assert_close(call(from_torch(theirs), kind, *inputs), wanted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("convert", [from_torch, lambda m: to_torch(from_torch(m))])
def test_is_a_copy_that_keeps_dtype_and_mode(kind, convert):
    theirs = build(kind, dropout=0.25).to(torch.bfloat16)
    before = copy.deepcopy(theirs.state_dict())
    state = torch.random.get_rng_state()
    new = convert(theirs)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(module.training for module in new.modules())
    assert not any(module.training for module in convert(theirs.eval()).modules())
    assert convert(theirs.to("meta")).state_dict().popitem()[1].is_meta
    for parameter in new.parameters():
        assert parameter.dtype == torch.bfloat16
        assert parameter.requires_grad
        nn.init.zeros_(parameter)
    theirs = build(kind).to(torch.bfloat16)
    theirs.load_state_dict(before)
    assert any(parameter.any() for parameter in theirs.parameters())


@pytest.mark.parametrize("convert", [from_torch, lambda m: to_torch(from_torch(m))])
def test_what_is_frozen_stays_frozen(convert):
    theirs = build("TransformerDecoderLayer")
    theirs.self_attn.requires_grad_(False)
    theirs.norm2.requires_grad_(False)
    theirs.linear1.bias.requires_grad_(False)
    for context in (torch.no_grad(), torch.enable_grad()):
        with context:
            new = convert(theirs)
        frozen = sum(p.numel() for p in new.parameters() if not p.requires_grad)
        assert frozen == 4 * (D * D + D) + 2 * D + F


def test_dropout_inside_the_feed_forward_network_may_be_another():
    theirs = nn.TransformerDecoderLayer(D, H, F, dropout=0.25)
    theirs.dropout.p = 0.5
    ours = from_torch(theirs)
    assert (ours.dropout.p, ours.feed_forward.dropout.p) == (0.25, 0.5)
    assert ours.attention.dropout == ours.cross_attention.dropout == 0.25
    assert repr(to_torch(ours)) == repr(theirs)


@pytest.mark.parametrize(
    ("activation", "name"),
    [
        ("relu", "relu"),
        (functional.relu, "relu"),
        (torch.relu, "relu"),
        (nn.ReLU(), "relu"),
        ("gelu", "gelu"),
        (functional.gelu, "gelu"),
        (nn.GELU(), "gelu"),
        (nn.GELU("tanh"), "gelu_tanh"),
        (partial(functional.gelu, approximate="tanh"), "gelu_tanh"),
        (partial(functional.gelu, approximate="none"), "gelu"),
    ],
)
def test_activations(activation, name, inputs):
    theirs = nn.TransformerEncoderLayer(D, H, F, 0.0, activation, batch_first=True)
    ours = from_torch(theirs)
    assert ours.feed_forward.activation == name
    assert_close(ours(inputs[0]), theirs(inputs[0]))
    back = to_torch(ours).eval()
    assert_close(back(inputs[0]), ours(inputs[0]))
    assert from_torch(back).feed_forward.activation == name


def test_layers_that_differ(inputs):
    theirs = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(D, H, F, batch_first=True), 2
    )
    theirs.layers[1] = nn.TransformerEncoderLayer(
        D, 7, F + 4, activation="gelu", norm_first=True, batch_first=True, bias=False
    )
    theirs.eval()
    ours = from_torch(theirs)
    assert ours.norm is None
    assert_close(ours(inputs[0]), theirs(inputs[0]))
    assert_close(to_torch(ours)(inputs[0]), theirs(inputs[0]))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_groups_become_full_heads(groups, bias, randomised, inputs):
    ours = randomised(MultiHeadAttention(4 * 7, 4, num_kv_heads=groups, bias=bias))
    theirs = to_torch(ours)
    x, memory = torch.randn(B, T, 28), torch.randn(B, S, 28)
    with tformer.record_weights(ours) as weights:
        wanted = ours(x, memory)
    output, theirs_weights = theirs(x, memory, memory, average_attn_weights=False)
    assert_close(output, wanted)
    assert_close(theirs_weights, weights[ours])
    assert theirs.in_proj_weight.shape == (3 * 28, 28)


def test_a_bias_in_some_projections_only(randomised, inputs):
    ours = randomised(MultiHeadAttention(D, H))
    ours.k_proj.bias = ours.out_proj.bias = None
    x, memory = inputs
    assert_close(to_torch(ours)(x, memory, memory)[0], ours(x, memory))


@torch.no_grad()
def test_padding_keeps_its_numbers():
    """A nested tensor, torch's default for an even number of heads, has zeros there."""
    theirs = to_torch(transformer_encoder(20, 2, F, 2).eval())
    key_mask = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    x = torch.randn(B, T, 20)
    output = theirs(x, src_key_padding_mask=~key_mask)
    assert (output[0, 3:] != 0).all()
    assert_close(from_torch(theirs)(x, key_mask[:, None, None]), output)


def test_stacks_of_a_transformer(inputs):
    model = tformer.Transformer(
        tformer.TransformerConfig.tiny(vocab_size=11, d_model=20, num_heads=2)
    ).eval()
    theirs = to_torch(EncoderDecoder(model.encoder, model.decoder)).eval()
    src, tgt = torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5]])
    mask = nn.Transformer.generate_square_subsequent_mask(2)
    output = theirs(model.embed_source(src), model.embed_target(tgt), tgt_mask=mask)
    assert_close(model.logits(output), model(src, tgt))
