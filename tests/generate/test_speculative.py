"""Speculative decoding: the distribution of every text, enumerated; its cost."""

import functools
import math

import pytest
import torch
from torch.testing import assert_close

from brute_force import decisive, tiny_gpt
from tformer import CausalLM, CausalLMConfig, Parts, greedy, speculative_sample
from tformer.generate import speculative
from tformer.generate.drafts import Reader
from tformer.generate.given import check_given
from tformer.generate.sampling import next_logits
from tformer.generate.speculative import acceptance, after_rejection, speculate
from tformer.nn.model_cache import DecoderCache

V = 3
PROMPT = torch.tensor([[2, 0]])
OPTIONS = {
    "plain": {},
    "cold": {"temperature": 0.6},
    "top-k": {"temperature": 1.7, "top_k": 2},
    "top-p": {"top_p": 0.9},
    "min-p": {"temperature": 0.8, "min_p": 0.3},
}


def models(**changes):
    """Two models that see things differently, in double precision."""
    sizes = {"vocab_size": V, "num_layers": 1, "d_model": 8, "num_heads": 2, **changes}
    return tiny_gpt(1, **sizes).double(), tiny_gpt(2, **sizes).double()


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


def texts_of(model, draft, n, ahead, eos_id=None, **options):
    """Return the exact probability of every text that `speculate` may write."""
    options = {"temperature": 1.0, **options}

    def probabilities(logits):
        return next_logits(logits, **options).softmax(-1)

    def run(choose):
        asked = [
            check_given(x, PROMPT, max_len=n, eos_id=eos_id) for x in (model, draft)
        ]
        both = (Reader(x, y, ahead) for x, y in zip((model, draft), asked, strict=True))
        return speculate(*both, asked[0], ahead, probabilities, choose)

    total: dict[tuple[int, ...], float] = {}
    with torch.no_grad():
        for result, probability in run_every_path(run):
            text = tuple(result.ids[0].tolist())
            total[text] = total.get(text, 0.0) + probability
    return total


def texts_of_the_model(model, n, eos_id=None, prompt=PROMPT, **options):
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


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("ahead", [1, 2])
def test_the_distribution_of_all_texts_is_the_models_own(options, ahead):
    model, draft = models()
    ours = texts_of(model, draft, 3, ahead, **options)
    wanted = texts_of_the_model(model, 3, **options)
    assert abs(sum(ours.values()) - 1) < 1e-12
    assert farthest(ours, wanted) < 1e-12
    # The draft alone writes something else, so that the equality says something.
    assert farthest(texts_of_the_model(draft, 3, **options), wanted) > 0.01


def test_so_it_is_with_an_end_token():
    model, draft = models()
    ours = texts_of(model, draft, 3, 2, eos_id=1)
    assert {len(text) for text in ours} == {1, 2, 3}
    assert farthest(ours, texts_of_the_model(model, 3, eos_id=1)) < 1e-12


FAULTS = {
    "all are kept": ("acceptance", lambda p, _: torch.ones_like(p)),
    "drawn from p after a rejection": ("after_rejection", lambda p, _: p),
    "q / p": ("acceptance", lambda p, q: (q / p).clamp(max=1.0)),
    "kept if it is the likeliest": (
        "acceptance",
        lambda p, _: (p == p.max()).to(p.dtype),
    ),
}


@pytest.mark.parametrize(("name", "fault"), FAULTS.values(), ids=FAULTS)
def test_the_enumeration_finds_a_wrong_rule(monkeypatch, name, fault):
    model, draft = models()
    monkeypatch.setattr(speculative, name, fault)
    wrong = texts_of(model, draft, 2, 1)
    assert farthest(wrong, texts_of_the_model(model, 2)) > 1e-3


def test_the_enumeration_finds_a_cache_that_is_not_cut_back(monkeypatch):
    model, draft = models(max_len=40)
    right = texts_of(model, draft, 3, 2)
    read = {}  # how many tokens of its text each has read: only this is cut back

    def unread(reader, text):
        start, read[reader] = read.get(reader, 1), text.shape[1]
        return text[:, start:]

    def truncate(reader, length):
        read[reader] = min(length, read.get(reader, 1))

    monkeypatch.setattr(Reader, "unread", unread)
    monkeypatch.setattr(Reader, "truncate", truncate)
    for each in (model, draft):
        monkeypatch.setattr(each, "new_cache", lambda _: DecoderCache(1, 40))
    wrong = texts_of(model, draft, 3, 2)
    assert farthest(wrong, right) > 1e-3


