"""The first layer that differs: each planted difference is found where it is.

The other model is written as a reader would write it, with the mistake in its code, so
that no guess is compared with itself.
"""

import copy
from functools import partial

import pytest
import torch

from plain_model import Plain
from tformer.interop.compare import compare
from tformer.nn import LateNormAttention

ATTENTION, FEED_FORWARD = "block 1 (attention)", "block 1 (feed-forward)"
# The kind of model, the mistake, where it shows first, and a part of its name.
IN_BLOCK_1 = [
    ("gpt", "order kqv", ATTENTION, "q, k, v are read in the order k, q, v"),
    ("gpt", "q transposed", ATTENTION, "q_proj is transposed"),
    ("gpt", "out transposed", ATTENTION, "out_proj is transposed"),
    ("gpt", "no bias of q, k, v", ATTENTION, "q_proj, k_proj, v_proj are without bias"),
    ("gpt", "head by head", ATTENTION, "q, k, v is read head by head"),
    ("gpt", "cut without transposing", ATTENTION, "cut without moving them before"),
    ("gpt", "width first", ATTENTION, "cut with their width first"),
    ("gpt", "merged without transposing", ATTENTION, "merged without moving them"),
    ("gpt", "no scale", ATTENTION, "the scores are not divided by √head_dim"),
    ("gpt", "scale d", ATTENTION, "the scores are divided by head_dim"),
    ("gpt", "no mask", ATTENTION, "there is no causal mask"),
    ("gpt", "sees one ahead", ATTENTION, "a query sees one token ahead"),
    ("gpt", "no bias of the feed-forward", FEED_FORWARD, "are without bias"),
    ("gpt", "exact gelu", FEED_FORWARD, "is gelu in place of gelu_tanh"),
    ("gpt", "relu", FEED_FORWARD, "is relu in place of gelu_tanh"),
    ("gpt", "eps", ATTENTION, "has eps 1e-06 in place of 1e-05"),
    ("gpt", "RMSNorm", ATTENTION, "is RMSNorm in place of LayerNorm"),
    ("gpt", "unbiased variance", ATTENTION, "squares by D - 1 in place of D"),
    ("gpt", "no bias of norms", ATTENTION, "attention_norm has no bias"),
    ("gpt", "post-norm", ATTENTION, "the norms stand as 'post'"),
    ("gpt", "parallel", FEED_FORWARD, "(parallel)"),
    ("gpt", "no residual", FEED_FORWARD, "into attention is not added"),
    ("llama", "pairs", ATTENTION, "q_proj and k_proj are permuted to half-split"),
    ("llama", "permuted to halves", ATTENTION, "are permuted to half-split"),
    ("llama", "permuted to pairs", ATTENTION, "are permuted to interleaved"),
    ("llama", "base", ATTENTION, "the rotary base is 500000"),
    ("llama", "linear scaling", ATTENTION, "frequencies are divided by 4"),
    ("llama", "backwards", ATTENTION, "rotated backwards"),
    ("llama", "no rotation", ATTENTION, "q and k are not rotated"),
    ("llama", "tiled", ATTENTION, "query head h reads key head h mod 2"),
    ("llama", "gate and up exchanged", FEED_FORWARD, "gate_proj and up_proj are exch"),
    ("llama", "gate and up row by row", FEED_FORWARD, "gate and up is read row by row"),
    ("llama", "geglu", FEED_FORWARD, "the gate is geglu in place of swiglu"),
    ("llama", "eps", ATTENTION, "has eps 1e-05 in place of 1e-06"),
    ("llama", "1 + weight", ATTENTION, "multiplies by 1 + weight"),
    ("qwen", "no qk norm", ATTENTION, "q and k are not normalised"),
    ("qwen", "norm after rotation", ATTENTION, "normalised after the rotation"),
    ("qwen", "pairs", ATTENTION, "pairs are interleaved in place of half-split"),
    ("qwen", "permuted to halves", ATTENTION, "k_proj are permuted to half-split"),
    ("gemma", "no softcap", ATTENTION, "the scores are not softcapped"),
    ("gemma", "no window", ATTENTION, "no window bounds the past"),
    ("gemma", "window + 1", ATTENTION, "a window of 7 tokens"),
    ("gemma", "weight, not 1 + weight", ATTENTION, "weight in place of 1 + weight"),
]
ELSEWHERE = [
    ("gpt", "two layers swapped", ATTENTION, "block 2 stands here"),
    ("gpt", "a layer missing", ATTENTION, "block 2 stands here in place of block 1"),
    ("gpt", "no final norm", "logits", "there is no final norm"),
    ("gpt", "final: eps", "final norm", "final norm has eps 1e-06 in place of 1e-05"),
    ("gpt", "embedding scaled", "embedding", "embedding is multiplied by √d_model"),
    ("gpt", "no positions", "embedding", "no positions are added"),
    ("gpt", "positions from 1", "embedding", "positions begin at 1"),
    ("gpt", "positions from 2", "embedding", "positions begin at 2"),
    ("gpt", "log-probabilities", "logits", "log-probabilities are returned"),
    ("gpt", "logits softcapped", "logits", "the logits are softcapped at 30"),
    ("gpt", "bf16 weights", "embedding", "the weights are rounded to bfloat16"),
    ("llama", "tied", "logits", "the embedding makes the logits (tied)"),
    ("gemma", "no logit cap", "logits", "neither scaled nor softcapped"),
]


