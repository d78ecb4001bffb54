"""Time greedy decoding with the cache against Hugging Face's `generate`, in turn.

The same sizes and the same number of tokens, random weights, one thread: an
encoder-decoder of the paper's base size against MarianMT, a GPT of 6 layers and GPT-2
against GPT2LMHeadModel. With `--beams` beam search too. `transformers` is not a
dependency of this project: `pip install transformers` in an environment of its own, or
in this one without touching torch.

    python tests/benchmarks/decoding.py [words] [--batch 1 16] [--tokens 64]

Machines are noisy: believe the ratios.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import torch

from tformer import (
    GPT,
    GPTConfig,
    Transformer,
    TransformerConfig,
    beam_search,
    greedy,
)
from tformer.fast.turning import turn_weights

try:
    from transformers import GPT2Config, GPT2LMHeadModel, MarianConfig, MarianMTModel
except ImportError:
    sys.exit("this benchmark compares with Hugging Face: pip install transformers")

Pair = tuple[str, Callable[[], object], Callable[[], object]]


def in_turn(ours: Callable[[], object], theirs: Callable[[], object], rounds: int):
    """Return the median seconds of both, and the median of the ratios of each round."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds + 1):
        for run, spent in zip((ours, theirs), times, strict=True):
            start = clock()
            run()
            spent.append(clock() - start)
    a, b = (spent[1:] for spent in times)  # one round to warm up
    ratios = [y / x for x, y in zip(a, b, strict=True)]
    return statistics.median(a), statistics.median(b), statistics.median(ratios)


def generate(model, ids, tokens: int, beams: int):
    """Call Hugging Face's, which must not end early."""
    with torch.inference_mode():
        return model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            min_new_tokens=tokens,
            max_new_tokens=tokens,
            num_beams=beams,
            do_sample=False,
            use_cache=True,
        )


def write(model, ids, tokens: int, beams: int, **options):
    """Call ours."""
    if beams > 1:
        options |= {"num_beams": beams, "length_penalty": 1.0}
        return beam_search(model, ids, max_len=tokens, **options).ids[:, 0]
    return greedy(model, ids, max_len=tokens, **options)


def encoder_decoder(batch: int, tokens: int, beams: int, dtype) -> Iterator[Pair]:
    """Time the paper's base model, with 32,000 tokens and a source of 32."""
    V = 32_000
    config = TransformerConfig.base(vocab_size=V, dropout=0.0)
    ours = turn_weights(Transformer(config).to(dtype).eval())
    theirs = (
        MarianMTModel(
            MarianConfig(
                vocab_size=V,
                d_model=512,
                encoder_layers=6,
                decoder_layers=6,
                encoder_attention_heads=8,
                decoder_attention_heads=8,
                encoder_ffn_dim=2048,
                decoder_ffn_dim=2048,
                activation_function="relu",
                scale_embedding=True,
                pad_token_id=0,
                bos_token_id=1,
                eos_token_id=2,
                forced_eos_token_id=None,
                decoder_start_token_id=1,
                max_position_embeddings=512,
            )
        )
        .to(dtype)
        .eval()
    )
    src = torch.randint(3, V, (batch, 32))
    yield (
        f"encoder-decoder, batch {batch}",
        lambda: write(ours, src, tokens, beams, bos_id=1),
        lambda: generate(theirs, src, tokens, beams),
    )


def gpt(name: str, config: GPTConfig, batch: int, tokens: int, beams: int, dtype):
    """Time a GPT with a prompt of 16."""
    ours = turn_weights(GPT(config).to(dtype).eval())
    theirs = (
        GPT2LMHeadModel(
            GPT2Config(
                vocab_size=config.vocab_size,
                n_positions=config.max_len,
                n_embd=config.d_model,
                n_layer=config.num_layers,
                n_head=config.num_heads,
                bos_token_id=1,
                eos_token_id=2,
                pad_token_id=0,
            )
        )
        .to(dtype)
        .eval()
    )
    prompt = torch.randint(3, config.vocab_size, (batch, 16))
    yield (
        f"{name}, batch {batch}",
        lambda: write(ours, prompt, tokens, beams),
        lambda: generate(theirs, prompt, tokens, beams),
    )


def workloads(batches, tokens, beams, dtype) -> Iterator[Callable[[], Iterator[Pair]]]:
    """Yield every workload, each with its name, before its models are made."""
    small = GPTConfig.shakespeare(vocab_size=50_257, dropout=0.0, bias=True)
    for B in batches:
        options = (B, tokens, beams, dtype)
        yield "encoder-decoder", lambda o=options: encoder_decoder(*o)
        yield "small GPT", lambda o=options: gpt("small GPT", small, *o)
        big = GPTConfig.gpt2(dropout=0.0)
        yield "GPT-2", lambda o=options, big=big: gpt("GPT-2", big, *o)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only workloads with these in them")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--beams", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(
        f"torch {torch.__version__}, {options.threads} threads, {options.dtype}, "
        f"{options.tokens} tokens, {options.beams} beams"
    )
    print(
        "| workload | ours, ms | Hugging Face, ms | theirs / ours |\n|---|---|---|---|"
    )
    dtype = getattr(torch, options.dtype)
    for name, make in workloads(options.batch, options.tokens, options.beams, dtype):
        if options.words and not any(word in name for word in options.words):
            continue
        for full_name, ours, theirs in make():
            a, b, ratio = in_turn(ours, theirs, options.rounds)
            row = f"| {full_name} | {a * 1e3:.0f} | {b * 1e3:.0f} | {ratio:.2f} |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
