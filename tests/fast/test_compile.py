"""Every module of the package is one graph, and runs in double and mixed precision."""

import ast
import importlib
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import tformer
from tformer import (
    BERT,
    GPT,
    ALiBi,
    BERTConfig,
    Block,
    CausalLM,
    CausalLMConfig,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    Experts,
    FeedForward,
    GatedDeltaRule,
    GatedFeedForward,
    GPTConfig,
    LatentAttention,
    LayerNorm,
    LearnedPositionalEmbedding,
    LinearAttention,
    LoRALinear,
    MultiHeadAttention,
    MultiTokenHeads,
    RelativeBias,
    RMSNorm,
    RotaryPositions,
    SelfAttention,
    SinusoidalPositionalEncoding,
    TokenEmbedding,
    Transformer,
    TransformerConfig,
    length_mask,
    rotary_frequencies,
    scaled_dot_product_attention,
)
from tformer.fast.dropout import Dropout
from tformer.fast.linear import Linear
from tformer.models.multi_token import MultiTokenHead
from tformer.nn.quantized import QuantizedLinear
from tformer.nn.residual import Residual
from tformer.nn.router import Router

PACKAGE = Path(tformer.__file__).parent
D, H, F, V = 16, 4, 24, 11


def rotary(width=D // H):
    return RotaryPositions(rotary_frequencies(width))


def vectors(B, T):
    return (torch.randn(B, T, D),)


def two_vectors(B, T):
    return tuple(torch.randn(2, B, T, D))


def vectors_and_mask(B, T):
    lengths = torch.arange(B) % T + 1
    return torch.randn(B, T, D), length_mask(lengths, T)


def with_memory(B, T):
    return torch.randn(B, T, D), torch.randn(B, T + 2, D)


def queries_and_memory(B, T):
    return with_memory(B, T)


def heads(B, T):
    return (torch.randn(B, H, T, D // H),)


def ids(B, T):
    return (torch.randint(1, V, (B, T)),)


def two_ids(B, T):
    return torch.randint(1, V, (B, T)), torch.randint(1, V, (B, T + 1))


def lengths(B, T):
    return (T, T)


SMALL = {"vocab_size": V, "d_model": D, "num_heads": H, "num_layers": 1, "max_len": 20}
MODULES = {
    Linear: (lambda: Linear(D, F), vectors),
    Dropout: (lambda: Dropout(0.1), vectors),
    QuantizedLinear: (lambda: QuantizedLinear(nn.Linear(D, F)), vectors),
    LayerNorm: (lambda: LayerNorm(D), vectors),
    RMSNorm: (lambda: RMSNorm(D), vectors),
    FeedForward: (lambda: FeedForward(D, F, dropout=0.1), vectors),
    GatedFeedForward: (lambda: GatedFeedForward(D, F, dropout=0.1), vectors),
    Router: (lambda: Router(D, 4), vectors),
    Experts: (lambda: Experts(D, 4, lambda: FeedForward(D, F)), vectors),
    TokenEmbedding: (lambda: TokenEmbedding(V, D), ids),
    SinusoidalPositionalEncoding: (lambda: SinusoidalPositionalEncoding(D), vectors),
    LearnedPositionalEmbedding: (lambda: LearnedPositionalEmbedding(20, D), vectors),
    RotaryPositions: (rotary, heads),
    ALiBi: (lambda: ALiBi(H), lengths),
    RelativeBias: (lambda: RelativeBias(H), lengths),
    MultiHeadAttention: (
        lambda: MultiHeadAttention(D, H, num_kv_heads=2, dropout=0.1),
        queries_and_memory,
    ),
    SelfAttention: (
        lambda: SelfAttention(
            D, H, rotary=rotary(), qk_norm=RMSNorm, window=3, sinks=True, dropout=0.1
        ),
        vectors,
    ),
    LatentAttention: (
        lambda: LatentAttention(D, H, kv_rank=6, head_dim=4, rotary=rotary()),
        vectors,
    ),
    LinearAttention: (lambda: LinearAttention(D, H), vectors),
    GatedDeltaRule: (lambda: GatedDeltaRule(D, H), vectors),
    LoRALinear: (lambda: LoRALinear(nn.Linear(D, F), 2), vectors),
    MultiTokenHead: (lambda: MultiTokenHead(D, F), two_vectors),
    MultiTokenHeads: (lambda: BesideATrunk(), ids),
    Residual: (lambda: AroundNothing(), vectors),
    EncoderLayer: (lambda: EncoderLayer(D, H, F, dropout=0.1), vectors_and_mask),
    Encoder: (lambda: Encoder(D, H, F, 2, dropout=0.1), vectors_and_mask),
    DecoderLayer: (lambda: DecoderLayer(D, H, F, dropout=0.1), with_memory),
    Decoder: (lambda: Decoder(D, H, F, 2, norm_first=True), with_memory),
    Block: (
        lambda: Block(SelfAttention(D, H), GatedFeedForward(D, F), partial(RMSNorm, D)),
        vectors,
    ),
    GPT: (lambda: GPT(GPTConfig.tiny(**SMALL)), ids),
    BERT: (lambda: BERT(BERTConfig.tiny(**SMALL)), ids),
    CausalLM: (lambda: CausalLM(CausalLMConfig.tiny(**SMALL)), ids),
    Transformer: (
        lambda: Transformer(
            TransformerConfig.tiny(vocab_size=V, d_model=D, num_heads=H, d_ff=F)
        ),
        two_ids,
    ),
}


class AroundNothing(nn.Module):
    def __init__(self):
        super().__init__()
        self.residual = Residual(D, dropout=0.1, norm_first=True)

    def forward(self, x):
        return self.residual(x, torch.tanh)


class BesideATrunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.heads = GPT(GPTConfig.tiny(**SMALL)), MultiTokenHeads(D, 2)

    def forward(self, ids):
        return torch.cat(self.heads(self.trunk, ids), dim=1)


everywhere = pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)


def tensors(output):
    """Flatten what a module returns."""
    return output if isinstance(output, torch.Tensor) else list(output)


def test_every_module_of_the_package_is_here():
    found = set()
    for folder in ("nn", "models", "fast"):
        for path in sorted((PACKAGE / folder).glob("*.py")):
            module = importlib.import_module(f"tformer.{folder}.{path.stem}")
            for node in ast.parse(path.read_text()).body:
                kind = getattr(module, getattr(node, "name", ""), None)
                if isinstance(kind, type) and issubclass(kind, nn.Module):
                    found.add(kind)
    missing = {
        kind.__name__
        for kind in found - set(MODULES)
        if not kind.__name__.startswith("_")
    }
    assert missing <= {"EncoderDecoder"}  # what Transformer is made of


def check_one_graph(kind, train, sizes):
    """`fullgraph` makes an error of each place where Python would have to step in."""
    torch.manual_seed(0)
    make, draw = MODULES[kind]
    module = make().train(train)
    torch.compiler.reset()
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for size in sizes:
        inputs = draw(*size)
        torch.manual_seed(1)
        output = compiled(*inputs)
        torch.manual_seed(1)
        assert_close(tensors(output), tensors(module(*inputs)))


@everywhere
def test_one_graph_in_training(kind):
    check_one_graph(kind, True, [(2, 5)])


@pytest.mark.nightly
@everywhere
def test_one_graph_of_any_size(kind):
    check_one_graph(kind, False, [(2, 5), (3, 7)])


@everywhere
def test_double_precision_and_autocast(kind):
    make, draw = MODULES[kind]
    module, inputs = make().eval(), draw(2, 5)
    single = tensors(module(*inputs))
    wide = [
        x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
        for x in inputs
    ]
    with torch.autocast("cpu", torch.bfloat16):
        half = tensors(module(*inputs))
    if kind is Router:
        return
    assert half.isfinite().all()
    assert_close(half.float(), single, atol=0.2, rtol=0.1)
    double = module.double()(*wide)
    assert double.dtype == torch.float64
    assert_close(double.float(), single, atol=1e-4, rtol=1e-3)


def test_vmap_over_attention():
    four = (*torch.randn(3, 5, 2, H, 6, 4), torch.rand(5, 6, 6) < 0.7)
    for options in ({}, {"is_causal": True}, {"softcap": 2.0}):
        attend = partial(scaled_dot_product_attention, **options)
        assert_close(
            torch.func.vmap(attend)(*four),
            torch.stack([attend(*each) for each in zip(*four, strict=True)]),
        )
