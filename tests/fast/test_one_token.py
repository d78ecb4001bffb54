"""A decoder reads one token by fewer calls, and gives the same numbers."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.testing import assert_close

from tformer import GPT, Decoder, GPTConfig, greedy, record_weights
from tformer.fast import one_token
from tformer.fast.dropout import Dropout
from tformer.fast.linear import Linear
from tformer.nn.feed_forward import ACTIVATIONS
from tformer.nn.model_cache import DecoderCache

D, H, F, N = 24, 4, 13, 2
MASKED = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]).bool()[:, None, None]
plain = Decoder.forward.__wrapped__


@pytest.fixture
def calls(monkeypatch):
    """Count the tokens that were read the quick way."""
    found = []
    quick = one_token.read_one_token
    monkeypatch.setattr(
        one_token, "read_one_token", lambda *a: found.append(1) or quick(*a)
    )
    return found


def decoder(*, cross_attention=False, **options):
    torch.manual_seed(0)
    model = Decoder(D, H, F, N, cross_attention=cross_attention, **options)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.eval()


def read(forward, model, x, *given, **options):
    """Read x (B, T, D) token by token, but the first three at once."""
    cache = DecoderCache(N, x.shape[1])
    parts = [x[:, :3], *x[:, 3:].split(1, dim=1)]
    options["cache"] = cache
    outputs = [  # a copy: torch rounds twice in bfloat16 where rows lie apart
        forward(model, each.contiguous(), *given, is_causal=True, **options)
        for each in parts
    ]
    return torch.cat(outputs, dim=1)


@settings(max_examples=60, deadline=None)
@given(
    options=st.fixed_dictionaries(
        {
            "norm_first": st.booleans(),
            "bias": st.booleans(),
            "num_kv_heads": st.sampled_from([1, 2, 4]),
            "activation": st.sampled_from(sorted(ACTIVATIONS)),
        }
    ),
    beams=st.sampled_from([0, 1, 3]),
    masked=st.booleans(),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
)
def test_equals_the_formula(options, beams, masked, dtype):
    """Without a memory, and with one whose rows have so many beams each."""
    model = decoder(cross_attention=beams > 0, **options).to(dtype)
    x = torch.randn(2 * max(beams, 1), 6, D).to(dtype)
    memory = torch.randn(2, 5, D).to(dtype) if beams else None
    given = memory, None, MASKED if masked and beams else None
    with torch.no_grad():
        assert_close(
            read(Decoder.__call__, model, x, *given), read(plain, model, x, *given)
        )


def test_what_is_written_is_the_same(calls):
    model = GPT(GPTConfig.tiny()).eval()
    found = greedy(model, torch.tensor([[3, 4]]), max_len=9)
    assert len(calls) == 8  # the first is of the prompt
    for parameter in model.parameters():  # changed in place: no copy is left behind
        parameter.data.neg_()
    other = greedy(model, torch.tensor([[3, 4]]), max_len=9)
    assert len(calls) == 16
    texts = torch.cat((torch.tensor([[3, 4]] * 2), torch.cat((found, other))), dim=1)
    for text, sign in ((texts[1], 1), (texts[0], -1)):
        if sign < 0:
            for parameter in model.parameters():
                parameter.data.neg_()
        assert torch.equal(model(text[None, :-1]).argmax(-1)[0, 1:], text[2:])


@pytest.mark.parametrize("beams", [0, 3])
def test_a_nan_is_not_lost(beams, calls):
    model = decoder(cross_attention=beams > 0)
    x = torch.randn(2 * max(beams, 1), 5, D)
    x[0, 2, 3] = math.nan
    memory = torch.randn(2, 5, D) if beams else None
    with torch.no_grad():
        output = read(Decoder.__call__, model, x, memory)
        assert len(calls) == 2
        assert_close(output, read(plain, model, x, memory), equal_nan=True)
    assert output[0, 2:].isnan().all()
    assert not output[1:].isnan().any()


class Doubled(Linear):
    def forward(self, input):
        return 2 * super().forward(input)


def doubled(model):
    model.layers[1].self_attn.v_proj = Doubled(D, D)


def overridden(model):
    network = model.layers[1].feed_forward
    network.forward = lambda x: 2 * type(network).forward(network, x)


def hooked(model):
    model.layers[1].self_attn.register_forward_hook(lambda *given: 2 * given[2])


def hooked_before(model):
    first = model.layers[0].feed_forward.linear1
    first.register_forward_pre_hook(lambda _, args: 2 * args[0])


def dropping(model):
    model.layers[0].self_attn_residual.dropout.train()


def other_norm(model):
    model.layers[0].feed_forward_residual.norm = nn.Identity()


@pytest.mark.parametrize(
    "change", [doubled, overridden, hooked, hooked_before, dropping, other_norm]
)
def test_what_was_changed_or_is_watched_is_called(change, calls):
    model = decoder(dropout=0.5)
    change(model)
    x, outputs = torch.randn(2, 6, D), []
    with torch.no_grad():
        for forward in (Decoder.__call__, plain):
            torch.manual_seed(1)
            outputs.append(read(forward, model, x))
    assert not calls
    assert_close(*outputs)


def test_a_hook_on_all_modules_is_called(calls):
    names = []
    handle = register_module_forward_hook(lambda m, *_: names.append(type(m).__name__))
    with handle, torch.no_grad():
        read(Decoder.__call__, decoder(), torch.randn(1, 4, D))
    assert not calls
    assert names.count("DecoderLayer") == 2 * N


def test_weights_are_recorded(calls):
    model, x = decoder(), torch.randn(1, 5, D)
    cache = DecoderCache(N, 5)
    with torch.no_grad():
        for t in range(4):
            model(x[:, t : t + 1], cache=cache)
        assert len(calls) == 4
        with record_weights(model) as weights:
            model(x[:, 4:], cache=cache)
    assert len(calls) == 4
    assert weights["layers.1.self_attn"].shape == (1, H, 1, 5)


@pytest.mark.parametrize("shape", [(2, 1, D + 1), (2, D), (0, 1, D)])
def test_what_is_wrong_is_said_by_forward(shape, calls):
    model, x = decoder(), torch.randn(shape)
    with torch.no_grad():
        for forward in (Decoder.__call__, plain):
            with pytest.raises((ValueError, IndexError)) as found:
                forward(model, x, cache=DecoderCache(N, 3))
            told = str(found.value)
    assert not calls
    assert told


def test_gradients_are_refused(calls):
    with pytest.raises(ValueError, match="a cache holds no gradients"):
        decoder()(torch.randn(1, 1, D), cache=DecoderCache(N, 3))
    assert not calls


def test_dropout_drops_in_training_alone():
    x = torch.ones(1000)
    dropout = Dropout(0.5)
    assert set(dropout(x).tolist()) == {0.0, 2.0}
    assert dropout.eval()(x) is x
