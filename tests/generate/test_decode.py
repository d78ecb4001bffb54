"""The loop that writes: prompts of any length, ends, windows; and greedy decoding."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from brute_force import decisive, tiny_gpt
from tformer import Transformer, TransformerConfig, beam_search, greedy, sample
from tformer.generate.decode import continuing, write
from tformer.nn.memory_layout import turn_weights

BOS, EOS, PAD = 1, 2, 0
WAYS = {
    "greedy": greedy,
    "sample": sample,
    "beam": lambda *given, **o: beam_search(*given, num_beams=2, **o).ids[:, 0],
}


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


def test_the_bare_loop_needs_no_more_than_a_prompt():
    model, prompts = tiny_gpt(0, vocab_size=7), torch.randint(0, 7, (3, 4))
    written = write(continuing(model, model.new_cache(9)), prompts, 6)
    assert torch.equal(written, greedy(model, prompts, max_len=6))


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


def test_a_window_changes_nothing_before_it_is_needed():
    model = tiny_gpt(5, vocab_size=7, max_len=8)
    prompt = torch.tensor([[1, 2, 3]])
    with_window = greedy(model, prompt, max_len=6, window=2)
    assert torch.equal(with_window, greedy(model, prompt, max_len=6))


def make_model(seed: int = 0, **changes) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 13, "d_model": 14, "num_heads": 7, "d_ff": 22}
    options = {"tie_embeddings": False, **changes}  # tied, it repeats the last token
    model = Transformer(TransformerConfig.tiny(**{**sizes, **options}))
    return decisive(model)


def sources(seed: int = 0) -> torch.Tensor:
    src = torch.randint(3, 13, (11, 5), generator=torch.Generator().manual_seed(seed))
    src[3, 4:] = PAD
    src[7, 1:] = PAD
    return src


@torch.no_grad()
def by_hand(model: Transformer, src: torch.Tensor, max_len: int) -> list[list[int]]:
    """Each row by itself, without padding, by the whole model."""
    model.eval()
    rows = []
    for row in src:
        row = row[row != PAD][None]
        tgt = torch.tensor([[BOS]])
        while tgt.shape[1] <= max_len and tgt[0, -1] != EOS:
            newest = model(row, tgt)[:, -1].argmax(-1, keepdim=True)
            tgt = torch.cat((tgt, newest), dim=1)
        rows.append(tgt[0, 1:].tolist())
    return rows


@pytest.mark.parametrize("norm_first", [False, True])
def test_greedy_equals_argmax_by_the_whole_model(norm_first):
    ends = set()
    for seed in range(6):
        model = make_model(seed, norm_first=norm_first)
        src = sources(seed)
        out = greedy(model, src, bos_id=BOS, eos_id=EOS, max_len=9)
        expected = by_hand(model, src, 9)
        longest = max(map(len, expected))
        assert out.shape == (11, longest)
        assert out.dtype == torch.int64
        padded = [row + [PAD] * (longest - len(row)) for row in expected]
        assert out.tolist() == padded
        ends |= {len(row) for row in expected}
    assert len(ends) > 2  # rows that end early, and at different lengths


class Scripted(Transformer):
    """Writes 3, 4, 5, … and ends row b after b + 1 tokens."""

    def decode(self, tgt, memory, *, memory_key_mask=None, cache=None):
        B, new = tgt.shape
        self.lengths.append(new)
        T = len(self.lengths)
        logits = torch.zeros(B, 1, 13)
        for b in range(B):
            logits[b, -1, EOS if b + 1 == T else 2 + T] = 1.0
        return logits


@pytest.mark.parametrize(
    ("max_len", "pad_id", "written"),
    [
        (9, PAD, [[EOS, PAD, PAD], [3, EOS, PAD], [3, 4, EOS]]),
        (2, PAD, [[EOS, PAD], [3, EOS], [3, 4]]),  # cut
        (9, None, [[EOS, EOS, EOS], [3, EOS, EOS], [3, 4, EOS]]),
    ],
)
def test_rows_end_and_the_loop_with_the_last(max_len, pad_id, written):
    model = Scripted(TransformerConfig.tiny(vocab_size=13, pad_id=pad_id))
    model.lengths = []
    out = greedy(model, sources()[:3], bos_id=BOS, eos_id=EOS, max_len=max_len)
    assert out.tolist() == written
    assert model.lengths == [1] * len(written[0])  # not 9 steps, each of one token


def test_the_source_is_encoded_once():
    model = make_model()
    calls = []
    model.encoder.register_forward_hook(lambda *_: calls.append(1))
    out = greedy(model, sources(), bos_id=BOS, eos_id=EOS, max_len=9)
    assert out.shape[1] > 1
    assert len(calls) == 1


def test_a_given_mask_hides_what_it_says():
    model, src = make_model(), sources()[:3, :3]
    visible = torch.ones(3, 3, dtype=torch.bool)
    visible[:, 2] = False
    options = {"bos_id": BOS, "eos_id": EOS, "max_len": 6}
    masked = greedy(model, src, src_key_mask=visible, **options)
    other = src.clone()
    other[:, 2] = 3 + (src[:, 2] - 2) % 10
    assert torch.equal(masked, greedy(model, other, src_key_mask=visible, **options))
    assert torch.equal(masked, greedy(model, src[:, :2], **options))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_model_is_asked_in_eval_and_without_gradients(way):
    class Watched(nn.Module):
        def forward(self, x):
            assert not torch.is_grad_enabled()
            assert not self.training
            return x

    model = make_model(dropout=0.5).train()
    model.dropout = Watched().train()
    model.encoder.eval()
    before = [module.training for module in model.modules()]
    options = {"bos_id": BOS, "eos_id": EOS, "max_len": 6}
    generators = (torch.Generator().manual_seed(0) for _ in range(2))
    extra = [{"generator": g} if way is sample else {} for g in generators]
    first, again = (way(model, sources(), **options, **each) for each in extra)
    assert torch.equal(first, again)  # without dropout
    assert not first.requires_grad
    assert torch.is_grad_enabled()
    assert [module.training for module in model.modules()] == before


def test_learned_positions_can_be_used_to_the_last():
    model = make_model(positions="learned", max_len=5)
    out = greedy(model, sources(), bos_id=BOS, eos_id=12, max_len=5)
    assert out.shape[1] <= 5


@pytest.mark.parametrize("tied", [False, True])
def test_turned_weights_write_the_same(tied):
    model = make_model(tie_embeddings=tied)
    options = {"bos_id": BOS, "eos_id": EOS, "max_len": 9}
    before = greedy(model, sources(), **options)
    weights = {name: w.clone() for name, w in model.state_dict().items()}
    for _ in range(2):
        assert turn_weights(model) is model
        assert torch.equal(greedy(model, sources(), **options), before)
        assert model.state_dict().keys() == weights.keys()
        for name, weight in model.state_dict().items():
            assert torch.equal(weight, weights[name])
        turned = model.decoder.blocks[0].feed_forward.linear1.weight
        assert turned.stride() == (1, 22)
        assert turned.requires_grad


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
