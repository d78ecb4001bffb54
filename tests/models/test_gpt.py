"""GPT: known sizes, parity with torch's own layers, causality, every option."""

import copy
import math
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from small_models import SIZES, V, small_gpt
from tformer import GPT, Decoder, GPTConfig, record_weights
from tformer.interop import from_torch

B, T = 2, 7
D, H, N = (SIZES[name] for name in ("d_model", "num_heads", "num_layers"))


@pytest.fixture
def ids():
    return torch.randint(V, (B, T))


class TestKnownNumbers:
    @pytest.mark.parametrize(
        ("preset", "parameters"),
        [
            ("tiny", 120_576),
            ("shakespeare_cpu", 804_096),
            ("shakespeare", 10_745_088),
            ("gpt2", 124_439_808),
            ("gpt2_medium", 354_823_168),
            ("gpt2_large", 774_030_080),
            ("gpt2_xl", 1_557_611_200),
        ],
    )
    def test_parameters(self, preset, parameters):
        with torch.device("meta"):
            model = GPT(getattr(GPTConfig, preset)())
        assert sum(p.numel() for p in model.parameters()) == parameters

    def test_choices(self):
        small = GPTConfig.gpt2()
        assert small == GPTConfig()
        assert (small.vocab_size, small.max_len) == (50_257, 1024)
        assert (small.dropout, small.eps, small.activation) == (0.1, 1e-5, "gelu_tanh")
        heads = [
            getattr(GPTConfig, name)().d_model // getattr(GPTConfig, name)().num_heads
            for name in ("gpt2", "gpt2_medium", "gpt2_large", "gpt2_xl", "shakespeare")
        ]
        assert heads == [64] * 5
        cpu, gpu = GPTConfig.shakespeare_cpu(), GPTConfig.shakespeare()
        assert (cpu.max_len, cpu.dropout, cpu.bias) == (64, 0.0, False)
        assert (gpu.max_len, gpu.dropout, gpu.bias) == (256, 0.2, False)
        assert GPTConfig.tiny().dropout == 0.0

    @pytest.mark.parametrize("tie_embeddings", [False, True])
    @pytest.mark.parametrize("vocab_size", [65, 50_257])
    def test_the_first_loss_is_that_of_guessing(self, vocab_size, tie_embeddings):
        model = GPT(
            GPTConfig.tiny(
                vocab_size=vocab_size, d_model=384, tie_embeddings=tie_embeddings
            )
        )
        ids, targets = torch.randint(vocab_size, (2, 2, 64))
        loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).item()
        # The logits have variance D · 0.02², half of which the loss is higher.
        assert loss == pytest.approx(math.log(vocab_size) + 384 * 0.02**2 / 2, abs=0.06)


def test_first_weights():
    model = small_gpt(d_model=150, vocab_size=501, max_len=211, num_layers=8)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert (parameter == (0 if name.endswith("bias") else 1)).all(), name
            continue
        last = name.endswith(("out_proj.weight", "linear2.weight"))
        wanted = 0.02 / 4 if last else 0.02  # √(2 · 8) = 4
        assert parameter.std().item() == pytest.approx(wanted, rel=0.07), name
        assert abs(parameter.mean().item()) < wanted / 10, name
    before = {name: p.clone() for name, p in model.named_parameters()}
    model.reset_parameters()
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]) == (parameter.ndim == 1), name


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("tie_embeddings", [False, True])
@pytest.mark.usefixtures("float64")
def test_equals_torchs_encoder_between_two_embeddings(
    randomised, ids, bias, tie_embeddings
):
    layer = nn.TransformerEncoderLayer(
        D, H, 23, 0.0, nn.GELU("tanh"), 1e-3, True, True, bias=bias
    )
    theirs = nn.TransformerEncoder(
        layer, N, nn.LayerNorm(D, 1e-3, bias=bias), enable_nested_tensor=False
    )
    theirs = randomised(theirs)
    model = small_gpt(bias=bias, tie_embeddings=tie_embeddings, eps=1e-3)
    model.stack.load_state_dict(from_torch(theirs).state_dict())
    tokens, positions = model.embedding.weight, model.positions.weight
    mask = nn.Transformer.generate_square_subsequent_mask(T)
    x = theirs(tokens[ids] + positions[:T], mask)
    wanted = x @ (tokens if tie_embeddings else model.output.weight).T
    assert wanted.shape == (B, T, V)
    assert_close(model(ids), wanted)
    gradients = [
        torch.autograd.grad(y.square().sum(), (tokens, positions))
        for y in (model(ids), wanted)
    ]
    assert_close(*gradients)


