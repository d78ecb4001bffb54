"""A model's heads as its draft: every text enumerated, every proposal in its place."""

import itertools

import pytest
import torch
from torch.testing import assert_close

from brute_force import decisive, tiny_gpt
from known_heads import counting, of_the_last_token
from test_speculative import OPTIONS, farthest, run_every_path, texts_of_the_model
from tformer import (
    CausalLM,
    CausalLMConfig,
    MultiTokenHeads,
    Parts,
    greedy,
    speculative_sample,
)
from tformer.generate import speculative
from tformer.generate.drafts import HeadsDraft, Trunk
from tformer.generate.given import check_given
from tformer.generate.sampling import next_logits
from tformer.generate.speculative import speculate

V = 3
PROMPT = torch.tensor([[2, 0]])


def causal_lm(vocab_size=V, **parts):
    torch.manual_seed(1)
    sizes = {"vocab_size": vocab_size, "d_model": 8, "num_heads": 2, "num_layers": 2}
    config = CausalLMConfig(**sizes, max_len=30, parts=Parts(**parts))
    return decisive(CausalLM(config)).double()


def gpt():
    return tiny_gpt(1, vocab_size=V, num_layers=1, d_model=8, num_heads=2).double()


def heads_for(model, num_ahead=2, **options):
    torch.manual_seed(3)
    return MultiTokenHeads(model.config.d_model, num_ahead, **options).double().eval()


def texts_of(model, heads, n, ahead, eos_id=None, prompt=PROMPT, **options):
    """Return the exact probability of every text, and how many guesses are kept."""
    options = {"temperature": 1.0, **options}

    def run(choose):
        asked = check_given(model, prompt, max_len=n, eos_id=eos_id)
        trunk = Trunk(model, asked, ahead)

        def probabilities(logits):
            return next_logits(logits, **options).softmax(-1)

        draft = HeadsDraft(heads, trunk, ahead)
        return speculate(trunk, draft, asked, ahead, probabilities, choose)

    total: dict[tuple[int, ...], float] = {}
    checked = accepted = 0.0
    with torch.no_grad():
        for result, probability in run_every_path(run):
            text = tuple(result.ids[0].tolist())
            total[text] = total.get(text, 0.0) + probability
            checked += result.checked * probability
            accepted += result.accepted * probability
    return total, accepted / checked


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("see_tokens", [True, False])
def test_the_distribution_of_all_texts_is_the_models_own(options, see_tokens):
    model = gpt()
    heads = heads_for(model, see_tokens=see_tokens)
    ours, kept = texts_of(model, heads, 3, 2, **options)
    assert abs(sum(ours.values()) - 1) < 1e-12
    assert farthest(ours, texts_of_the_model(model, 3, **options)) < 1e-12
    assert 0.01 < kept < 0.99  # so that both courses are among those


@pytest.mark.parametrize(
    ("model", "prompt", "eos_id"),
    [
        (causal_lm(), PROMPT, None),
        (causal_lm(window=2), torch.tensor([[2, 0, 1, 1]]), None),
        (causal_lm(), PROMPT[:, :1], None),
        (gpt(), PROMPT, 1),
    ],
    ids=["CausalLM", "window", "one token", "end token"],
)
def test_so_it_is_for_other_trunks_and_prompts(model, prompt, eos_id):
    ours, kept = texts_of(model, heads_for(model), 3, 2, eos_id, prompt)
    wanted = texts_of_the_model(model, 3, eos_id, prompt)
    assert farthest(ours, wanted) < 1e-12
    assert 0.01 < kept < 0.99


def test_the_enumeration_finds_a_q_that_was_not_drawn_from(monkeypatch):
    """The heads draw at one temperature, and the rule compares with another."""
    model = gpt()
    heads = heads_for(model)
    for name in ("acceptance", "after_rejection"):
        rule = getattr(speculative, name)

        def warm(p, q, rule=rule):
            return rule(p, (q.log() / 2).softmax(-1))

        monkeypatch.setattr(speculative, name, warm)
    wrong, _ = texts_of(model, heads, 3, 2)
    assert farthest(wrong, texts_of_the_model(model, 3)) > 1e-3


