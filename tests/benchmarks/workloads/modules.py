"""Multi-head attention, and the encoder of 6 layers: 8 heads, width 512, inner 2048."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers import peer
from benchmarks.peers.plain import Attention, Stack
from benchmarks.workload import (
    Contender,
    Workload,
    dtype_of,
    ours,
    plain,
    without_gradients,
)
from tformer import causal_mask, length_mask, record_weights
from tformer.interop import from_torch

D, H, INNER, LAYERS = 512, 8, 2048, 6
TORCH = "nn.TransformerEncoder"
PADDED = "lengths 25 to 100 %"


class OneProduct(nn.Module):
    """Queries, keys and values by one product, then torch's kernel, as in nanoGPT."""

    def __init__(self, theirs: nn.MultiheadAttention) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), theirs.out_proj
        self.qkv.load_state_dict(
            {"weight": theirs.in_proj_weight, "bias": theirs.in_proj_bias}
        )

    def forward(self, x: Tensor, is_causal: bool) -> Tensor:
        B, T, _ = x.shape
        q, k, v = (
            part.view(B, T, H, D // H).transpose(1, 2)
            for part in self.qkv(x).split(D, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        return self.out(y.transpose(1, 2).reshape(B, T, D))


def heads(B: int, T: int, dtype: str, train: bool) -> Sequence[Contender]:
    """Build self-attention: with `train` causal, forward and backward."""
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    mine, one, tutorial = from_torch(theirs), OneProduct(theirs), Attention(D, H)
    tutorial.load_state_dict(mine.state_dict())
    for module in (theirs, mine, one, tutorial):
        module.to(dtype_of(dtype)).train(train)
    x = torch.randn(B, T, D, dtype=dtype_of(dtype))
    allowed = causal_mask(T) if train else None
    hidden = None if allowed is None else ~allowed  # torch's True means: may not
    way = partial(_train, x, torch.randn_like(x)) if train else partial(_eval, x)
    masks = {"attn_mask": hidden, "is_causal": train, "need_weights": False}
    torchs = way(theirs, lambda x: theirs(x, x, x, **masks)[0])
    return [
        ours(way(mine, lambda x: mine(x, is_causal=train))),
        Contender("nn.MultiheadAttention", torchs),
        plain("one product and the kernel", way(one, lambda x: one(x, train))),
        plain("as in tutorials", way(tutorial, lambda x: tutorial(x, x, allowed))),
    ]


def _eval(x: Tensor, module: nn.Module, call: Any) -> Callable[[], Tensor]:
    return without_gradients(lambda: call(x))


def _train(x: Tensor, grad: Tensor, module: nn.Module, call: Any) -> Any:
    """Return a forward and backward pass, which gives output and input's gradient."""

    def run() -> tuple[Tensor, Tensor]:
        leaf = x.detach().requires_grad_()
        module.zero_grad(set_to_none=True)
        out = call(leaf)
        out.backward(grad)
        return out.detach(), leaf.grad

    return run


def heads_with_weights() -> Sequence[Contender]:
    """Build self-attention of which the weights are wanted too."""
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(D, H, batch_first=True).eval()
    mine = from_torch(theirs)
    x = torch.randn(8, 256, D)

    def recorded() -> tuple[Tensor, Tensor]:
        with record_weights(mine) as weights:
            return mine(x), weights[mine]

    def torchs() -> tuple[Tensor, Tensor]:
        return theirs(x, x, x, need_weights=True, average_attn_weights=False)

    return [
        ours(without_gradients(recorded)),
        Contender("nn.MultiheadAttention", without_gradients(torchs)),
    ]


def encoder(B: int, T: int, dtype: str, padded: bool) -> Sequence[Contender]:
    """Build the encoder; padded sequences have 25 to 100 % of T."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(D, H, INNER, dropout=0.0, batch_first=True)
    theirs = nn.TransformerEncoder(layer, LAYERS).eval()
    mine = from_torch(theirs)
    tutorial = Stack((D, H, INNER), LAYERS).eval()
    tutorial.load_state_dict(mine.state_dict())
    x = torch.randn(B, T, D, dtype=dtype_of(dtype))
    lengths = torch.linspace(T / 4, T, B).long()
    mask = length_mask(lengths, T) if padded else None  # (B, 1, 1, T)
    keys = None if mask is None else mask[:, 0, 0]
    real = torch.ones(B, T, dtype=torch.bool) if keys is None else keys

    hidden = None if keys is None else ~keys  # torch's True means: may not
    calls: list[tuple[str, nn.Module, Any]] = [
        ("tformer", mine, lambda: mine(x, key_mask=keys)),
        (TORCH, theirs, lambda: theirs(x, src_key_padding_mask=hidden)),
        ("as in tutorials", tutorial, lambda: tutorial(x, mask)),
    ]
    if huggingface := peer("huggingface"):
        bert = huggingface.bert_encoder(mine).eval()
        call = lambda: bert(x, mask).last_hidden_state  # noqa: E731
        calls.append(("Hugging Face BERT", bert, call))
    if x_transformers := peer("x_transformers"):
        other = x_transformers.encoder(mine).eval()
        calls.append(("x-transformers", other, lambda: other(x, mask=keys)))
    found = []
    for name, module, call in calls:
        module.to(dtype_of(dtype))
        run = without_gradients(call)
        role = {"tformer": "tformer", "as in tutorials": "plain"}.get(name, "peer")
        # What stands at padding is nobody's: only real positions must agree.
        at_real = partial(lambda run: run()[real], run)
        found.append(Contender(name, run, role, output=at_real))
    return found


HEADS, ENCODER = "multi-head attention", "encoder"
ROWS = (  # name, size, what makes it
    (f"{HEADS}, eval", "16 × 128", partial(heads, 16, 128, train=False)),
    (f"{HEADS}, eval", "1 × 32", partial(heads, 1, 32, train=False)),
    (f"{HEADS}, causal, train", "4 × 512", partial(heads, 4, 512, train=True)),
    (ENCODER, "16 × 128", partial(encoder, 16, 128, padded=False)),
    (f"{ENCODER}, {PADDED}", "16 × 128", partial(encoder, 16, 128, padded=True)),
    (f"{ENCODER}, one short sequence", "1 × 32", partial(encoder, 1, 32, padded=False)),
)


def workloads() -> list[Workload]:
    def rows(some: slice) -> list[Workload]:
        return [
            Workload(
                "modules",
                name,
                size,
                partial(make, dtype=dtype),
                dtype,
                short=dtype == "float32" and name.startswith(f"{ENCODER}, "),
            )
            for dtype in ("float32", "bfloat16")
            for name, size, make in ROWS[some]
        ]

    name = f"{HEADS} with weights"
    with_weights = Workload("modules", name, "8 × 256", heads_with_weights)
    return [*rows(slice(3)), with_weights, *rows(slice(3, 6))]
