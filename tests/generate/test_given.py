"""What is given is checked; a prefix is read once, for the same texts."""

import pytest
import torch

from brute_force import decisive, tiny_gpt, tiny_transformer
from small_models import MODERN
from tformer import beam_search, greedy, sample
from tformer.generate import Prefix
from tformer.models.families import custom
from tformer.nn.linear_attention import LinearAttention

BEGIN = torch.tensor([1, 3, 2, 2, 0, 1])
REST = [[2], [0, 3, 1], [3, 3]]
WHOLE = [[*BEGIN.tolist(), *rest] for rest in REST]


def causal(attention=None, **parts):
    sizes = {"vocab_size": 4, "d_model": 16, "num_heads": 2, "max_len": 40}
    model = custom.build({**MODERN, **sizes, **parts})
    for block in model.blocks:
        block.attention = attention() if attention else block.attention
    return decisive(model).double()


MODELS = {
    "GPT": lambda: tiny_gpt(0, max_len=40).double(),
    "CausalLM": causal,
    "window": lambda: causal(window=3),
    "latent": lambda: causal(kv_rank=6),
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
    options = {"num_beams": 2, "max_len": 5}
    ours = beam_search(model, REST[1:2], prefix=prefix, **options)
    fresh = beam_search(model, WHOLE[1:2], **options)
    assert torch.equal(ours.ids, fresh.ids)
    assert prefix.length == 6


def test_it_is_read_once_and_counts():
    model, read = tiny_gpt(0, max_len=10), []
    model.embedding.register_forward_hook(lambda _, ids, __: read.append(ids[0].shape))
    prefix = Prefix(model, BEGIN)
    assert prefix.nbytes == 2 * 2 * 16 * 6 * 4  # kinds, layers, D, P
    for rest in REST:
        greedy(model, [rest], max_len=1, prefix=prefix)
    assert read == [(1, 6), (1, 1), (1, 3), (1, 2)]
    assert greedy(model, [[1]], max_len=4, prefix=prefix).shape == (1, 4)
    with pytest.raises(ValueError, match=r"max_len \(5\) must be at most 4, as"):
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


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        ([[1, 2]], {"max_len": 8}, ValueError, r"max_len \(8\) must be at most 7"),
        ([[1, 2]], {"max_len": 0}, ValueError, r"max_len \(0\)"),
        ([[1] * 9, [1]], {}, ValueError, r"9 tokens, .* positions \(8\) end before"),
        ([[1, 2]], {"max_len": 1.0}, TypeError, "max_len must be an int"),
        ([[1, 2]], {"window": 9}, ValueError, r"window \(9\) must be at most 8"),
        ([[1, 2]], {"window": 0}, ValueError, r"window \(0\)"),
        ([[1, 2]], {"eos_id": 7}, ValueError, r"eos_id \(7\) .*vocab_size = 7"),
        ([[1, 2]], {"eos_id": [1, -1]}, ValueError, r"eos_id \(-1\)"),
        ([[1, 2]], {"eos_id": [1.5]}, TypeError, "eos_id must be an int, not float"),
        ([[1, 2]], {"eos_id": "1"}, TypeError, "eos_id must be an int, not str"),
        ([[1, 2]], {"eos_id": True}, TypeError, "eos_id must be an int, not bool"),
        ([[1, 2]], {"bos_id": 1}, ValueError, "bos_id is for a Transformer"),
        ([[1]], {"src_key_mask": 1}, ValueError, "src_key_mask is for a Transformer"),
        ([[1, 2], []], {}, ValueError, r"not \[\(2,\), \(0,\)\]"),
        ([], {}, ValueError, "prompts must be"),
        (torch.tensor([1, 2]), {}, ValueError, "prompts must be"),
        ([[1, 7]], {}, ValueError, "vocab_size = 7"),
        (torch.zeros(1, 2), {}, TypeError, "ids must be int64"),
    ],
)
def test_bad_input_of_a_gpt(given, options, error, message):
    model = tiny_gpt(0, vocab_size=7, max_len=8)
    with pytest.raises(error, match=message):
        greedy(model, given, **{"max_len": 3, **options})


FIVE = {"positions": "learned", "max_len": 5}


@pytest.mark.parametrize(
    ("changes", "options", "error", "message"),
    [
        ({}, {"max_len": 0}, ValueError, r"max_len \(0\)"),
        ({}, {"bos_id": None}, ValueError, r"bos_id \(None\) must be in \[0, vocab_si"),
        ({}, {"bos_id": 4}, ValueError, r"bos_id \(4\) .*4"),
        ({}, {"eos_id": -1}, ValueError, r"eos_id \(-1\)"),
        ({"tgt_vocab_size": 3}, {"eos_id": 3}, ValueError, "vocab_size = 3"),
        ({}, {"window": 3}, ValueError, "window is for a GPT"),
        ({}, {"prefix": 1}, ValueError, "prefix is for a GPT; a Transformer has a so"),
        (FIVE, {"max_len": 6}, ValueError, r"max_len \(6\) must be at most .* \(5\)"),
        ({}, {"src_key_mask": torch.ones(1, 2)}, TypeError, "key_mask"),
        ({}, {"given": [[3, 50]]}, ValueError, "vocab_size = 4"),
        ({}, {"given": [1, 2]}, ValueError, r"given must be \(B, S\), not \(2,\)"),
    ],
)
def test_bad_input_of_a_transformer(changes, options, error, message):
    options = {"given": [[1, 2]], "bos_id": 1, "max_len": 3, **options}
    with pytest.raises(error, match=message):
        greedy(tiny_transformer(0, **changes), **options)


def test_a_prefix_that_a_compiled_model_has_read():
    model = torch.compile(tiny_gpt(0), backend="eager")
    wanted = greedy(model, BEGIN[None], max_len=1)
    prefix = Prefix(model, BEGIN[:-1])
    assert greedy(model, BEGIN[None, -1:], max_len=1, prefix=prefix).equal(wanted)
