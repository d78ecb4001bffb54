"""Speculative decoding: the distribution of every text, enumerated; its cost."""

import math
from unittest.mock import patch

import pytest
import torch
from torch.testing import assert_close

from brute_force import decisive, expected_forwards, run_every_path, tiny_gpt
from known_heads import counting, of_the_last_token
from small_models import MODERN
from tformer import CausalLM, greedy
from tformer.generate import speculative
from tformer.generate.drafts import HeadsDraft, Trunk
from tformer.generate.given import check_given
from tformer.generate.sampling import next_logits
from tformer.generate.speculative import after_rejection, speculative_sample
from tformer.models import MultiTokenHeads
from tformer.models.families import custom

V = 3
PROMPT = torch.tensor([[2, 0]])
OPTIONS = {
    "plain": {},
    "cold": {"temperature": 0.6},
    "top-k": {"temperature": 1.7, "top_k": 2},
    "top-p": {"top_p": 0.9},
    "min-p": {"temperature": 0.8, "min_p": 0.3},
}


def gpt(seed=1, **changes):
    sizes = {"vocab_size": V, "num_layers": 1, "d_model": 8, "num_heads": 2}
    return tiny_gpt(seed, **{**sizes, "max_len": 40, **changes}).double()


def causal_lm(seed=1, vocab_size=V, **parts):
    torch.manual_seed(seed)
    sizes = {"vocab_size": vocab_size, "d_model": 8, "num_heads": 2, "max_len": 30}
    config = {**MODERN, **sizes, **parts}
    return decisive(custom.build(config)).double()


def heads_for(model, num_ahead=2, **options):
    torch.manual_seed(3)
    return MultiTokenHeads(model.d_model, num_ahead, **options).double().eval()


DRAFTS = {
    "a model": lambda _: gpt(2),
    "heads": heads_for,
    "heads that see no token": lambda model: heads_for(model, see_tokens=False),
}


def every_run(model, draft, prompt=PROMPT, **options):
    """Yield every `Speculation` that can come, with its exact probability."""

    def run(choose):
        with patch.object(speculative, "draw", lambda z, _: choose(z[0].exp())):
            return speculative_sample(model, draft, prompt, **options)

    return run_every_path(run)


def texts_of(model, draft, **options):
    """Return the exact probability of every text, and how many guesses are kept."""
    total: dict[tuple[int, ...], float] = {}
    checked = accepted = 0.0
    for result, probability in every_run(model, draft, **{"max_len": 3, **options}):
        text = tuple(result.ids[0].tolist())
        total[text] = total.get(text, 0.0) + probability
        checked += result.checked * probability
        accepted += result.accepted * probability
    return total, accepted / checked


def texts_of_the_model(model, n=3, eos_id=None, prompt=PROMPT, **options):
    """The same by the definition: a product of the model's probabilities, no cache."""
    texts, options = {(): 1.0}, {"temperature": 1.0, **options}
    for _ in range(n):
        longer = {}
        for text, product in texts.items():
            if eos_id is not None and eos_id in text:
                longer[text] = product
                continue
            ids = torch.tensor([[*prompt[0].tolist(), *text]])
            with torch.no_grad():
                p = next_logits(model(ids)[:, -1], **options).softmax(-1)[0]
            longer |= {(*text, i): product * p[i].item() for i in range(V)}
        texts = {text: product for text, product in longer.items() if product > 0}
    return texts


def farthest(a, b):
    return max(abs(a.get(text, 0) - b.get(text, 0)) for text in a.keys() | b.keys())


@pytest.mark.by_day(4)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS)
@pytest.mark.parametrize("ahead", [1, 2])
def test_the_distribution_of_all_texts_is_the_models_own(draft, options, ahead):
    model = gpt()
    ours, kept = texts_of(model, draft(model), ahead=ahead, **options)
    assert abs(sum(ours.values()) - 1) < 1e-12
    assert farthest(ours, texts_of_the_model(model, **options)) < 1e-12
    assert 0.01 < kept < 0.999  # so that both courses are among those


OTHERS = {
    "CausalLM": ({}, {}),
    "window": ({"window": 2}, {"prompt": torch.tensor([[2, 0, 1, 1]])}),
    "one token": ({}, {"prompt": PROMPT[:, :1]}),
    "end token": ({}, {"eos_id": 1}),
}


