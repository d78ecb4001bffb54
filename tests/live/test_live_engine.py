"""The engine in the page against the package: the same numbers, in two browsers."""

from functools import cache

import pytest
import torch

from parity import Tolerance, cases, check_parity, date_texts, publish
from tformer import Transformer, TransformerConfig, load_pretrained

BOTH = ["chromium", "firefox"]
in_both = pytest.mark.parametrize("live_page", BOTH, indirect=True)
TINY = {"num_encoder_layers": 2, "num_decoder_layers": 1, "d_ff": 23, "dropout": 0.0}


@pytest.fixture(scope="module")
def dates() -> Transformer:
    return load_pretrained("dates").model


@cache
def unrounded(model: Transformer) -> Transformer:
    """A model in float32 whose weights, rounded to half precision, are this one's."""
    other = Transformer(model.config)
    torch.manual_seed(0)
    with torch.no_grad():
        for theirs, ours in zip(other.parameters(), model.parameters(), strict=True):
            half = ours.half()
            above = torch.nextafter(half, torch.tensor(torch.inf, dtype=torch.half))
            gap = above.float() - ours
            theirs.copy_(ours + gap * (torch.rand_like(ours) - 0.5) * 0.99)
    return other.eval()


@in_both
def test_the_model_of_the_package_on_two_hundred_inputs(live_page, dates):
    allowed = Tolerance()
    asked = cases(200, dates, texts=date_texts(200))
    check_parity(live_page(), "dates", dates, asked, allowed)
    print(allowed.largest)


@in_both
def test_weights_in_float32(live_page, live_site, dates, tmp_path):
    model = unrounded(dates)
    publish(live_site, "dates32", model, tmp_path)
    allowed = Tolerance()
    asked = cases(40, model, seed=1, texts=date_texts(40))
    check_parity(live_page(), "dates32", model, asked, allowed)
    print(allowed.largest)


@in_both
def test_weights_in_half_precision_are_near_those_that_were_rounded(live_page, dates):
    model = unrounded(dates)
    allowed = Tolerance(steps=0.05, logits=0.03, weights=0.01)
    drawn = cases(60, dates, texts=date_texts(60), seed=2)
    # Rounding moves the scores; a larger scale moves them further.
    asked = [case for case in drawn if case.scale <= 1]
    check_parity(live_page(), "dates", model, asked, allowed)
    print(allowed.largest)


@pytest.mark.parametrize(
    "changes",
    [
        {"norm_first": False, "eps": 1e-3},
        {"norm_first": True, "num_kv_heads": 1, "bias": False},
        {"tie_embeddings": False, "tgt_vocab_size": 11, "pad_id": None},
    ],
)
def test_other_models(live_page, live_site, tmp_path, randomised, changes):
    sizes = {"vocab_size": 17, "d_model": 12, "num_heads": 3, **TINY}
    model = randomised(Transformer(TransformerConfig.tiny(**sizes | changes))).eval()
    publish(live_site, "other", model, tmp_path)
    check_parity(live_page(), "other", model, cases(24, model), Tolerance())
