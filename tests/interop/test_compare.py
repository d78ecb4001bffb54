"""The first layer that differs: each planted difference is found where it is.

The other model is written as a reader would write it, with the mistake in its code, so
that no guess is compared with itself.
"""

import copy
import math
from functools import partial

import pytest
import torch
from torch import nn

from plain_model import Plain
from tformer.interop import compare
from tformer.interop.weights import find_weights
from tformer.models.bert import BERT, BERTConfig
from tformer.models.families import custom, gpt2, llama, qwen3

V = 37
GPT2 = {"model_type": "gpt2", "vocab_size": V, "n_embd": 24, "n_layer": 3, "n_head": 4}
GPT2 |= {"n_positions": 64, **gpt2.NO_DROPOUT}
LLAMA = {
    "model_type": "llama",
    "vocab_size": V,
    "hidden_size": 48,
    "intermediate_size": 42,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
QWEN = {**LLAMA, "model_type": "qwen3", "head_dim": 10, "num_key_value_heads": 6}
GEMMA = {"vocab_size": V, "d_model": 24, "num_heads": 4, "num_layers": 3}
GEMMA |= {"positions": "rotary", "norm": "rms_plus_one", "feed_forward": "swiglu"}
GEMMA |= {"softcap": 5.0, "window": 6, "logit_cap": 9.0, "bias": False}


def spread(model):
    """Draw weights that are not small, so that every part has its say."""
    chance = torch.Generator().manual_seed(0)
    for x in model.parameters():
        drawn = torch.randn(x.shape, generator=chance)
        x.data = drawn * x.shape[-1] ** -0.5 if x.ndim > 1 else x.data + 0.3 * drawn
    return model.eval()


@pytest.fixture(scope="module")
def models():
    built = {"gpt": gpt2.build(GPT2), "llama": llama.build(LLAMA)}
    built |= {"qwen": qwen3.build(QWEN), "gemma": custom.build(GEMMA)}
    return {name: spread(model) for name, model in built.items()}


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


class TestModelsOfAllKinds:
    @pytest.fixture
    def gpt(self, models):
        return models["gpt"]

    def test_dropout_is_active(self, gpt):
        other = Plain(gpt).train()
        found = compare(gpt, other)
        assert not found.equal
        assert found.first is None
        assert "B is in train(): dropout is active" in str(found)
        assert other.training

    def test_chance_in_eval(self, gpt):
        class Chance(Plain):
            def forward(self, ids):
                return super().forward(ids) + 1e-3 * torch.rand(1)

        found = compare(gpt, Chance(gpt).eval())
        assert not found.equal
        assert "B answers the same ids differently" in str(found)

    def test_a_function_has_logits_only(self, gpt):
        found = compare(gpt, lambda ids: (gpt(ids).detach(), None))
        assert found.equal
        assert [x.difference is None for x in found.layers][-1] is False
        found = compare(gpt, lambda ids: gpt(ids).detach().flip(-1))
        assert (found.equal, found.first) == (False, "logits")

    def test_logits_of_the_last_position_only(self, gpt):
        class Last(Plain):
            def forward(self, ids):
                return super().forward(ids)[:, -1:], None

        assert compare(gpt, Last(gpt).eval()).equal
        assert compare(Last(gpt).eval(), gpt).equal

    def test_a_residual_that_is_added_in_place(self, gpt):
        def in_place(layer, x):
            x += layer.attn(layer.ln_1(x))
            x += layer.mlp(layer.ln_2(x))
            return x

        class InPlace(Plain):
            def forward(self, ids):
                for layer in self.h:
                    layer.forward = partial(in_place, layer)
                return super().forward(ids)

        other = InPlace(gpt).eval()
        found = compare(gpt, other)
        assert found.equal, str(found)

    def test_a_padded_vocabulary(self, gpt):
        other = spread(gpt2.build({**GPT2, "vocab_size": 41}))
        other.load_state_dict(gpt.state_dict() | {"embedding.weight": torch.cat(
            (gpt.embedding.weight, torch.zeros(4, 24)))})  # fmt: skip
        found = compare(gpt, other)
        assert not found.equal
        assert found.first is None
        assert "A scores 37 tokens, B 41: the first 37 are compared." in str(found)

    def test_another_width(self, gpt, models):
        found = compare(gpt, models["llama"])
        assert (found.equal, found.first) == (False, "embedding")
        assert found.layers[0].difference is None
        assert "(2, 32, 24)" in str(found)

    def test_not_a_number(self, gpt):
        other = copy.deepcopy(gpt)
        other.blocks[1].feed_forward.linear2.bias.data[3] = math.nan
        found = compare(gpt, other)
        assert (found.equal, found.first) == (False, FEED_FORWARD)
        assert "B has NaN" in str(found)
        assert compare(other, other).equal

    def test_nothing_is_changed(self, gpt):
        other = Plain(gpt, "relu").eval()
        before = {n: x.clone() for n, x in other.state_dict().items()}
        compare(gpt, other)
        assert {x.dtype for x in gpt.parameters()} == {torch.float32}
        for name, x in other.state_dict().items():
            assert torch.equal(x, before[name])
        assert not any(m._forward_hooks for m in other.modules())

    def test_torchs_own_encoder_and_bert(self):
        bert = spread(BERT(BERTConfig(vocab_size=V, d_model=16, num_heads=2, d_ff=20)))
        found = compare(bert, copy.deepcopy(bert))
        assert found.equal
        assert len(found.layers) > 5

        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                layer = nn.TransformerEncoderLayer(16, 2, 20, batch_first=True)
                self.embed = nn.Embedding(V, 16)
                self.encoder = nn.TransformerEncoder(layer, 2)
                self.head = nn.Linear(16, V)

            def forward(self, ids):
                return self.head(self.encoder(self.embed(ids)))

        one = Encoder().eval()
        two = copy.deepcopy(one)
        two.encoder.layers[1].linear1.bias.data += 0.1
        found = compare(one, two)
        assert found.first == "block 1"
        assert {layer.name for layer in found.layers} >= {"block 0", "block 1"}

    @pytest.mark.parametrize(
        ("ids", "error", "told"),
        [
            (torch.zeros(1, 3), TypeError, "integers"),
            (torch.zeros(3, dtype=torch.int64), TypeError, "integers"),
            (torch.full((1, 3), 99), ValueError, r"A, for ids \(1, 3\), raised"),
            (torch.zeros(1, 99, dtype=torch.int64), ValueError, "max_len is 64"),
        ],
    )
    def test_ids_that_are_none(self, gpt, ids, error, told):
        with pytest.raises(error, match=told):
            compare(gpt, gpt, ids)

    @pytest.mark.parametrize(
        ("model", "told"),
        [
            (
                lambda ids: ids.shape[0] / 0,
                "B, for ids .* raised ZeroDivisionError: .*line",
            ),
            (lambda ids: print(ids.shape), "the logits must be"),
            (lambda ids: ids, "the logits must be"),
            (lambda ids: ids[..., None], "must be floats"),
        ],
    )
    def test_functions_that_are_no_models(self, gpt, model, told):
        with pytest.raises(ValueError, match=told):
            compare(gpt, model)

    def test_what_cannot_be_called(self, gpt):
        with pytest.raises(
            TypeError, match="must be a module or function of ids, not 7"
        ):
            compare(gpt, 7)


def test_weights_are_found_in_every_form(models):
    class Holder(nn.Module):
        def __init__(self, **weights):
            super().__init__()
            for name, x in weights.items():
                setattr(self, name, nn.Parameter(x))

    draw = torch.Generator().manual_seed(1)
    q, k, v, o, w, n = (torch.randn(8, 8, generator=draw) for _ in range(6))
    pairs = torch.arange(8).view(2, 2, 2).transpose(1, 2).flatten()
    a = Holder(q=q, k=k, v=v, o=o, w=w, n=n, missing=torch.randn(8, 8, generator=draw))
    b = Holder(
        qkv=torch.cat((q, k, v)).t(), o=o[pairs], w=3 * w, n=n.bfloat16().float()
    )
    found = {x.a: (x.b, x.how) for x in find_weights(a, b)}
    assert found["q"] == ("qkv[:, 0:8]", "equal, transposed")
    assert found["v"] == ("qkv[:, 16:24]", "equal, transposed")
    assert found["o"][0] == "o"
    assert "in heads of 4" in found["o"][1]
    assert found["w"] == ("w", "times 3")
    assert found["n"] == ("n", "rounded")
    assert found["missing"] == (None, "nowhere")
