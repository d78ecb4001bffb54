"""Search other weights for the cross-attentions of the dates' model, with five seeds.

    PYTHONPATH=docs python tests/experiments/other_weights.py

Three questions, each for five draws of dates. *search*: for 25 dates, weights as
different as possible, with which the model gives the same probabilities. *wish*:
weights with which it writes the date of another text. *trained*: a copy of the model
whose queries and keys learn to look elsewhere and to answer alike, on dates of the
training; it is measured on 200 dates of the test. How far apart two maps are is the
total variation. What is kept stands in `other_weights_kept.py`, which the chapter on
reading attention shows. Two minutes on one core.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.nn.functional as F

from chapters import functions_of, keep
from tformer import load_pretrained
from tformer.nn.heads import merge_heads
from tformer.tasks.dates import date_examples

Batch = tuple[torch.Tensor, torch.Tensor]
Rows = Iterator[tuple[str, object, str, float]]
Weights = list[torch.Tensor]  # of each layer's cross-attention, (B, H, T, S)
SEARCH_RATE, TRAIN_RATE, PAD = 0.3, 0.003, 0


def batch_of(examples: list[Any], vocabulary: Any) -> Batch:
    texts, isos = ([getattr(x, name) for x in examples] for name in ("text", "iso"))
    encode = vocabulary.encode_batch
    return encode(texts, eos=True), encode(isos, bos=True, eos=True)


def apart(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a - b).abs().sum(-1).mean() / 2


@contextmanager
def attending(module: Any, weights: torch.Tensor) -> Iterator[None]:
    """Let a module attend with given weights (B, H, T, S)."""

    def forward(query: Any, key: Any = None, *_: Any, **__: Any) -> torch.Tensor:
        _, value = module.project(key, key)
        return module.out_proj(merge_heads(weights @ value))

    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def search(
    c: Any, model: Any, batch: Batch, loss_of: Callable[..., Any], steps: int
) -> tuple[torch.Tensor, Weights]:
    """Search weights for all cross-attentions that lower a loss."""
    src, tgt = batch
    real = src != PAD
    memory = model.encode(src)
    _, found = c["maps_of"](model, src, tgt)
    padding = ~real[:, None, None]
    scores = [(w + 1e-3).log().masked_fill(padding, -1e9) for w in found.cross]
    scores = [s.requires_grad_() for s in scores]
    optimizer = torch.optim.Adam(scores, lr=SEARCH_RATE)
    for step in range(steps + 1):
        weights = [s.softmax(-1) for s in scores]
        with ExitStack() as stack:
            for block, w in zip(model.decoder.blocks, weights, strict=True):
                stack.enter_context(attending(block.cross_attention, w))
            logits = model.decode(tgt[:, :-1], memory, memory_key_mask=real)
        if step < steps:
            optimizer.zero_grad()
            loss_of(logits, weights).backward()
            optimizer.step()
    return logits.detach(), [w.detach() for w in weights]


def searched(c: Any, model: Any, batch: Batch) -> Rows:
    """Yield what the free search finds, and what it finds for wishes."""
    src, tgt = batch
    logits, found = c["maps_of"](model, src, tgt)
    own, wish = logits.softmax(-1), tgt.roll(1, 0)

    def same_but_far(logits: torch.Tensor, weights: Weights) -> torch.Tensor:
        change = F.kl_div(logits.log_softmax(-1), own, reduction="none").sum(-1)
        return 100 * change.mean() - sum(map(apart, weights, found.cross))

    def write_the_wish(logits: torch.Tensor, _: Weights) -> torch.Tensor:
        return F.cross_entropy(logits.flatten(0, 1), wish[:, 1:].flatten())

    logits, other = search(c, model, batch, same_but_far, 40)
    right = (logits.argmax(-1) == tgt[:, 1:]).all(1)
    yield "search", SEARCH_RATE, "right", right.double().mean().item()
    moved = (logits.softmax(-1) - own).abs().max().item()
    yield "search", SEARCH_RATE, "probability", moved
    for layer, (mine, its) in enumerate(zip(other, found.cross, strict=True), 1):
        yield "search", SEARCH_RATE, f"apart,{layer}", apart(mine, its).item()
        changed = (mine.argmax(-1) != its.argmax(-1)).double().mean().item()
        yield "search", SEARCH_RATE, f"favourite,{layer}", changed
    logits, _ = search(c, model, (src, wish), write_the_wish, 80)
    granted = (logits.argmax(-1) == wish[:, 1:]).all(1)
    yield "wish", SEARCH_RATE, "right", granted.double().mean().item()


def trained(c: Any, model: Any, train: list[Batch], test: list[Batch]) -> Rows:
    """Yield how a copy does that has learned to look elsewhere and to answer alike."""
    rebel = copy.deepcopy(model)
    crossed = [block.cross_attention for block in rebel.decoder.blocks]
    pairs = [(x.q_proj, x.k_proj) for x in crossed]
    free = [p for pair in pairs for x in pair for p in x.parameters()]
    for p in free:
        p.requires_grad_(True)
    optimizer = torch.optim.Adam(free, lr=TRAIN_RATE)
    for src, tgt in train:
        logits, found = c["maps_of"](model, src, tgt)
        theirs, weights = c["maps_of"](rebel, src, tgt)
        own = logits.softmax(-1)
        change = F.kl_div(theirs.log_softmax(-1), own, reduction="none").sum(-1)
        far = sum(map(apart, weights.cross, found.cross))
        optimizer.zero_grad()
        (10 * change.mean() - far / 2).backward()
        optimizer.step()
    right, distances = [], []
    with torch.no_grad():
        for src, tgt in test:
            theirs, weights = c["maps_of"](rebel, src, tgt)
            right.append((theirs.argmax(-1) == tgt[:, 1:]).all(1).double())
            _, found = c["maps_of"](model, src, tgt)
            each = [*map(apart, weights.cross, found.cross)]
            distances.append(torch.stack(each))
    yield "trained", TRAIN_RATE, "right", torch.cat(right).mean().item()
    for layer, distance in enumerate(torch.stack(distances).mean(0), 1):
        yield "trained", TRAIN_RATE, f"apart,{layer}", distance.item()


def measured() -> Rows:
    """Yield everything, seed after seed."""
    c = functions_of("reading-attention.md")
    model, vocabulary, _ = load_pretrained("dates")
    model.requires_grad_(False)

    def batches(examples: list[Any], size: int) -> list[Batch]:
        examples = sorted(examples, key=lambda example: len(example.text))
        starts = range(0, len(examples), size)
        return [batch_of(examples[i : i + size], vocabulary) for i in starts]

    test = batches(date_examples(200, seed=1, split="test"), 50)
    for seed in range(5):
        few = date_examples(25, seed=20 + seed, split="test")
        yield from searched(c, model, batch_of(few, vocabulary))
        train = batches(date_examples(1_280, seed=5 + seed), 32)
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(train), generator=generator).tolist()
        yield from trained(c, model, [train[i] for i in order], test)


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
