"""Tree verification: one forward scores every path as it would be alone."""

import pytest
import torch
from torch.testing import assert_close

from brute_force import decisive
from known_heads import counting, of_the_last_token
from small_models import MODERN
from tformer import greedy
from tformer.generate import DraftTree, accepted_path, tree_greedy, tree_mask
from tformer.generate.speculative import speculative_sample
from tformer.generate.tree import tree_states
from tformer.models import MultiTokenHeads
from tformer.models.families import custom
from tformer.models.shared_layers import SharedLayersLM
from tformer.nn import LongRotaryEmbedding, QueryTemperature, SharedKeysAttention
from tformer.nn.linear_attention import LinearAttention

V = 11
TREE = DraftTree([3, 5, 1, 1, 7, 3], [-1, -1, 0, 1, 1, 3])


def growing(model):
    """Scale its queries by their positions."""
    for block in model.blocks:
        block.attention.temperature = QueryTemperature(0.5, 2)
    return model


def sharing(model):
    """Let the second layer read the keys and values of the first."""
    rotary = model.blocks[1].attention.rotary
    own = SharedKeysAttention(8, 2, bias=False, rotary=rotary, shared_kv=True)
    model.blocks[1].attention = own
    parts, options = (model.embedding, model.blocks, model.norm), {"max_len": 30}
    return SharedLayersLM(*parts, kv_sources={1: 0}, **options)


FORMS = {
    "rotary": {},
    "learned": {"positions": "learned"},
    "sinusoids": {"positions": "sinusoidal"},
    "post-norm": {"placement": "post", "positions": "learned"},
    "fewer key heads": {"kv_heads": 1, "sinks": True, "softcap": 5.0},
    "temperature": {"change": growing},
    "shared keys": {"change": sharing},
}


def causal_lm(seed=1, change=lambda model: model, **parts):
    torch.manual_seed(seed)
    sizes = {"vocab_size": V, "d_model": 8, "num_heads": 2, "max_len": 30}
    return decisive(change(custom.build({**MODERN, **sizes, **parts}))).double().eval()


def heads_for(model, num_ahead=3, **options):
    torch.manual_seed(3)
    return MultiTokenHeads(model.d_model, num_ahead, **options).double().eval()


def path_to(node, parents):
    """Name a node's ancestors and itself, the first first."""
    return [] if node < 0 else [*path_to(parents[node], parents), node]


def test_a_node_sees_itself_and_its_ancestors():
    seen = [path_to(node, TREE.parents) for node in range(len(TREE.tokens))]
    assert [row.nonzero()[:, 0].tolist() for row in tree_mask(TREE.parents)] == seen
    assert tree_mask([]).shape == (0, 0)


@pytest.mark.parametrize("parts", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("read", "newest"), [(0, 1), (3, 2)])
@torch.no_grad()
def test_one_forward_gives_each_path_the_states_of_its_own_text(parts, read, newest):
    model = causal_lm(**parts)
    text = torch.randint(V, (1, read + newest))
    cache = model.new_cache(20)
    if read:
        model(text[:, :read], cache=cache)
    ours = tree_states(model, text[:, read:], TREE, cache)
    assert ours.shape == (1, newest + 6, 8)
    assert_close(ours[:, :newest], model.states(text)[:, read:], atol=1e-12, rtol=0)
    for node in range(6):
        draft = [TREE.tokens[i] for i in path_to(node, TREE.parents)]
        alone = model.states(torch.tensor([[*text[0].tolist(), *draft]]))
        assert_close(ours[:, newest + node], alone[:, -1], atol=1e-12, rtol=0)
    cache.truncate(read + newest)  # and the cache goes on as if there had been no tree
    more = torch.tensor([[2, 4]])
    whole = model(torch.cat((text, more), dim=1))[:, -2:]
    assert_close(model(more, cache=cache), whole, atol=1e-12, rtol=0)


