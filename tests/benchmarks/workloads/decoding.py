"""Decoding: greedy, beams of 4, sampling; a long prompt; one token after a context.

32 tokens are written, and no end token cuts them short. All weights are random.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.peers import peer
from benchmarks.peers.nano import NanoGPT
from benchmarks.peers.plain import sinusoids
from benchmarks.workload import (
    Contender,
    Workload,
    dtype_of,
    ours,
    plain,
    without_gradients,
)
from benchmarks.workloads.training import SAME
from tformer import Transformer, TransformerConfig, beam_search, greedy, sample
from tformer.models.building import build_model, config_of
from tformer.models.families import gpt2
from tformer.nn.memory_layout import turn_weights

FAMILY = "decoding"
TITLES = {"greedy": "greedy", "beams": "4 beams", "sampling": "sampling"}
TOKENS, PROMPT, BEAMS, TOP_K = 32, 16, 4, 50
LARGEST = 1  # prompts of more rows are not written without a cache: it takes minutes
SOURCE = 32
HF = {  # how Hugging Face is asked for each
    "greedy": {},
    "beams": {"num_beams": BEAMS},
    "sampling": {"do_sample": True, "top_k": TOP_K},
}
TURNED = "tformer, weights turned"


def write(way: str, model: Any, given: Tensor, tokens: int, **options: Any) -> Tensor:
    """Write with ours."""
    if way == "beams":
        found = beam_search(model, given, num_beams=BEAMS, max_len=tokens, **options)
        return found.ids[:, 0]
    if way == "sampling":
        return sample(model, given, max_len=tokens, top_k=TOP_K, **options)
    return greedy(model, given, max_len=tokens, **options)


def draw(logits: Tensor) -> Tensor:
    """Draw one of the likeliest, as gpt-fast does."""
    best, index = logits.topk(TOP_K)
    waiting = torch.empty_like(best).exponential_()
    chosen = (best.softmax(-1) / waiting).argmax(-1, keepdim=True)
    return index.gather(-1, chosen)[:, 0]


CHOOSE = {"greedy": lambda logits: logits.argmax(-1), "sampling": draw}


def tokens_of(way: str, run: Callable[[], Tensor], scores: Callable, dtype: str) -> Any:
    """Return what must agree: the ids; scores where ids are drawn, or rounded."""
    exact = dtype == "float32" and way != "sampling"
    return run if exact else without_gradients(scores)


def encoder_decoder(way: str, B: int, dtype: str) -> Sequence[Contender]:
    """Build the base model, from 32 tokens to 32."""
    torch.manual_seed(0)
    config = TransformerConfig.base(vocab_size=8192, dropout=0.0)
    mine = Transformer(config).to(dtype_of(dtype)).eval()
    src = torch.randint(3, config.vocab_size, (B, SOURCE))
    start = torch.ones(B, 1, dtype=torch.int64)
    run = partial(write, way, mine, src, TOKENS, bos_id=1)
    found = [ours(run, output=tokens_of(way, run, lambda: mine(src, start), dtype))]
    if huggingface := peer("huggingface"):
        table = sinusoids(config.max_len, config.d_model)
        theirs = huggingface.marian(mine, table).eval()
        call = partial(huggingface.generate, theirs, src, TOKENS, **HF[way])
        scores = lambda: theirs(input_ids=src, decoder_input_ids=start).logits  # noqa: E731
        output = tokens_of(way, call, scores, dtype)
        found.append(Contender("Hugging Face Marian", call, output=output))
    return [*found, _turned(mine, run)]


def _turned(mine: Any, run: Callable[[], Tensor]) -> Contender:
    """The same model, its weights turned in memory just before it runs."""
    other = build_model(config_of(mine)).to(next(mine.parameters()).dtype).eval()
    other.load_state_dict(mine.state_dict())
    turn_weights(other)
    again = partial(run.func, run.args[0], other, *run.args[2:], **run.keywords)
    return ours(again, TURNED, checked=False)


def gpt(
    config: dict[str, Any], way: str, B: int, dtype: str, prompt: int, tokens: int
) -> Sequence[Contender]:
    """Build a GPT-2 that goes on from a prompt."""
    torch.manual_seed(0)
    mine = gpt2.build(config).to(dtype_of(dtype)).eval()
    ids = torch.randint(3, mine.vocab_size, (B, prompt))
    run = partial(write, way, mine, ids, tokens)
    found = [ours(run, output=tokens_of(way, run, lambda: mine(ids), dtype))]
    nano = NanoGPT.of(mine).eval()
    if way in CHOOSE:
        call = partial(nano.generate, ids, tokens, CHOOSE[way])
        output = tokens_of(way, call, lambda: nano(ids), dtype)
        name = "nanoGPT's style"
        found.append(plain(f"{name}, a cache in place", call, output=output))
        if B <= LARGEST and way == "greedy" and tokens > 1:
            whole = partial(call, cached=False)
            found.append(plain(f"{name}, no cache", whole, output=output))
    if huggingface := peer("huggingface"):
        theirs = huggingface.gpt2(mine).eval()
        call = partial(huggingface.generate, theirs, ids, tokens, **HF[way])
        output = tokens_of(way, call, lambda: theirs(ids).logits, dtype)
        found.append(Contender("Hugging Face GPT-2", call, output=output))
    if way == "greedy" and (x_transformers := peer("x_transformers")):
        other = x_transformers.gpt(mine).eval()
        call = partial(x_transformers.generate, other, ids, tokens)
        output = tokens_of(way, call, lambda: other(ids), dtype)
        found.append(Contender("x-transformers", call, output=output))
    return [*found, _turned(mine, run)] if tokens > 1 else found


def next_token(config: dict[str, Any], context: int) -> Sequence[Contender]:
    """Build one more token after a context, and the reading of the cache alone."""
    torch.manual_seed(0)
    mine = gpt2.build(config).eval()
    ids = torch.randint(mine.vocab_size, (1, context))
    nano, c = NanoGPT.of(mine).eval(), mine.config
    cache = mine.new_cache(context)
    shape = (2, 1, c["n_head"], context, c["n_embd"] // c["n_head"])
    caches = [torch.empty(shape) for _ in range(c["n_layer"])]
    with torch.no_grad():
        mine(ids[:, :-1], cache=cache)
        nano(ids[:, :-1], caches)

    def step() -> Tensor:
        cache.truncate(context - 1)  # the same token again, in its place
        return mine(ids[:, -1:], cache=cache, last_only=True)

    def read() -> Tensor:
        q = caches[0][0, :, :, :1]
        for k, v in caches:
            q = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return q

    return [
        ours(without_gradients(step)),
        plain(
            "nanoGPT's style, a cache in place",
            without_gradients(lambda: nano(ids[:, -1:], caches, context - 1)),
        ),
        Contender("the cache read alone", without_gradients(read), "part", None, False),
    ]


def workloads() -> list[Workload]:
    small = {**gpt2.SIZES["shakespeare"], **SAME, "vocab_size": 8192}
    small["n_positions"] = 2048
    fp32, bf16 = "float32", "bfloat16"
    ways = [(way, B, fp32) for way in TITLES for B in (1, 16)]
    ways += [("greedy", B, bf16) for B in (1, 16)]
    few, short = [*ways[:2], ways[-2]], {"prompt": PROMPT, "tokens": TOKENS}
    of_small, of_gpt2 = (partial(gpt, config, **short) for config in (small, SAME))
    rows = [
        Workload(
            FAMILY,
            f"{title}, {TITLES[way]}",
            f"batch {B}",
            partial(make, way=way, B=B, dtype=dtype),
            dtype,
            short=(way, B, dtype) == ways[0] and title != "GPT-2",
        )
        for title, make, asked in (
            ("encoder-decoder", encoder_decoder, ways),
            ("small GPT", of_small, ways),
            ("GPT-2", of_gpt2, few),
        )
        for way, B, dtype in asked
    ]
    for title, config, prompt, dtype in (
        ("small GPT", small, 2000, fp32),
        ("small GPT", small, 2000, bf16),
        ("GPT-2", SAME, 1000, fp32),
    ):
        name, size = f"{title}, a long prompt", f"{prompt:,} tokens"
        build = partial(gpt, config, "greedy", 1, dtype, prompt, 1)
        rows.append(Workload(FAMILY, name, size, build, dtype))
    for T in (128, 512, 1024, 2048):
        build, name = partial(next_token, small, T), "small GPT, the next token"
        rows.append(Workload(FAMILY, name, f"context {T:,}", build, length=T))
    return rows
