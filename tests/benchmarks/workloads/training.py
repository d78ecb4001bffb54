"""Training steps: forward, backward, AdamW; one batch, one set of first weights."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers import peer
from benchmarks.peers.nano import NanoGPT
from benchmarks.peers.plain import PlainTransformer, sinusoids
from benchmarks.peers.torchs import TorchTransformer
from benchmarks.workload import OURS, PEER, PLAIN, Contender, Workload, dtype_of
from tformer import Transformer, TransformerConfig, label_smoothed_cross_entropy
from tformer.interop import to_torch
from tformer.models.encoder_decoder import EncoderDecoder
from tformer.models.families import gpt2

Call = Callable[[], Tensor]  # makes the logits


def our_loss(logits: Tensor, targets: Tensor) -> Tensor:
    return label_smoothed_cross_entropy(logits, targets, smoothing=0.0)


def their_loss(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def step_of(
    name: str, role: str, model: nn.Module, call: Call, embedding: Any, targets, dtype
) -> Contender:
    """Make a contender whose loss, and the embedding's gradient, must agree first."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    loss_of = our_loss if role == OURS else their_loss
    model.train()

    def backward() -> Tensor:
        half = dtype != "float32"
        with torch.autocast(embedding.device.type, dtype_of(dtype), enabled=half):
            loss = loss_of(call(), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        return loss.detach()

    def run() -> Tensor:
        loss = backward()
        optimizer.step()
        return loss

    before = {name: x.clone() for name, x in model.state_dict().items()}

    def output() -> tuple[Tensor, Tensor]:
        nonlocal before
        model.load_state_dict(before)  # the step of the memory has changed it
        before = {}
        loss = backward()
        return loss[None], embedding.grad.norm()[None]

    return Contender(name, run, role, output=output)


def encoder_decoder(
    config: TransformerConfig, B: int, length: int, dtype: str
) -> Sequence[Contender]:
    """Build training steps of the encoder-decoder; sources have 50 to 100 %."""
    torch.manual_seed(0)
    mine = Transformer(config)
    src, text = torch.randint(3, config.vocab_size, (2, B, length + 1))
    src, tgt, targets = src[:, 1:], text[:, :-1], text[:, 1:]
    lengths = torch.linspace(length / 2, length, B).long()
    src = src.masked_fill(torch.arange(length) >= lengths[:, None], config.pad_id)
    table, weight = sinusoids(config.max_len, config.d_model), mine.src_embedding.weight
    tokens = nn.Embedding.from_pretrained(weight.detach().clone(), freeze=False)
    stacks = to_torch(EncoderDecoder(mine.encoder, mine.decoder))
    torchs = TorchTransformer(tokens, table, stacks, pad_id=config.pad_id)
    tutorial = PlainTransformer(config)
    tutorial.load_state_dict(mine.state_dict())
    make = partial(step_of, targets=targets, dtype=dtype)
    found = [
        make(name, role, model, partial(model, src, tgt), embedding.weight)
        for name, role, model, embedding in (
            ("tformer", OURS, mine, mine.src_embedding),
            ("nn.Transformer", PEER, torchs, tokens),
            ("as in tutorials", PLAIN, tutorial, tutorial.src_embedding),
        )
    ]
    if huggingface := peer("huggingface"):
        marian = huggingface.marian(mine, table)
        seen = (src != config.pad_id).long()

        def call() -> Tensor:
            given = {"input_ids": src, "attention_mask": seen, "decoder_input_ids": tgt}
            return marian(**given, use_cache=False).logits

        shared = marian.model.shared.weight
        found.append(make("Hugging Face Marian", PEER, marian, call, shared))
    return found


def gpt(config: dict[str, Any], B: int, length: int, dtype: str) -> Sequence[Contender]:
    """Build training steps of a GPT-2."""
    torch.manual_seed(0)
    mine = gpt2.build(config)
    text = torch.randint(mine.vocab_size, (B, length + 1))
    ids, targets = text[:, :-1], text[:, 1:]
    nano = NanoGPT.of(mine)
    make = partial(step_of, targets=targets, dtype=dtype)
    found = [
        make("tformer", OURS, mine, lambda: mine(ids), mine.embedding.weight),
        make("nanoGPT's style", PLAIN, nano, lambda: nano(ids), nano.tokens.weight),
    ]
    if huggingface := peer("huggingface"):
        theirs = huggingface.gpt2(mine)
        call = lambda: theirs(ids, use_cache=False).logits  # noqa: E731
        wte = theirs.transformer.wte.weight
        found.append(make("Hugging Face GPT-2", PEER, theirs, call, wte))
    if x_transformers := peer("x_transformers"):
        other = x_transformers.gpt(mine)
        weight = other.token_emb.emb.weight
        found.append(make("x-transformers", PEER, other, lambda: other(ids), weight))
    return found


# The exact GELU, which all contenders have, and no dropout: all compute the same.
SAME = {"bias": True, "activation_function": "gelu", **gpt2.NO_DROPOUT}


def workloads() -> list[Workload]:
    base = TransformerConfig.base(vocab_size=8192, dropout=0.0)
    small = {**gpt2.SIZES["shakespeare"], **SAME}
    pair, few = partial(encoder_decoder, base, 16, 64), partial(gpt, small, 12, 256)
    rows = [
        ("encoder-decoder", "16 × 64 to 64", pair, "float32"),
        ("encoder-decoder", "16 × 64 to 64", pair, "bfloat16"),
        ("small GPT", "12 × 256", few, "float32"),
        ("small GPT", "12 × 256", few, "bfloat16"),
        ("GPT-2", "1 × 256", partial(gpt, SAME, 1, 256), "float32"),
        ("GPT-2", "16 × 1,024", partial(gpt, SAME, 16, 1024), "float32"),
        ("GPT-2", "16 × 1,024", partial(gpt, SAME, 16, 1024), "bfloat16"),
    ]
    return [
        Workload(
            *("training", name, size, partial(make, dtype), dtype),
            short=(name, dtype) == ("small GPT", "float32"),
            device="cuda" if size.startswith("16 × 1") else "",
        )
        for name, size, make, dtype in rows
    ]
