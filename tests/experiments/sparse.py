"""Let attention see k keys that are chosen in several ways, with five seeds.

    PYTHONPATH=docs python tests/experiments/sparse.py

A head learns to find one needle, or to ask eight witnesses, with all keys; an indexer
learns from it. Kept is the share of right answers by k: with the keys that attention's
own scores, the indexer, the means of blocks, the place or chance choose. Then what
training with the chosen keys brings, also in ten times as many steps, and what it
brings without the first phase, also in four times as many. The chapter on sparse
attention shows the code, and what is kept in `sparse_kept.py`. Nine minutes on one
core.
"""

from collections.abc import Iterator
from copy import deepcopy

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from chapters import as_on_the_page, functions_of, keep
from tformer import MultiHeadAttention, record_weights
from tformer.nn import Indexer, choose_keys, index_loss, index_scores, split_heads

TASKS = {"needle": 1, "witnesses": 8}
TOKENS, WORDS, WIDTH, BLOCK = 96, 16, 32, 8
SEES = torch.ones(TOKENS, dtype=torch.bool)


class Finder(nn.Module):
    def __init__(self):
        super().__init__()
        self.name, self.word = nn.Embedding(TOKENS, WIDTH), nn.Embedding(WORDS, WIDTH)
        self.attention = MultiHeadAttention(WIDTH, 1, bias=False)
        self.indexer = Indexer(WIDTH, 4, 8, top_k=1)  # four heads of width 8
        self.output = nn.Linear(WIDTH, WORDS)

    def read(self, names, said, asked):  # who asks (B, 1, D), and the text (B, S, D)
        return self.name(asked), self.name(names) + self.word(said)

    def wants(self, asks, text):  # the indexer's scores for one query, (B, 1, 1, S)
        i = self.indexer
        q = split_heads(i.q_proj(asks), i.num_heads)
        k = i.k_norm(i.k_proj(text))[:, None]  # (B, 1, S, Dh)
        return index_scores(q, k, i.weight_proj(asks).mT)

    def forward(self, asks, text, mask=None):
        return self.output(self.attention(asks, text, attn_mask=mask)[:, 0])


def untrained(seed):
    model = Finder().double()
    torch.manual_seed(seed)
    for module in model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()  # drawn in double precision, too
    return model


def texts(count, copies, draw):
    def chances():
        return torch.rand(count, TOKENS, generator=draw, dtype=torch.float64)

    def words():
        return torch.randint(WORDS, (count, TOKENS), generator=draw)

    names = chances().argsort(1)[:, : TOKENS // copies].repeat(1, copies)
    right, order = words(), chances().argsort(1)
    said = right.gather(1, names)
    if copies > 1:  # witnesses
        said = torch.where(chances() < 0.5, words(), said)
    asked = names[:, :1]  # the order is drawn, so it stands anywhere
    answer = right.gather(1, asked)[:, 0]
    return names.gather(1, order), said.gather(1, order), asked, answer


def learn(parts, copies, steps, rate, seed, loss_of):
    draw = torch.Generator().manual_seed(seed)
    weights = [weight for part in parts for weight in part.parameters()]
    optimizer = torch.optim.Adam(weights, rate)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)  # down to 0
        optimizer.zero_grad()
        loss_of(*texts(32, copies, draw)).backward()
        optimizer.step()
        with torch.no_grad():  # rounded, so that processors differ less
            for weight in weights:
                weight.copy_((weight * 2**16).round() / 2**16)


def learn_all_keys(model, copies, seed):  # attention alone
    def loss(*told):
        return cross_entropy(model(*model.read(*told[:3])), told[3])

    learn([model], copies, 600, 0.01, seed, loss)


def learn_to_choose(model, copies, seed):  # the indexer alone: attention stays as it is
    def loss(*told):
        with torch.no_grad(), record_weights(model) as weights:
            read = model.read(*told[:3])
            model(*read)
        return index_loss(model.wants(*read), weights[model.attention], SEES)

    learn([model.indexer], copies, 400, 0.01, seed, loss)


def learn_with(top_k, model, copies, steps, rate, seed):  # both: attention sees k keys
    def loss(*told):
        read = model.read(*told[:3])
        wants = model.wants(*(x.detach() for x in read))
        chosen = choose_keys(wants, top_k, SEES)
        with record_weights(model) as weights:
            said = cross_entropy(model(*read, chosen), told[3])
        return said + index_loss(wants, weights[model.attention], chosen)

    learn([model], copies, steps, rate, seed, loss)


def finder(copies, seed):
    model = untrained(seed)
    learn_all_keys(model, copies, seed)
    learn_to_choose(model, copies, 10 + seed)
    return model


def ways(model, asks, text, draw):  # by what to choose: scores (B, 1, 1, S)
    q, k = model.attention.q_proj(asks), model.attention.k_proj(text)
    of_blocks = q @ k.unflatten(1, (-1, BLOCK)).mean(2).mT  # (B, 1, S / BLOCK)
    wants, like = model.wants(asks, text), (len(text), 1, 1, TOKENS)
    chance = torch.rand(like, generator=draw, dtype=torch.float64)
    return {
        "attention": (q @ k.mT)[:, None],
        "indexer": wants,
        "any_of_8": torch.where(choose_keys(wants, 8, SEES), chance, chance - 1),
        "blocks": of_blocks.repeat_interleave(BLOCK, -1)[:, None],
        "newest": torch.arange(TOKENS).double().expand(like),
        "random": chance,
    }


@torch.no_grad()
def shares_right(model, copies, seed, sizes):
    draw = torch.Generator().manual_seed(100 + seed)
    *told, answer = texts(512, copies, draw)
    read = model.read(*told)
    found = {}
    for way, scores in ways(model, *read, draw).items():
        for k in sizes:
            said = model(*read, choose_keys(scores, k, SEES)).argmax(-1)
            found[way, k] = (said == answer).double().mean().item()
    return found


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the shares of each task, seed after seed."""
    c = functions_of("sparse-attention.md")
    learned = {}
    for seed in range(5):
        for task, copies in TASKS.items():
            model = learned[task, seed] = finder(copies, seed)
            everything = shares_right(model, copies, seed, [TOKENS])
            yield task, "all", "attention", everything["attention", TOKENS]
            found = shares_right(model, copies, seed, c["SIZES"])
            for (way, k), share in found.items():
                yield task, k, way, share
    for seed in range(5):
        for rate in c["RATES"]["then"]:
            model, copies = deepcopy(learned["witnesses", seed]), TASKS["witnesses"]
            learn_with(4, model, copies, 300, rate, 20 + seed)
            found = shares_right(model, copies, seed, [4])
            yield "witnesses", 4, f"then_{rate}", found["indexer", 4]
        model, copies = deepcopy(learned["witnesses", seed]), TASKS["witnesses"]
        learn_with(4, model, copies, 3000, 0.001, 20 + seed)
        found = shares_right(model, copies, seed, [4])
        yield "witnesses", 4, "then_0.001_longer", found["indexer", 4]
        for rate in c["RATES"]["at_once"]:
            model, copies = untrained(seed), TASKS["needle"]
            learn_with(8, model, copies, 1000, rate, seed)
            found = shares_right(model, copies, seed, [8])
            yield "needle", 8, f"at_once_{rate}", found["indexer", 8]
        model = untrained(seed)
        learn_with(8, model, TASKS["needle"], 4000, 0.01, seed)
        found = shares_right(model, TASKS["needle"], seed, [8])
        yield "needle", 8, "at_once_0.01_longer", found["indexer", 8]


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())
