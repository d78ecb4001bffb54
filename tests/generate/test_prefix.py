"""A prefix read once: the same texts as from fresh runs, and no second reading."""

import pytest
import torch

from brute_force import decisive, tiny_gpt
from tformer import (
    CausalLM,
    CausalLMConfig,
    LatentAttention,
    LinearAttention,
    Parts,
    Prefix,
    RotaryPositions,
    Transformer,
    TransformerConfig,
    greedy,
    rotary_frequencies,
    sample,
)

BEGIN = torch.tensor([1, 3, 2, 2, 0, 1])
REST = [[2], [0, 3, 1], [3, 3]]
WHOLE = [[*BEGIN.tolist(), *rest] for rest in REST]


def causal(attention=None, **parts):
    sizes = {"vocab_size": 4, "d_model": 16, "num_heads": 2, "num_layers": 2}
    model = CausalLM(CausalLMConfig(**sizes, max_len=40, parts=Parts(**parts)))
    for block in model.blocks:
        block.attention = attention() if attention else block.attention
    return decisive(model).double()


def latent():
    rotary = RotaryPositions(rotary_frequencies(4))
    return LatentAttention(16, 2, kv_rank=6, head_dim=8, rotary=rotary)


MODELS = {
    "GPT": lambda: tiny_gpt(0, max_len=40).double(),
    "CausalLM": causal,
    "window": lambda: causal(window=3),
    "latent": lambda: causal(latent),
    "linear": lambda: causal(lambda: LinearAttention(16, 2)),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_texts_are_those_of_fresh_runs(make):
    model = make()
    prefix = Prefix(model, BEGIN)
    for _ in range(2):  # it can be used again
        ours = greedy(model, REST, max_len=9, prefix=prefix)
        assert torch.equal(ours, greedy(model, WHOLE, max_len=9))
        seeds = (torch.Generator().manual_seed(1) for _ in range(2))
        ours = sample(model, REST, max_len=9, prefix=prefix, generator=next(seeds))
        fresh = sample(model, WHOLE, max_len=9, generator=next(seeds))
        assert torch.equal(ours, fresh)
    assert prefix.length == 6


def test_it_is_read_once():
    model, read = tiny_gpt(0, max_len=40), []
    model.embedding.register_forward_hook(lambda _, ids, __: read.append(ids[0].shape))
    prefix = Prefix(model, BEGIN)
    for rest in REST:
        greedy(model, [rest], max_len=1, prefix=prefix)
    assert read == [(1, 6), (1, 1), (1, 3), (1, 2)]


def test_bytes():
    model = tiny_gpt(0, max_len=40)
    assert Prefix(model, BEGIN).nbytes == 2 * 2 * 16 * 6 * 4  # kinds, layers, D, P


def test_learned_positions_count_it(raises):
    model = tiny_gpt(0, max_len=10)
    prefix = Prefix(model, BEGIN)
    assert greedy(model, [[1]], max_len=4, prefix=prefix).shape == (1, 4)
    message = (
        "max_len (5) must be at most 4, as the model's learned positions (10) end there"
    )
    with raises(ValueError, message):
        greedy(model, [[1]], max_len=5, prefix=prefix)


def test_errors(raises):
    model, other = tiny_gpt(0, max_len=40), tiny_gpt(1)
    prefix = Prefix(model, BEGIN)
    with raises(ValueError, "prefix was read by another model"):
        greedy(other, REST, max_len=2, prefix=prefix)
    with raises(ValueError, "a window forgets the prefix: give one of the two"):
        greedy(model, REST, max_len=2, prefix=prefix, window=5)
    with raises(ValueError, "ids must be (P,), and not empty, not (1, 6)"):
        Prefix(model, BEGIN[None])
    with raises(ValueError, "ids must be (P,), and not empty, not (0,)"):
        Prefix(model, BEGIN[:0])
    translator = Transformer(TransformerConfig.tiny())
    with raises(ValueError, "prefix is for a GPT; a Transformer has a source"):
        greedy(translator, [[1]], max_len=2, bos_id=1, prefix=prefix)