@pytest.mark.parametrize("name", ["gpt", "llama", "qwen", "gemma"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_equal_models_are_equal(models, name, dtype):
    found = compare(models[name], Plain(models[name]).eval(), dtype=dtype)
    assert found.equal, str(found)
    assert (found.first, found.guesses) == (None, ())
    assert len(found.layers) == 1 + 3 * 3 + 2
    assert all(x.difference <= x.rounding for x in found.layers)


@pytest.mark.by_day(10)
@pytest.mark.parametrize(("name", "mistake", "first", "told"), IN_BLOCK_1)
def test_a_difference_in_one_block_is_found_there_and_named(
    models, name, mistake, first, told
):
    other = Plain(models[name], mistake, layers=[1]).eval()
    found = compare(models[name], other)
    assert not found.equal
    assert found.first == first
    assert found.unexplained == ()
    assert told in found.guesses[0].sentence
    assert " — or " not in found.guesses[0].sentence
    assert {key.block for guess in found.guesses for key in guess.layers} == {1}
    for guess in found.guesses:
        assert guess.after < 1e-12 < guess.before


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "mistake", "first", "told"), ELSEWHERE)
def test_a_difference_before_after_and_across_blocks(
    models, name, mistake, first, told
):
    found = compare(models[name], Plain(models[name], mistake).eval())
    assert (found.equal, found.first, found.unexplained) == (False, first, ())
    assert told in found.guesses[0].sentence


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("no scale", "the scores are not divided by √head_dim"),
        ("exact gelu", "is gelu in place of gelu_tanh"),
        ("eps", "attention_norm and feed_forward_norm each has eps 1e-06"),
        ("post-norm", "the norms stand as 'post'"),
    ],
)
def test_blocks_without_parts_of_their_own(models, mistake, told):
    """Attention and feed-forward are written into the block: its row alone is there."""

    class Inline(Plain):
        def forward(self, ids):
            for layer in self.h:
                layer.forward = partial(inline, layer)
            return super().forward(ids)

    def inline(layer, x):
        one, two = layer.attn.forward, layer.mlp.forward
        if layer.mistake == "post-norm":
            x = layer.ln_1(x + one(x))
            return layer.ln_2(x + two(x))
        x = x + one(layer.ln_1(x))
        return x + two(layer.ln_2(x))

    other = Inline(models["gpt"], mistake, layers=[1]).eval()
    found = compare(models["gpt"], other)
    names = [layer.name for layer in found.layers if layer.b]
    assert "block 1" in names
    assert ATTENTION not in names
    assert (found.first, found.unexplained) == ("block 1", ())
    assert told in found.guesses[0].sentence
    assert len(found.guesses) == 1
    assert found.guesses[0].after < 1e-12


def test_one_guess_for_all_blocks_and_its_reverse(models):
    other = Plain(models["llama"], "tiled").eval()
    for pair, changed in ((0, "A"), (1, "B")):
        order = [models["llama"], other]
        found = compare(*(reversed(order) if pair else order))
        assert (len(found.guesses), found.changed) == (1, changed)
        assert [key.block for key in found.guesses[0].layers] == [0, 1, 2]
        assert "blocks 0, 1, 2 (attention): " in str(found)


def test_of_norms_after_the_rotation_the_other_order_is_guessed(models):
    late = copy.deepcopy(models["qwen"])
    for block in late.blocks:
        block.attention.__class__ = LateNormAttention
    other = Plain(models["qwen"], "norm after rotation", layers=[0, 2]).eval()
    found = compare(late, other)
    assert (found.first, found.unexplained) == (ATTENTION, ())
    assert "normalised before the rotation" in found.guesses[0].sentence


def test_two_differences_of_one_block_are_two_guesses(models):
    other = copy.deepcopy(models["llama"])
    other.blocks[2].attention.scale = 1.0
    other.blocks[2].feed_forward.gate = "reglu"
    found = compare(models["llama"], other)
    said = [guess.sentence for guess in found.guesses]
    assert len(said) == 2
    assert "not divided by √head_dim" in said[0]
    assert "reglu in place of swiglu" in said[1]


def test_what_no_guess_explains_is_not_explained(models):
    other = copy.deepcopy(models["gpt"])
    other.blocks[1].feed_forward.linear1.weight.data[0, 0] += 0.5
    found = compare(models["gpt"], other)
    assert found.first == FEED_FORWARD
    assert (found.guesses, [*map(str, found.unexplained)]) == ((), [FEED_FORWARD])
    nowhere = [x.a for x in found.weights if x.b is None]
    assert nowhere == ["blocks.1.feed_forward.linear1.weight"]
    assert "Not explained: block 1 (feed-forward)." in str(found)


def test_a_constant_made_in_float32_is_rounding(models):
    found = compare(models["llama"], Plain(models["llama"], "table in float32").eval())
    assert found.equal
    assert 1e-10 < max(layer.difference for layer in found.layers) < 1e-6