@pytest.mark.parametrize("parts", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("widths", [(), (4, 1, 2), (11,)])
def test_it_writes_what_greedy_writes(parts, widths):
    model, prompt = causal_lm(**parts), [[1, 2, 0, 1]]
    for options in ({}, {"see_tokens": False}):
        heads = heads_for(model, **options)
        ours = tree_greedy(model, heads, prompt, max_len=15, widths=widths)
        assert torch.equal(ours.ids, greedy(model, prompt, max_len=15))
        assert ours.forwards + ours.accepted >= 15
    if widths == (11,):  # the whole vocabulary: always right, so two tokens a forward
        assert (ours.forwards, ours.accepted) == (8, 7)


def test_a_chain_is_speculative_decoding():
    model = causal_lm()
    heads = heads_for(model)
    options = {"max_len": 20}
    ours = tree_greedy(model, heads, [[1, 2]], widths=(1, 1, 1), **options)
    other = speculative_sample(
        model, heads, [[1, 2]], ahead=3, temperature=0, **options
    )
    assert torch.equal(ours.ids, other.ids)
    assert ours[1:] == other[1:]


@pytest.mark.parametrize("known", [of_the_last_token, counting])
def test_heads_that_know_are_always_right(known):
    model, heads = known()
    ours = tree_greedy(model, heads, [[0, 1, 2]], max_len=16, widths=(2, 1, 2))
    assert (ours.forwards, ours.checked, ours.accepted) == (4, 12, 12)
    assert torch.equal(ours.ids, greedy(model, [[0, 1, 2]], max_len=16))


def test_a_wider_tree_accepts_more():
    model = causal_lm()
    heads, options = heads_for(model), {"max_len": 20}
    counts = [
        tree_greedy(model, heads, [[1, 2]], widths=(width, 1), **options).forwards
        for width in (1, 4, V)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[2]


def test_the_path_ends_with_the_models_own_token():
    chosen = [5, 0, 1, 0, 3, 0, 8]  # after the text, and after each node of TREE
    assert accepted_path(TREE, chosen) == ([5, 1, 3, 8], 5)
    assert accepted_path(TREE, [9, *chosen[1:]]) == ([9], -1)
    assert accepted_path(DraftTree([], []), [4]) == ([4], -1)


def test_it_ends_at_the_end_token_and_takes_one_token():
    model = causal_lm()
    heads, prompt = heads_for(model), [[1]]
    wanted = greedy(model, prompt, max_len=12)
    stop = int(wanted[0, 6])
    ours = tree_greedy(model, heads, prompt, max_len=12, eos_id=stop)
    assert torch.equal(ours.ids, greedy(model, prompt, max_len=12, eos_id=stop))
    assert ours.ids.shape[1] < 12


def test_errors(raises):
    model = causal_lm()

    def fails(message, model=model, prompt=([1, 2],), **options):
        with raises(ValueError, message):
            tree_greedy(model, heads_for(model), prompt, max_len=3, **options)

    fails("widths[1] (0) must be at least 1", widths=(2, 0))
    fails("widths (12) must be at most vocab_size (11)", widths=(2, 12))
    message = "len(widths) (4) must be at most 3: as many as the draft has heads"
    fails(message, widths=[1] * 4)
    fails("given must be one prompt, not 2", prompt=[[1], [2]])
    rule, kind = "tree verification needs", "MultiHeadAttention; blocks[0] has"
    by_distance = {"window": {"window": 4}, "relative": {"positions": "alibi"}}
    for name, parts in by_distance.items():
        other = causal_lm(**parts)
        fails(f"{rule} attention without {name}; blocks[0] has it", other)
        with raises(ValueError, "positions are for attention without relative, window"):
            other.states(torch.tensor([[1, 2]]), positions=torch.tensor([0, 0]))
    fails(f"{rule} {kind} LatentAttention", causal_lm(kv_rank=4))
    first = model.blocks[0].attention
    rotary, first.rotary = first.rotary, LongRotaryEmbedding(first.rotary, None, 9)
    fails(f"{rule} RotaryEmbedding; blocks[0] has LongRotaryEmbedding")
    first.rotary = rotary
    model.blocks[0].attention = LinearAttention(8, 2)
    fails(f"{rule} {kind} LinearAttention")
    with raises(ValueError, "parents[1] (1) must be an earlier node, or -1: below 1"):
        tree_mask([-1, 1])
