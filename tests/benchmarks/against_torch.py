"""Time our modules against torch's own, in turn, in one run; print the ratios.

Run with `make benchmark`, or `python tests/benchmarks/against_torch.py [words]` for the
workloads whose names hold one of the words. Machines are noisy: believe the ratios.
With `--threads 1` the processor's time is taken, which a busy machine disturbs less.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from tformer import MultiHeadAttention, record_weights
from tformer.interop import from_torch

Pair = tuple[str, Callable[[], object], Callable[[], object]]


def in_turn(ours: Callable[[], object], theirs: Callable[[], object], rounds: int):
    """Return the median seconds of both, and the median of the ratios of each round."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds + 2):
        for run, spent in zip((ours, theirs), times, strict=True):
            start = clock()
            run()
            spent.append(clock() - start)
    a, b = (spent[2:] for spent in times)  # two rounds to warm up
    ratios = [y / x for x, y in zip(a, b, strict=True)]
    return statistics.median(a), statistics.median(b), statistics.median(ratios)


def train_step(module: nn.Module, forward: Callable[[], Tensor]) -> Callable[[], None]:
    """Return a step: forward, backward, update."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        forward().float().square().mean().backward()
        optimizer.step()

    return step


def inference(call: Callable[[], object]) -> Callable[[], object]:
    """Return `call` without gradients."""

    def run() -> object:
        with torch.inference_mode():
            return call()

    return run


def encoder(
    dtype: torch.dtype, batch: int, length: int, padded: bool
) -> Iterator[Pair]:
    """Time 6 layers of the paper's base width, eval and train step."""
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    theirs = nn.TransformerEncoder(layer, 6).to(dtype)
    ours = from_torch(theirs)
    x = torch.randn(batch, length, 512, dtype=dtype)
    mask = pad = None
    if padded:
        lengths = torch.linspace(length / 4, length, batch).long()
        mask = torch.arange(length) < lengths[:, None]
        pad = ~mask
    name = f"encoder {str(dtype)[6:]} {batch} x {length}" + " padded" * padded
    a = lambda: ours(x, None if mask is None else mask[:, None, None])  # noqa: E731
    b = lambda: theirs(x, src_key_padding_mask=pad)  # noqa: E731
    yield (
        f"{name} eval",
        inference(lambda: ours.eval() and a()),
        inference(lambda: theirs.eval() and b()),
    )
    if batch > 1 and dtype == torch.float32:
        yield (
            f"{name} train",
            train_step(ours, lambda: ours.train() and a()),
            train_step(theirs, lambda: theirs.train() and b()),
        )


def encoder_decoder(dtype: torch.dtype) -> Iterator[Pair]:
    """Time the base model's two stacks, 64 tokens to 64 tokens."""
    theirs = nn.Transformer(dropout=0.0, batch_first=True)
    ours = from_torch(theirs)
    src, tgt = torch.randn(2, 16, 64, 512)
    future = nn.Transformer.generate_square_subsequent_mask(64)

    def a() -> Tensor:
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            return ours(src, tgt, is_causal=True)

    def b() -> Tensor:
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            return theirs(src, tgt, tgt_mask=future, tgt_is_causal=True)

    name = f"encoder-decoder {str(dtype)[6:]}"
    yield (
        f"{name} eval",
        inference(lambda: ours.eval() and a()),
        inference(lambda: theirs.eval() and b()),
    )
    yield (
        f"{name} train",
        train_step(ours, lambda: ours.train() and a()),
        train_step(theirs, lambda: theirs.train() and b()),
    )


def heads(dtype: torch.dtype, weights: bool) -> Iterator[Pair]:
    """Time multi-head attention alone, with weights and without."""
    theirs = nn.MultiheadAttention(512, 8, batch_first=True).to(dtype).eval()
    ours: MultiHeadAttention = from_torch(theirs)
    x = torch.randn(8, 256, 512, dtype=dtype)

    def a() -> Tensor | tuple[Tensor, Tensor]:
        if not weights:
            return ours(x)
        with record_weights(ours) as recorded:
            return ours(x), recorded[ours]

    b = lambda: theirs(x, x, x, need_weights=weights, average_attn_weights=False)  # noqa: E731
    name = f"heads {str(dtype)[6:]}" + " with weights" * weights
    first = (lambda y: y[0]) if weights else (lambda y: y)
    yield f"{name} eval", inference(a), inference(b)
    yield (
        f"{name} train",
        train_step(ours, lambda: first(a())),
        train_step(theirs, lambda: b()[0]),
    )


def workloads() -> Iterator[Pair]:
    """Yield every workload."""
    for dtype in (torch.float32, torch.bfloat16):
        yield from heads(dtype, weights=False)
        yield from heads(dtype, weights=True)
        yield from encoder(dtype, 16, 128, padded=False)
        yield from encoder(dtype, 16, 128, padded=True)
        yield from encoder(dtype, 1, 32, padded=False)
        yield from encoder_decoder(dtype)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only workloads with these in them")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {options.threads} threads")
    print("| workload | ours, ms | torch, ms | torch / ours |\n|---|---|---|---|")
    for name, ours, theirs in workloads():
        if options.words and not any(word in name for word in options.words):
            continue
        a, b, ratio = in_turn(ours, theirs, options.rounds)
        print(f"| {name} | {a * 1e3:.1f} | {b * 1e3:.1f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