def test_the_parameters_have_the_names_of_every_saved_model():
    """A GPT that was saved when its stack was an encoder loads into the decoder."""
    model = small_gpt(num_layers=1)
    assert isinstance(model.stack, Decoder)
    linear = [f"self_attn.{x}_proj" for x in ("q", "k", "v", "out")]
    linear += [f"feed_forward.linear{i}" for i in (1, 2)]
    norms = [f"{part}_residual.norm" for part in ("self_attn", "feed_forward")]
    layer = [f"stack.layers.0.{part}" for part in linear + norms]
    both = [
        f"{part}.{x}" for part in [*layer, "stack.norm"] for x in ("weight", "bias")
    ]
    wanted = ["embedding.weight", "positions.weight", *both]
    assert list(model.state_dict()) == wanted


@pytest.mark.parametrize("at", range(T))
def test_the_future_leaves_the_past_alone(ids, at):
    model = small_gpt().eval()
    later = ids.clone()
    later[:, at] = (later[:, at] + 1) % V
    before, after = model(ids), model(later)
    assert torch.equal(before[:, :at], after[:, :at])
    for t in range(at, T):
        assert not torch.allclose(before[:, t], after[:, t])
    assert_close(model(ids[:, :at + 1]), before[:, :at + 1])  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"num_kv_heads": 1},
        {"num_heads": 5},
        {"num_layers": 3},
        {"d_ff": 29},
        {"d_ff": None},
        {"d_model": 18},
        {"dropout": 0.5},
        {"activation": "relu"},
        {"activation": "gelu"},
        {"eps": 0.5},
        {"bias": False},
        {"tie_embeddings": False},
        {"max_len": 12},
        {"vocab_size": V + 1},
    ],
)
def test_every_option_changes_the_output(ids, changes):
    outputs = []
    for options in ({}, changes):
        torch.manual_seed(1)
        model = small_gpt(**options)
        with torch.no_grad():
            for p in model.parameters():  # biases too, larger than at first
                p.copy_(torch.randn(p.shape) / 4 + (p.ndim == 1))
        outputs.append(model(ids)[..., :V])
    assert (outputs[0] - outputs[1]).abs().max() > 1e-5


def test_every_option_reaches_its_place():
    model = small_gpt(dropout=0.25, num_kv_heads=1, eps=0.5, bias=False, d_ff=None)
    assert model.dropout.p == 0.25
    assert model.stack.norm.eps == 0.5
    assert len(model.stack.layers) == N
    for layer in model.stack.layers:
        assert layer.self_attn.num_kv_heads == 1
        assert layer.self_attn.num_heads == H
        assert layer.self_attn.dropout == 0.25
        assert layer.feed_forward.activation == "gelu_tanh"
        assert layer.feed_forward.dropout.p == 0.0
        assert layer.feed_forward.linear1.out_features == 4 * D
        for residual in (layer.self_attn_residual, layer.feed_forward_residual):
            assert residual.norm_first
            assert residual.norm.eps == 0.5
            assert residual.dropout.p == 0.25
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())


def test_tied_and_untied(ids):
    tied, untied = small_gpt(), small_gpt(tie_embeddings=False)
    assert tied.output is None
    assert isinstance(untied.output, nn.Linear)
    assert untied.output.bias is None
    nn.init.zeros_(untied.output.weight)
    assert (untied(ids) == 0).all()
    tied(ids).sum().backward()
    assert (tied.embedding.weight.grad.abs().sum(dim=1) > 0).all()


@pytest.mark.parametrize("num_kv_heads", [None, 1])
def test_weights_of_every_layer(ids, num_kv_heads):
    model = small_gpt(num_kv_heads=num_kv_heads).eval()
    with record_weights(model) as recorded:
        logits = model(ids)
    assert_close(logits, model(ids))
    names = [f"stack.layers.{i}.self_attn" for i in range(N)]
    assert list(recorded.by_name()) == names
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    for layer in recorded.values():
        assert layer.shape == (B, H, T, T)
        assert (layer[..., later] == 0).all()
        assert_close(layer.sum(dim=-1), torch.ones(B, H, T))


def test_dropout_is_for_training(ids):
    model = small_gpt(dropout=0.5)
    assert not torch.allclose(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))


def test_copies_compute_the_same(ids):
    model, other = small_gpt(), small_gpt()
    assert not torch.allclose(other(ids), model(ids))
    other.load_state_dict(model.state_dict())
    for twin in (other, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(ids), model(ids))


def test_learns_to_count():
    """Loss nearly 0 on a text in which the next token is certain."""
    torch.manual_seed(0)
    model = small_gpt(max_len=16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(120):
        starts = torch.randint(V, (32, 1))
        text = (starts + torch.arange(9)) % V
        logits = model(text[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.1
