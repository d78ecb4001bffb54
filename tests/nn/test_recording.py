"""Attention weights that are kept while a model runs."""

import copy
import pickle
import threading

import pytest
import torch
from torch.testing import assert_close

from recorded_model import (
    NAMES,
    B,
    D,
    G,
    H,
    S,
    T,
    draw_inputs,
    make_model,
    untouched,
)
from small_models import small_gpt
from tformer import (
    MultiHeadAttention,
    attention_weights,
    length_mask,
    record_weights,
)
from tformer.nn.heads import split_heads


@pytest.fixture
def attention(float64, randomised):
    return randomised(MultiHeadAttention(D, H, num_kv_heads=G))


@pytest.fixture
def model(randomised):
    return randomised(make_model())


@pytest.fixture
def inputs():
    return draw_inputs()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_they_are_what_attention_weights_returns(attention, dtype):
    attention = attention.to(dtype)
    x, memory = torch.randn(B, T, D).to(dtype), torch.randn(B, S, D).to(dtype)
    mask, options = length_mask(torch.tensor([3, S])), {"is_causal": True}
    with record_weights(attention) as weights:
        attention(x)
        output = attention(x, memory, attn_mask=mask, **options)  # the last is kept
    q = split_heads(attention.q_proj(x), H)
    k = split_heads(attention.k_proj(memory), G)
    wanted = attention_weights(q, k, mask, **options)
    assert torch.equal(weights[attention], wanted)
    assert weights[""] is weights[attention]
    assert wanted.dtype == torch.promote_types(dtype, torch.float32)
    assert torch.equal(output, attention(x, memory, attn_mask=mask, **options))


def test_by_module_and_by_name(model, inputs):
    with record_weights(model) as weights:
        assert len(weights) == 0
        output = model(*inputs)
    assert untouched(model)
    kept = list(weights.values())
    assert_close(model(*inputs), output)
    assert list(weights.by_name()) == NAMES
    assert all(a is b for a, b in zip(weights.values(), kept, strict=True))
    modules = [model.get_submodule(name) for name in NAMES]
    assert set(weights) == set(modules)
    for name, module in zip(NAMES, modules, strict=True):
        assert module in weights
        assert weights[name] is weights[module] is weights.by_name()[name]
        S_or_T = S if name.startswith("enc") or "cross" in name else T
        rows = S if name.startswith("enc") else T
        assert weights[name].shape == (B, H, rows, S_or_T)


def test_an_attention_under_two_names(model, inputs):
    model.decoder.blocks[1] = model.decoder.blocks[0]
    with record_weights(model) as weights:
        model(*inputs)
    assert list(weights.by_name()) == NAMES
    assert weights[NAMES[1]] is weights[NAMES[3]]
    assert untouched(model)


def test_unknown_names_and_modules(model, inputs):
    with record_weights(model) as weights:
        model.encoder(inputs[0])
    with pytest.raises(KeyError, match=r"'encoder' is no attention of the model: enc"):
        weights["encoder"]
    assert list(weights.by_name()) == NAMES[:1]
    with pytest.raises(KeyError, match=f"'{NAMES[1]}' has not run"):
        weights[NAMES[1]]
    for missing in (NAMES[1], model.decoder.blocks[0].attention, model):
        with pytest.raises(KeyError):
            weights[missing]
        assert missing not in weights
    assert NAMES[0] in weights


def test_an_error_inside_leaves_the_model_as_it_was(model, inputs):
    kept = []

    def fail():
        with record_weights(model) as weights:
            kept.append(weights)
            model(*inputs)
            raise RuntimeError("of mine")

    with pytest.raises(RuntimeError, match="of mine"):
        fail()
    assert untouched(model)
    assert len(kept[0]) == 5
    with pytest.raises(ValueError, match="query must be"), record_weights(model):
        model(inputs[0], inputs[1][..., :-1])
    assert untouched(model)


def test_they_come_before_dropout_with_gradients(attention):
    attention.dropout = 0.5
    x = torch.randn(B, T, D, requires_grad=True)
    with record_weights(attention) as weights:
        attention(x)
    kept = weights[attention]
    assert_close(kept.sum(dim=-1), torch.ones(B, H, T))
    q, k = split_heads(attention.q_proj(x), H), split_heads(attention.k_proj(x), G)
    both = [
        torch.autograd.grad(w.square().sum(), (x, attention.q_proj.weight))
        for w in (kept, attention_weights(q, k))
    ]
    assert_close(*both)
    with torch.no_grad(), record_weights(attention) as weights:
        attention(x)
    assert not weights[attention].requires_grad
    with record_weights(attention.to("meta")) as weights:
        attention(x.to("meta"))
    assert weights[attention].is_meta


@pytest.mark.parametrize("inner_ends", [True, False])
def test_a_block_inside_another(model, inputs, inner_ends):
    """Both keep what runs in both; one goes on, whichever ends first."""
    blocks = record_weights(model), record_weights(model.decoder)
    outer, inner = (block.__enter__() for block in blocks)
    model(*inputs)
    assert list(inner.by_name()) == [n.removeprefix("decoder.") for n in NAMES[1:]]
    assert list(outer.by_name()) == NAMES
    for layer in model.decoder.blocks:
        assert inner[layer.attention] is outer[layer.attention]
    attention, kept = model.decoder.blocks[0].attention, outer[NAMES[1]]
    ended, goes_on = (inner, outer) if inner_ends else (outer, inner)
    blocks[inner_ends].__exit__(None, None, None)
    model(*(x.flip(1) for x in inputs))
    assert ended[attention] is kept
    assert not torch.allclose(goes_on[attention], kept)
    blocks[not inner_ends].__exit__(None, None, None)
    assert untouched(model)


def test_copies_are_not_recorded(model, inputs):
    with record_weights(model) as weights:
        output = model(*inputs)
        first = weights[NAMES[0]]
        copies = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
        for twin in copies:
            assert untouched(twin)
            assert_close(twin(*inputs), output)
        assert weights[NAMES[0]] is first
    plain = {name: w.detach() for name, w in weights.by_name().items()}
    assert_close(pickle.loads(pickle.dumps(plain)), plain)


def test_nothing_that_a_model_computes_changes(model, inputs):
    """Bit for bit: in training too, where the same weights are dropped."""

    class Own(MultiHeadAttention):
        def forward(self, *args, **options):
            return 2 * super().forward(*args, **options)

    model.encoder.blocks[0].attention.__class__ = Own
    model.decoder.blocks[0].attention.dropout = 0.5
    for training in (False, True):
        torch.manual_seed(3)
        plain = model.train(training)(*inputs)
        torch.manual_seed(3)
        with record_weights(model) as weights:
            assert torch.equal(model(*inputs), plain)
        assert list(weights.by_name()) == NAMES


def test_each_thread_keeps_what_it_runs_itself():
    model = small_gpt().eval()
    shapes, both = {}, threading.Barrier(2)

    def run(length):
        ids = torch.zeros(1, length, dtype=torch.int64)
        with record_weights(model) as weights:
            both.wait()
            for _ in range(20):
                model(ids)
            both.wait()
            shapes[length] = {tuple(kept.shape[2:]) for kept in weights.values()}

    threads = [threading.Thread(target=run, args=(length,)) for length in (3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shapes == {3: {(3, 3)}, 5: {(5, 5)}}
