"""Models of all kinds are compared, or refused with a sentence."""

import copy
import math
from functools import partial

import pytest
import torch
from torch import nn

from compared import GPT2, V, spread
from plain_model import Plain
from tformer.interop.compare import compare
from tformer.interop.compare.weights import find_weights
from tformer.models.bert import BERT, BERTConfig
from tformer.models.families import gpt2


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
        assert (found.equal, found.first) == (False, "block 1 (feed-forward)")
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
    q, k, v, o, w, n, near = (torch.randn(8, 8, generator=draw) for _ in range(7))
    pairs = torch.arange(8).view(2, 2, 2).transpose(1, 2).flatten()
    missing = torch.randn(8, 8, generator=draw)
    a = Holder(q=q, k=k, v=v, o=o, w=w, n=n, near=near, missing=missing)
    b = Holder(
        qkv=torch.cat((q, k, v)).t(),
        o=o[pairs],
        w=3 * w,
        n=n.bfloat16().float(),
        near=1.01 * near,
    )
    found = {x.a: (x.b, x.how) for x in find_weights(a, b)}
    assert found["q"] == ("qkv[:, 0:8]", "equal, transposed")
    assert found["v"] == ("qkv[:, 16:24]", "equal, transposed")
    assert found["o"][0] == "o"
    assert "in heads of 4" in found["o"][1]
    assert found["w"] == ("w", "times 3")
    assert found["near"] == ("near", "times 1.01")
    assert found["n"] == ("n", "rounded")
    assert found["missing"] == (None, "nowhere")
