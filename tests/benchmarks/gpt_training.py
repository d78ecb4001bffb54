"""Time our GPT's training step against a model written as nanoGPT writes it.

All have the same weights, and see the same text; their losses are compared first. With
`--copy docs/downloads/gpt.py` (`make downloads` writes it) the chapter's one-file copy
runs too. Run `python tests/benchmarks/gpt_training.py`; on a GPU with `--device cuda`,
where `--bf16` and `--compile` are what a user would choose. Steps are interleaved:
believe the ratio.
"""

import argparse
import importlib.util
import math
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer import GPT, GPTConfig, label_smoothed_cross_entropy


class Block(nn.Module):
    """One fused product for queries, keys and values; the kernel with its flag."""

    def __init__(self, c: GPTConfig) -> None:
        super().__init__()
        D = c.d_model
        self.num_heads = c.num_heads
        self.ln_1 = nn.LayerNorm(D, bias=c.bias)
        self.attn = nn.Linear(D, 3 * D, bias=c.bias)
        self.attn_proj = nn.Linear(D, D, bias=c.bias)
        self.ln_2 = nn.LayerNorm(D, bias=c.bias)
        self.fc = nn.Linear(D, 4 * D, bias=c.bias)
        self.fc_proj = nn.Linear(4 * D, D, bias=c.bias)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        parts = self.attn(self.ln_1(x)).split(D, dim=2)
        q, k, v = (
            part.view(B, T, self.num_heads, D // self.num_heads).transpose(1, 2)
            for part in parts
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_proj(y.transpose(1, 2).contiguous().view(B, T, D))
        hidden = F.gelu(self.fc(self.ln_2(x)), approximate="tanh")
        return x + self.fc_proj(hidden)


class NanoStyle(nn.Module):
    """Token and position embeddings, blocks, a norm, and tied logits."""

    def __init__(self, c: GPTConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(c.vocab_size, c.d_model)
        self.positions = nn.Embedding(c.max_len, c.d_model)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.num_layers))
        self.norm = nn.LayerNorm(c.d_model, bias=c.bias)

    def forward(self, ids: Tensor) -> Tensor:
        at = torch.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(at)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)

    @torch.no_grad()
    def copy_from(self, ours: GPT) -> None:
        """Take the weights of ours."""
        pairs = [
            (self.tokens, ours.embedding),
            (self.positions, ours.positions),
            (self.norm, ours.stack.norm),
        ]
        for block, layer in zip(self.blocks, ours.stack.layers, strict=True):
            attn, network = layer.self_attn, layer.feed_forward
            projections = (attn.q_proj, attn.k_proj, attn.v_proj)
            block.attn.weight.copy_(torch.cat([p.weight for p in projections]))
            if block.attn.bias is not None:
                block.attn.bias.copy_(torch.cat([p.bias for p in projections]))
            pairs += [
                (block.ln_1, layer.self_attn_residual.norm),
                (block.attn_proj, attn.out_proj),
                (block.ln_2, layer.feed_forward_residual.norm),
                (block.fc, network.linear1),
                (block.fc_proj, network.linear2),
            ]
        for theirs, mine in pairs:
            theirs.load_state_dict(mine.state_dict())


def our_loss(logits: Tensor, targets: Tensor) -> Tensor:
    return label_smoothed_cross_entropy(logits, targets, smoothing=0.0)


def their_loss(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def train_step(
    model: nn.Module, loss_of: Callable[[Tensor, Tensor], Tensor], text: Tensor, o
) -> Callable[[], Tensor]:
    """Return a step of AdamW that waits for the device, and returns the loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    call = torch.compile(model) if o.compile else model

    def step() -> Tensor:
        with torch.autocast(o.device, torch.bfloat16, enabled=o.bf16):
            loss = loss_of(call(text[:, :-1]), text[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if o.device != "cpu":
            torch.cuda.synchronize()
        return loss.detach()

    return step


def copy_of(ours: GPT, path: str) -> nn.Module:
    """Return the model of the one-file copy, with our weights."""
    spec = importlib.util.spec_from_file_location("copy_of_gpt", path)
    module = sys.modules["copy_of_gpt"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    copy = module.GPT(module.GPTConfig(**vars(ours.config)))
    copy.load_state_dict(ours.state_dict())
    return copy


def main() -> None:
    """Print a line of a table for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="shakespeare")
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--length", type=int)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--copy", help="the file of the chapter's copy, to time it too")
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    torch.set_float32_matmul_precision("high")  # a GPU's TF32, as nanoGPT
    torch.manual_seed(0)
    config = getattr(GPTConfig, o.preset)(dropout=0.0)
    ours = GPT(config).to(o.device)
    theirs = NanoStyle(config).to(o.device)
    theirs.copy_from(ours)
    length = o.length or config.max_len
    text = torch.randint(config.vocab_size, (o.batch, length + 1), device=o.device)

    steps = [
        train_step(ours, our_loss, text, o),
        train_step(theirs, their_loss, text, o),
    ]
    if o.copy:
        steps.append(
            train_step(copy_of(ours, o.copy).to(o.device), their_loss, text, o)
        )
    for round in range(3):  # warm up; after k equal steps the weights are equal
        first, *others = (step().item() for step in steps)
        for other in others:
            equal = math.isclose(first, other, rel_tol=3e-2 if o.bf16 else 1e-3)
            assert equal, (round, first, other)
    clock = time.perf_counter
    if o.device == "cpu" and o.threads == 1:
        clock = time.process_time  # a busy machine disturbs it less
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(o.rounds):
        for step, spent in zip(steps, times, strict=True):
            start = clock()
            step()
            spent.append(clock() - start)
    words = [o.device, "bf16" if o.bf16 else "fp32", *["compiled"] * o.compile]
    about = f"{o.preset}, batch {o.batch}, length {length}, {' '.join(words)}"
    print(f"torch {torch.__version__}, {o.threads} threads, losses equal: {about}")
    print("| training step | ms | nanoGPT style / this |")
    print("|---|---|---|")
    names = ["ours", "nanoGPT style", "the chapter's copy"]
    for name, spent in zip(names, times, strict=False):
        ratio = statistics.median(y / x for x, y in zip(spent, times[1], strict=True))
        print(f"| {name} | {statistics.median(spent) * 1e3:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
