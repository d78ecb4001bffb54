"""Grow attention sinks with five seeds, with and without what replaces them.

    PYTHONPATH=docs python tests/experiments/sinks_grown.py

A layer learns to copy where some words ask for it: with softmax, with a 1 more in its
sum, with a learned logit, with a gate, at five rates each. Kept are the loss with all
keys; the share of attention on the first token, of queries that copy and of others; and
what a window costs, alone and with the first token kept; for softmax also after four
times as many steps. The chapter on attention sinks shows the code, and what is kept in
`sinks_grown_kept.py`; masks and losses are the chapter's. Twenty minutes on one core.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from chapters import as_on_the_page, functions_of, keep
from tformer import MultiHeadAttention, RotaryEmbedding, causal_mask, record_weights
from tformer.nn import rotary_frequencies

RATES = (0.003, 0.01, 0.03, 0.1, 0.3)
WINDOW = 4
WORDS, COPYING, LENGTH, WIDTH = 16, 3, 32, 32
CHAIN = torch.tensor(np.random.default_rng(0).dirichlet(np.full(WORDS, 0.3), WORDS))
PARTS = {
    "softmax": dict,
    "off_by_one": lambda: {"sinks": nn.Parameter(torch.zeros(1), requires_grad=False)},
    "learned_sink": lambda: {"sinks": nn.Parameter(torch.zeros(1))},
    "gate": lambda: {"gate": nn.Linear(WIDTH, 1)},  # one number for a head
}


class OneLayer(nn.Module):  # attention with one head, and nothing else
    def __init__(self, part):
        super().__init__()
        self.embedding = nn.Embedding(WORDS + 1, WIDTH)
        rotary = RotaryEmbedding(rotary_frequencies(WIDTH))
        parts = {"bias": False, "rotary": rotary, **PARTS[part]()}
        self.norm, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention = MultiHeadAttention(WIDTH, 1, **parts)
        self.output = nn.Linear(WIDTH, WORDS)

    def forward(self, ids):
        x = self.embedding(ids)
        x = x + self.attention(self.norm(x), is_causal=True)
        return self.output(self.norm2(x))


def copying_texts(count):  # (count, LENGTH + 1); each begins with the same token
    ids = torch.full((count, LENGTH + 1), WORDS)
    ids[:, 1] = torch.randint(COPYING, WORDS, (count,))
    for t in range(2, LENGTH + 1):
        drawn = CHAIN[ids[:, t - 1]].multinomial(1)[:, 0]
        ids[:, t] = torch.where(ids[:, t - 1] < COPYING, ids[:, t - 2], drawn)
    return ids


def grow(part, rate, seed, steps=1500):
    torch.manual_seed(seed)
    model = OneLayer(part)
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0)
    for step, ids in enumerate(copying_texts(16 * steps).split(16)):
        factor = min(1, (step + 1) / 20) * (1 - step / steps)  # warmup, and down to 0
        optimizer.param_groups[0]["lr"] = rate * factor
        loss = cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for weight in model.parameters():  # else rounding grows, and processors differ
            weight.data = torch.round(weight.data * 2**16) / 2**16
    return model


@torch.no_grad()
def shares_of_first(model, ids):  # of queries that copy, and of those that need nothing
    with record_weights(model) as weights:
        model(ids)
    late = slice(LENGTH // 2, LENGTH)
    copies, share = ids[:, late] < COPYING, weights[model.attention][:, 0, late, 0]
    return share[copies].mean().item(), share[~copies].mean().item()


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield everything, seed after seed."""
    c = functions_of("attention-sinks.md")
    torch.manual_seed(1000)
    texts = copying_texts(256)
    newest = causal_mask(LENGTH, window=WINDOW)
    first = c["keep_first"](LENGTH, WINDOW - 1, 1)
    for seed in range(5):
        for part in PARTS:
            for rate in RATES:
                model = grow(part, rate, seed)
                loss = c["loss_under"](model, texts, causal_mask(LENGTH))
                yield part, rate, "loss", loss
                copying, idle = shares_of_first(model, texts[:, :-1])
                yield part, rate, "copying", copying
                yield part, rate, "idle", idle
                for what, mask in (("window", newest), ("first_kept", first)):
                    yield part, rate, what, c["loss_under"](model, texts, mask) - loss
        model = grow("softmax", 0.03, seed, 6000)
        loss = c["loss_under"](model, texts, causal_mask(LENGTH))
        yield "softmax", 0.03, "loss_longer", loss
        yield "softmax", 0.03, "idle_longer", shares_of_first(model, texts[:, :-1])[1]
        cost = c["loss_under"](model, texts, newest) - loss
        yield "softmax", 0.03, "window_longer", cost


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())