@pytest.mark.by_day(3)
@pytest.mark.parametrize(("parts", "options"), OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("draft", [DRAFTS["a model"], heads_for])
def test_so_it_is_for_other_models_and_prompts(parts, draft, options):
    model = causal_lm(num_layers=1, **parts)
    ours, kept = texts_of(model, draft(model), ahead=2, **options)
    assert farthest(ours, texts_of_the_model(model, **options)) < 1e-12
    assert 0.01 < kept < 0.99


@pytest.mark.parametrize("parts", [{}, {"window": 3}, {"positions": "learned"}])
@pytest.mark.parametrize("ahead", [1, 3, 20])
@pytest.mark.parametrize("heads", [True, False])
def test_at_temperature_0_it_is_greedy(parts, ahead, heads):
    model, other = (causal_lm(seed, 11, **parts) for seed in (1, 2))
    draft, prompt = heads_for(model, ahead) if heads else other, [[1, 2, 0, 1]]
    options = {"max_len": 15, "ahead": ahead, "temperature": 0}
    ours = speculative_sample(model, draft, prompt, **options)
    assert torch.equal(ours.ids, greedy(model, prompt, max_len=15))
    assert ours.forwards + ours.accepted == 15


@pytest.mark.parametrize("known", [of_the_last_token, counting, lambda: (gpt(), gpt())])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_a_draft_that_knows_is_always_right(known, temperature):
    """So each proposal is made from the right state, token and head."""
    model, draft = known()
    options = {"ahead": 3, "temperature": temperature}
    ours = speculative_sample(model, draft, [[0, 1, 2]], max_len=16, **options)
    assert (ours.forwards, ours.checked, ours.accepted) == (4, 12, 12)
    if known is counting:
        assert ours.ids[0].tolist() == [(3 + i) % 5 for i in range(16)]


@torch.no_grad()
@pytest.mark.parametrize("parts", [{}, {"window": 3}])
def test_what_heads_propose_is_as_without_a_cache(parts):
    model = causal_lm(1, 11, **parts)
    heads, n, ids = heads_for(model, 3), 3, torch.randint(11, (1, 12))
    whole = heads(model, ids)
    trunk = Trunk(model, check_given(model, ids[:, :1], max_len=20), n)
    draft = HeadsDraft(heads, trunk, n)
    for L in (4, 5, 7):
        trunk.scores(ids[:, :L])
        draft.truncate(L)
        for k in range(n):
            ours = draft.scores(ids[:, : L + k + 1])
            assert_close(ours, whole[k][:, L - 1], atol=1e-12, rtol=1e-12)


def test_where_both_want_the_same_nothing_is_missing():
    p = torch.tensor([0.5, 0.3, 0.2])
    assert_close(after_rejection(p, p), p)


class Constant(CausalLM):
    """Gives the same probabilities whatever it reads."""

    def forward(self, ids, *, cache=None, last_only=False):
        super().forward(ids, cache=cache)  # fills the cache
        return self.p.log().expand(1, ids.shape[1], -1)


@pytest.mark.parametrize("ahead", [1, 2, 3])
def test_how_many_forwards_it_takes(ahead):
    """With the same p and q everywhere, of which Σ min(p, q) is kept on average."""
    model, draft, n = gpt(vocab_size=2), gpt(vocab_size=2), 4
    p, q = torch.tensor([[0.7, 0.3], [0.4, 0.6]], dtype=torch.float64)
    for each, probabilities in ((model, p), (draft, q)):
        each.__class__, each.p = Constant, probabilities
    options = {"prompt": PROMPT // 2, "max_len": n, "ahead": ahead}
    paths = every_run(model, draft, **options)
    forwards = sum(result.forwards * probability for result, probability in paths)
    alpha = torch.minimum(p, q).sum().item()
    assert forwards == pytest.approx(expected_forwards(n, ahead, alpha), abs=1e-12)
    # In the long run a forward writes (1 − α^(K + 1)) / (1 − α) tokens.
    a_token = expected_forwards(100, ahead, alpha) - expected_forwards(99, ahead, alpha)
    long_run = (1 - alpha ** (ahead + 1)) / (1 - alpha)
    assert 1 / a_token == pytest.approx(long_run, rel=1e-6)


@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS)
def test_a_seed_gives_the_same_text_and_the_arguments_count(draft):
    model = gpt()
    draft = draft(model).train()

    def write(**options):
        generator = torch.Generator().manual_seed(3)
        options = {"max_len": 20, "generator": generator, "ahead": 2, **options}
        return speculative_sample(model, draft, PROMPT, **options)

    assert torch.equal(write().ids, write().ids)
    assert not torch.equal(write().ids, write(temperature=0.3).ids)
    for narrow in ({"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}):
        assert torch.equal(write(**narrow).ids, greedy(model, PROMPT, max_len=20))
    assert write(ahead=1).forwards >= 10
    assert draft.training
    assert not model.training


def test_errors(raises):
    model = gpt()

    def fails(message, draft=model, prompt=PROMPT, **options):
        with raises(ValueError, message):
            speculative_sample(model, draft, prompt, max_len=3, **options)

    heads = heads_for(model)
    fails("ahead (0) must be at least 1", ahead=0)
    fails("temperature (-1) must be at least 0 and finite", temperature=-1)
    fails("given must be one prompt, not 2", prompt=PROMPT.expand(2, -1))
    fails("given must be one prompt, not 2", heads, PROMPT.expand(2, -1), ahead=2)
    other = tiny_gpt(1, vocab_size=4)
    fails("the draft's vocab_size (4) must be that of the model (3)", other)
    fails("ahead (4) must be at most 2: as many as the draft has heads", heads)
    message = "the heads' d_model (6) must be that of the model (8)"
    fails(message, MultiTokenHeads(6, 2), ahead=2)
    with torch.no_grad():
        model.embedding.weight.fill_(math.nan)
    with pytest.raises(FloatingPointError):
        speculative_sample(model, gpt(2), PROMPT, max_len=3)
