"""The loop that writes: prompts of any length, ends, windows; and greedy decoding."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brute_force import WAYS, tiny_gpt
from tformer import greedy, sample


@torch.no_grad()
def step_by_step(model, prompt, max_len, stops, context=None):
    """Greedy by the whole model, without a cache."""
    ids = list(prompt)
    while len(ids) < len(prompt) + max_len:
        seen = ids if context is None else ids[-context:]
        ids.append(model(torch.tensor([seen]))[0, -1].argmax().item())
        if ids[-1] in stops:
            break
    return ids[len(prompt) :]


def lengths_read(model):
    """A list that will hold how many tokens each forward reads."""
    read, first = [], model.blocks[0]
    first.register_forward_hook(lambda _, x, __: read.append(x[0].shape[1]))
    return read


@given(
    st.lists(
        st.lists(st.integers(0, 6), min_size=1, max_size=6), min_size=1, max_size=5
    ),
    st.integers(1, 6),
    st.sampled_from([None, 2, [2, 5]]),
    st.integers(0, 1000),
)
def test_prompts_of_any_lengths(prompts, max_len, eos_id, seed):
    """Each is continued as it would be alone, without a cache."""
    model = tiny_gpt(seed, vocab_size=7)
    stops = [eos_id] if isinstance(eos_id, int) else eos_id or []
    expected = [step_by_step(model, prompt, max_len, stops) for prompt in prompts]
    longest = max(map(len, expected))
    fill = stops[0] if stops else 0
    padded = [row + [fill] * (longest - len(row)) for row in expected]
    assert greedy(model, prompts, max_len=max_len, eos_id=eos_id).tolist() == padded


def test_a_prompt_is_read_in_one_step_and_nothing_twice():
    model = tiny_gpt(0, vocab_size=7)
    lengths = lengths_read(model)
    greedy(model, torch.zeros(2, 5).long(), max_len=4)
    assert lengths == [5, 1, 1, 1]
    lengths.clear()
    greedy(model, [[1] * 5, [1] * 3], max_len=4)
    assert lengths == [3, 1, 1, 1, 1, 1]


def test_logits_are_made_for_the_last_position_only():
    model = tiny_gpt(0, vocab_size=7, tie_embeddings=False)
    shapes = []
    model.output.register_forward_hook(lambda _, __, y: shapes.append(tuple(y.shape)))
    greedy(model, torch.zeros(2, 5).long(), max_len=3)
    assert shapes == [(2, 1, 7)] * 3


def test_the_last_position_can_be_used():
    model = tiny_gpt(0, vocab_size=7, max_len=8)
    prompt = torch.tensor([[1, 2, 3]])
    ids = greedy(model, prompt, max_len=6)  # the sixth is written, and not read
    assert ids.tolist() == [step_by_step(model, [1, 2, 3], 6, [])]


@pytest.mark.parametrize("prompts", [[[1, 2, 3]], [[1] * 12, [4, 5]]])
def test_a_window_goes_on_where_positions_end(prompts):
    model = tiny_gpt(5, vocab_size=7, max_len=8)
    ids = greedy(model, prompts, max_len=20, window=8)
    # With a window as wide as the positions: the newest 8 tokens, each time.
    assert ids[0].tolist() == step_by_step(model, prompts[0], 20, [], context=8)
    assert ids.shape == (len(prompts), 20)


@pytest.mark.parametrize("lengths", [(9, 12), (3, 20), (13, 2), (8, 9), (20, 20)])
@pytest.mark.parametrize("window", [1, 4, 8])
def test_a_prompt_beyond_the_positions_is_read_as_if_alone(lengths, window):
    for seed in range(2):
        model = tiny_gpt(seed, vocab_size=9, max_len=8)
        prompts = [torch.randint(0, 9, (n,)).tolist() for n in lengths]
        options = {"max_len": 9, "window": window}
        together = greedy(model, prompts, **options).tolist()
        alone = [greedy(model, [each], **options)[0].tolist() for each in prompts]
        assert together == alone


def test_a_narrow_window_reads_less_often():
    model = tiny_gpt(5, vocab_size=7, max_len=8)
    lengths = lengths_read(model)
    ids = sample(model, [[1, 2, 3]], max_len=14, window=4)
    assert ids.shape == (1, 14)
    assert lengths == [3, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 4, 1, 1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e38])
def test_what_comes_of_scores_that_are_none_is_not_taken_for_an_answer(way, value):
    model = tiny_gpt(0, vocab_size=7, max_len=8)
    with torch.no_grad():
        model.norm.bias[1] = value
        model.norm.bias[2] = -value
        model.embedding.weight[:, 1:3] = torch.tensor([3.0, -3.0])
    with pytest.raises(FloatingPointError, match="next token are not finite"):
        WAYS[way](model, [[1, 2]], max_len=3)


@pytest.mark.parametrize("way", WAYS)
def test_tokens_that_are_ruled_out_are_never_written(way, monkeypatch):
    model = tiny_gpt(0, vocab_size=7, max_len=8)
    forward = type(model).forward

    def rule_out(self, *args, **kwargs):
        logits = forward(self, *args, **kwargs)
        return logits.index_fill(-1, torch.tensor([0, 1, 2, 3, 5, 6]), -math.inf)

    monkeypatch.setattr(type(model), "forward", rule_out)
    ids = WAYS[way](model, [[1, 2]], max_len=3)
    assert ids.tolist() == [[4, 4, 4]]
