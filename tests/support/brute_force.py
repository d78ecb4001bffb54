"""Every text that a model could write, scored by the whole model without a cache."""

import functools

import torch

from tformer import (
    CausalLM,
    Transformer,
    TransformerConfig,
    beam_search,
    greedy,
    sample,
)
from tformer.models.families import custom

WAYS = {
    "greedy": greedy,
    "sample": sample,
    "beam": lambda *given, **o: beam_search(*given, num_beams=2, **o).ids[:, 0],
}


def decisive(model):
    """Make an untrained model's weights larger, so that it has opinions."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(8.0 if isinstance(model, CausalLM) else 2.0)
    return model.eval()


def tiny_gpt(seed: int, vocab_size: int = 4, **changes) -> CausalLM:
    torch.manual_seed(seed)
    sizes = {"vocab_size": vocab_size, "d_model": 16, "max_len": 12}
    return decisive(custom.build({**sizes, **changes}))


def tiny_transformer(seed: int, vocab_size: int = 4, **changes) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"vocab_size": vocab_size, "d_model": 16, "d_ff": 19, "pad_id": None}
    options = {"tie_embeddings": False, "norm_first": True}
    config = TransformerConfig.tiny(**{**sizes, **options, **changes})
    return decisive(Transformer(config))


@torch.no_grad()
def every_text(model, given, max_len, stops, bos_id=None):
    """Yield (ids, sum of log-probabilities) for one source or prompt, a 1-D tensor.

    A text ends with its first end token, or at `max_len`.
    """

    def grow(ids, total):
        if ids and (ids[-1] in stops or len(ids) == max_len):
            yield ids, total
            return
        if isinstance(model, CausalLM):
            logits = model(torch.tensor([[*given.tolist(), *ids]]))
        else:
            logits = model(given[None], torch.tensor([[bos_id, *ids]]))
        shares = logits[0, -1].log_softmax(-1).tolist()
        for token, share in enumerate(shares):
            yield from grow([*ids, token], total + share)

    yield from grow([], 0.0)


def falling(texts, alpha):
    """Score texts as Wu et al. do, the best first."""
    scored = [(total / ((5 + len(ids)) / 6) ** alpha, ids) for ids, total in texts]
    return sorted(scored, key=lambda text: -text[0])


def run_every_path(run):
    """Run with every sequence of choices; yield each result with its probability.

    `run(choose)` has all its randomness from `choose(p)`. Each run repeats the choices
    of a script, then takes the first possible index; the others wait their turn.
    """
    waiting = [()]
    while waiting:
        script, taken, product = waiting.pop(), [], 1.0

        def choose(p, script=script, taken=taken):
            nonlocal product
            possible = p.nonzero().flatten().tolist()
            if len(taken) < len(script):
                index = script[len(taken)]
            else:
                index, *others = possible
                waiting.extend((*taken, other) for other in others)
            taken.append(index)
            product *= p[index].item()
            return index

        result = run(choose)
        yield result, product


@functools.cache
def expected_forwards(n, ahead, alpha):
    """By recursion over the first forward: it writes j + 1 tokens, j of them kept."""
    if n <= 0:
        return 0
    K = min(ahead, n - 1)
    chances = [alpha**j * (1 - alpha) for j in range(K)] + [alpha**K]
    return 1 + sum(
        chance * expected_forwards(n - j - 1, ahead, alpha)
        for j, chance in enumerate(chances)
    )