@pytest.mark.parametrize("parts", [{}, {"window": 3}, {"positions": "learned"}])
@pytest.mark.parametrize("ahead", [1, 3])
def test_at_temperature_0_it_is_greedy(parts, ahead):
    model, prompt = causal_lm(11, **parts), [[1, 2, 0, 1]]
    ours = speculative_sample(
        model, heads_for(model, 3), prompt, max_len=15, ahead=ahead, temperature=0
    )
    assert torch.equal(ours.ids, greedy(model, prompt, max_len=15))
    assert ours.forwards + ours.accepted == 15


@pytest.mark.parametrize("known", [of_the_last_token, counting])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_heads_that_know_are_always_right(known, temperature):
    """So each proposal is made from the right state, token and head."""
    model, heads = known()
    options = {"ahead": 3, "temperature": temperature}
    ours = speculative_sample(model, heads, [[1, 2, 3]], max_len=16, **options)
    assert (ours.forwards, ours.checked, ours.accepted) == (4, 12, 12)
    if known is counting:
        assert ours.ids[0].tolist() == [(4 + i) % 5 for i in range(16)]


@pytest.mark.parametrize("fault", ["state", "head", "token"])
def test_a_count_finds_a_proposal_from_the_wrong_place(monkeypatch, fault):
    """The texts are right all the same: no comparison of texts finds it."""
    model, heads = of_the_last_token() if fault == "token" else counting()
    if fault == "state":  # of one token before
        right = Trunk.state_after

        def wrong(self, length):
            return right(self, max(length - 1, self._first + 1))

        monkeypatch.setattr(Trunk, "state_after", wrong)
    elif fault == "head":  # each begins from the trunk's state
        right = HeadsDraft.scores

        def from_the_trunk(self, text):
            self._state = self.trunk.state_after(text.shape[1] - 1 - self._used)
            return right(self, text)

        monkeypatch.setattr(HeadsDraft, "scores", from_the_trunk)
    else:
        right = HeadsDraft.scores
        monkeypatch.setattr(HeadsDraft, "scores", lambda self, x: right(self, 0 * x))
    options = {"ahead": 3, "temperature": 0, "max_len": 16}
    ours = speculative_sample(model, heads, [[1, 2, 3]], **options)
    assert torch.equal(ours.ids, greedy(model, [[1, 2, 3]], max_len=16))
    assert ours.accepted < 12


@pytest.mark.parametrize("parts", [{}, {"window": 3}])
@pytest.mark.parametrize("pieces", [[1, 1, 1, 1, 1, 1], [4, 1, 2], [7]])
def test_what_is_proposed_is_as_without_a_cache(parts, pieces):
    model = causal_lm(11, **parts)
    heads, n, ids = heads_for(model, 3), 3, torch.randint(11, (1, 12))
    with torch.no_grad():
        whole = heads(model, ids)
        trunk = Trunk(model, check_given(model, ids[:, :1], max_len=20), n)
        draft = HeadsDraft(heads, trunk, n)
        for L in itertools.accumulate(pieces):
            trunk.scores(ids[:, :L])
            draft.truncate(L)
            for k in range(n):
                ours = draft.scores(ids[:, : L + k + 1])
                assert_close(ours, whole[k][:, L - 1], atol=1e-12, rtol=1e-12)


def test_the_modes_stay_and_the_seed_counts():
    model = gpt()
    heads = heads_for(model).train()

    def write(seed):
        generator = torch.Generator().manual_seed(seed)
        options = {"ahead": 2, "max_len": 9, "generator": generator}
        return speculative_sample(model, heads, PROMPT, **options).ids

    assert torch.equal(write(0), write(0))
    assert not torch.equal(write(0), write(1))
    assert heads.training


def test_errors(raises):
    model = gpt()
    message = "ahead (4) must be at most 2: as many as the draft has heads"
    with raises(ValueError, message):
        speculative_sample(model, heads_for(model), PROMPT, max_len=3)
    other = MultiTokenHeads(6, 2)
    message = "the heads' d_model (6) must be that of the model (8)"
    with raises(ValueError, message):
        speculative_sample(model, other, PROMPT, max_len=3, ahead=2)
    with raises(ValueError, "given must be one prompt, not 2"):
        speculative_sample(
            model, heads_for(model), PROMPT.expand(2, -1), max_len=3, ahead=2
        )