@pytest.mark.parametrize(
    "changes",
    [None, {}, {"window": 3}, {"positions": "learned"}],
    ids=["GPT", "CausalLM", "window", "learned"],
)
@pytest.mark.parametrize("ahead", [1, 3, 20])
def test_at_temperature_0_it_is_greedy(changes, ahead):
    if changes is not None:
        sizes = {"vocab_size": 11, "d_model": 16, "num_heads": 2, "num_layers": 2}
        config = CausalLMConfig(**sizes, max_len=30, parts=Parts(**changes))
        model, draft = (decisive(CausalLM(config)).double() for _ in range(2))
    else:
        model, draft = models(max_len=30)
    prompt = [[1, 2, 0, 1]]
    wanted = greedy(model, prompt, max_len=15)
    ours = speculative_sample(
        model, draft, prompt, max_len=15, ahead=ahead, temperature=0
    )
    assert torch.equal(ours.ids, wanted)
    assert ours.forwards + ours.accepted == 15


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_a_draft_that_is_the_model_is_always_right(temperature):
    model, _ = models()
    options = {"max_len": 9, "temperature": temperature}
    ours = speculative_sample(model, model, PROMPT, ahead=2, **options)
    assert (ours.forwards, ours.checked, ours.accepted) == (3, 6, 6)
    assert ours.ids.shape == (1, 9)


def test_the_rule_keeps_what_both_want_and_fills_the_rest():
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.6, 0.2])
    assert_close(acceptance(p, q), torch.tensor([1.0, 0.5, 1.0]))
    assert_close(after_rejection(p, q), torch.tensor([1.0, 0.0, 0.0]))
    assert_close(after_rejection(p, p), p)


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


@pytest.mark.parametrize(("ahead", "n"), [(1, 4), (2, 4), (3, 4)])
def test_how_many_forwards_it_takes(monkeypatch, ahead, n):
    """With the same p and q everywhere, of which Σ min(p, q) is kept on average."""
    p, q = torch.tensor([[0.7, 0.3], [0.4, 0.6]], dtype=torch.float64)
    model, _ = models()

    def run(choose):
        asked = check_given(model, PROMPT, max_len=n)
        readers = [Reader(model, asked, ahead) for _ in range(2)]
        for reader, scores in zip(readers, (p.log(), q.log()), strict=True):
            reader.scores = lambda _, z=scores: z.expand(ahead + 1, -1)
        return speculate(*readers, asked, ahead, lambda z: z.softmax(-1), choose)

    with torch.no_grad():
        paths = list(run_every_path(run))
    forwards = sum(result.forwards * probability for result, probability in paths)
    alpha = torch.minimum(p, q).sum().item()
    assert forwards == pytest.approx(expected_forwards(n, ahead, alpha), abs=1e-12)
    # In the long run a forward writes (1 − α^(K + 1)) / (1 − α) tokens.
    a_token = expected_forwards(100, ahead, alpha) - expected_forwards(99, ahead, alpha)
    long_run = (1 - alpha ** (ahead + 1)) / (1 - alpha)
    assert 1 / a_token == pytest.approx(long_run, rel=1e-6)


def test_a_seed_gives_the_same_text_and_the_arguments_count():
    model, draft = models(max_len=40)

    def write(**options):
        generator = torch.Generator().manual_seed(3)
        options = {"max_len": 20, "generator": generator, **options}
        return speculative_sample(model, draft, PROMPT, **options)

    assert torch.equal(write().ids, write().ids)
    assert not torch.equal(write().ids, write(temperature=0.3).ids)
    assert torch.equal(write(top_k=1).ids, greedy(model, PROMPT, max_len=20))
    assert torch.equal(write(top_p=1e-6).ids, greedy(model, PROMPT, max_len=20))
    assert torch.equal(write(min_p=1.0).ids, greedy(model, PROMPT, max_len=20))
    assert write(ahead=1).forwards >= 10


def test_both_models_keep_their_modes():
    model, draft = models()
    model.train()
    draft.eval()
    speculative_sample(model, draft, PROMPT, max_len=3)
    assert model.training
    assert not draft.training


def test_errors(raises):
    model, draft = models()
    other = tiny_gpt(1, vocab_size=4)
    with raises(ValueError, "ahead (0) must be at least 1"):
        speculative_sample(model, draft, PROMPT, max_len=3, ahead=0)
    with raises(ValueError, "temperature (-1) must be at least 0 and finite"):
        speculative_sample(model, draft, PROMPT, max_len=3, temperature=-1)
    with raises(ValueError, "given must be one prompt, not 2"):
        speculative_sample(model, draft, PROMPT.expand(2, -1), max_len=3)
    message = "the draft's vocab_size (4) must be that of the model (3)"
    with raises(ValueError, message):
        speculative_sample(model, other, PROMPT, max_len=3)
    with torch.no_grad():
        model.embedding.weight.fill_(math.nan)
    with pytest.raises(FloatingPointError):
        speculative_sample(model, draft, PROMPT, max_len=3)
