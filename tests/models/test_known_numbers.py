"""Known numbers of every model: sizes, the choices of presets, the first loss."""

import math

import pytest
import torch
import torch.nn.functional as F

from small_models import small_bert, small_gpt
from tformer import BERT, BERTConfig, Transformer, TransformerConfig
from tformer.models.families import family_of, gpt2
from tformer.models.folder import NothingDrawn


def of_family(kind, **config):
    return lambda: family_of({"model_type": kind}).build({"model_type": kind, **config})


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (lambda: BERT(BERTConfig.tiny()), 125_248),
        (lambda: BERT(BERTConfig.base()), 109_514_298),
        (lambda: Transformer(TransformerConfig.base()), 63_082_496),
        (lambda: Transformer(TransformerConfig.base(norm_first=True)), 63_084_544),
        (lambda: Transformer(TransformerConfig.big()), 214_245_376),
        (of_family("gpt2", **gpt2.SIZES["tiny"]), 120_576),
        (of_family("gpt2", **gpt2.SIZES["shakespeare-cpu"]), 804_096),
        (of_family("gpt2", **gpt2.SIZES["shakespeare"]), 10_745_088),
        (of_family("gpt2"), 124_439_808),
        (of_family("gpt2", **gpt2.SIZES["gpt2-medium"]), 354_823_168),
        (of_family("gpt2", **gpt2.SIZES["gpt2-large"]), 774_030_080),
        (of_family("gpt2", **gpt2.SIZES["gpt2-xl"]), 1_557_611_200),
        (of_family("llama"), 6_738_415_616),  # Llama 2, 7B
        (
            of_family(
                "llama",
                vocab_size=128_256,
                intermediate_size=14_336,
                num_key_value_heads=8,
            ),
            8_030_261_248,  # Llama 3, 8B
        ),
        (of_family("mistral"), 7_241_732_096),
        (
            of_family(
                "qwen3",
                hidden_size=1024,
                intermediate_size=3072,
                num_hidden_layers=28,
                num_attention_heads=16,
                num_key_value_heads=8,
                tie_word_embeddings=True,
            ),
            596_049_920,  # 0.6B
        ),
    ],
)
def test_parameters(make, parameters):
    with torch.device("meta"), NothingDrawn():
        model = make()
    assert sum(p.numel() for p in model.parameters()) == parameters


def test_the_choices_of_the_papers():
    base, big, bert = TransformerConfig.base(), TransformerConfig.big(), BERTConfig()
    assert (base, BERTConfig.base()) == (TransformerConfig(), bert)
    assert (base.num_heads, base.dropout, base.max_len) == (8, 0.1, 512)
    assert (base.activation, base.positions, base.eps) == ("relu", "sinusoidal", 1e-5)
    assert (big.num_heads, big.dropout) == (16, 0.3)
    assert not base.norm_first
    assert (bert.num_heads, bert.max_len, bert.num_segments) == (12, 512, 2)
    assert (bert.dropout, bert.eps, bert.activation) == (0.1, 1e-12, "gelu")


def small_transformer(**changes):
    model = Transformer(TransformerConfig.tiny(**changes))
    return lambda ids: model(ids, ids)


WIDE = {"d_model": 384, "num_heads": 4, "d_ff": 1536, "max_len": 64}


@pytest.mark.parametrize("tie_embeddings", [False, True])
@pytest.mark.parametrize(
    ("make", "V", "variance", "within"),
    [  # half the logits' variance is what the loss is higher
        (small_bert, 30_522, 384 * 0.02**2, 0.15),
        (small_gpt, 65, 384 * 0.02**2, 0.06),
        (small_gpt, 50_257, 384 * 0.02**2, 0.06),
        (small_transformer, 4001, 0, 0.8),
    ],
)
@torch.no_grad()
def test_the_first_loss_is_that_of_guessing(make, V, variance, within, tie_embeddings):
    sizes = {} if make is small_transformer else WIDE
    model = make(vocab_size=V, tie_embeddings=tie_embeddings, **sizes)
    ids, targets = torch.randint(1, V, (2, 2, 64))
    loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).item()
    assert loss == pytest.approx(math.log(V) + variance / 2, abs=within)
