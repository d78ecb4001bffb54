"""The engine in the page computes the package's numbers, and a fault in it is seen."""

from functools import cache

import pytest
import torch

from live_driving import IN_BOTH
from parity import Tolerance, cases, check_parity, dates_read, publish
from tformer import Transformer, TransformerConfig, load_pretrained

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


@IN_BOTH
def test_the_model_of_the_package_on_two_hundred_inputs(live_page, dates, request):
    """In Firefox on the last forty: the numbers of both come from one definition."""
    asked = cases(200, dates, sources=dates_read(200))
    last = 40 if "firefox" in request.node.name else 200
    check_parity(live_page(), "dates", dates, asked[-last:])


def test_weights_in_float32(live_page, live_site, dates, tmp_path):
    model = unrounded(dates)
    publish(live_site, "dates32", model, tmp_path)
    asked = cases(40, model, seed=1, sources=dates_read(40))
    check_parity(live_page(), "dates32", model, asked)


def test_weights_in_half_precision_are_near_those_that_were_rounded(live_page, dates):
    drawn = cases(60, dates, sources=dates_read(60), seed=2)
    # Rounding moves the scores; a larger scale moves them further.
    asked = [case for case in drawn if case.scale <= 1]
    allowed = Tolerance(steps=0.05, logits=0.03, weights=0.01)
    check_parity(live_page(), "dates", unrounded(dates), asked, allowed)


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
    check_parity(live_page(), "other", model, cases(24, model))


FAULTS = [  # a file, what stands there, what is put in its place
    ("heads.js", "run.changes.scale / Math", "1.001 * run.changes.scale / Math"),
    ("masks.js", "=> s <= t +", "=> s <= t + 1 +"),  # one key too many
    ("masks.js", "=> s <= t +", "=> s < t +"),  # one key too few
    ("masks.js", "() => [...real]", "() => real.map(() => true)"),
    ("block.js", "{ attnMask, isCausal })", "{ attnMask })"),
    ("block.js", "add(x, sublayer(", "((_, y) => y)(x, sublayer("),  # nothing is added
    ("recording.js", "return this.changes.off.has(", "return !this.changes.off.has("),
    ("recording.js", "return this.changes.off.has(", "return !name && has("),
    ("recording.js", "this.weights.push(weights)", "this.weights.unshift(weights)"),
    ("heads.js", "set(head.row(t), h * Dh)", "set(head.row(t), (3 - h) * Dh)"),
    ("heads.js", "k[g], v[g]", "v[g], k[g]"),
    ("positions.js", "row[i] = Math.sin(angle)", "row[i] = Math.cos(angle)"),
    ("positions.js", "const angle = p /", "const angle = (p + 1) /"),
    ("positions.js", "factor * table", "table"),
    ("embedding.js", "w * Math.sqrt(D)", "w"),
    ("norm.js", "** 2 / D", "** 2 / (D - 1)"),
    ("feed-forward.js", "Math.max(0, h)", "h"),
    ("decoder.js", "this.norm ? this.norm.forward(x, run) : x", "x"),
    ("safetensors.js", "if (exponent === 0)", "if (false)"),  # subnormal numbers
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[2])
def test_a_planted_fault_is_seen(live_page, live_site, dates, fault):
    file, old, new = fault
    live_site.plant(f"engine/{file}", old, new)
    asked = cases(24, dates, sources=dates_read(24), seed=3)
    with pytest.raises(AssertionError):
        check_parity(live_page(), "dates", dates, asked)


@pytest.mark.parametrize("norm_first", [False, True])
def test_another_eps_is_seen(live_page, live_site, tmp_path, randomised, norm_first):
    sizes = {"vocab_size": 17, "d_model": 12, "num_heads": 3, **TINY}
    config = TransformerConfig.tiny(**sizes, norm_first=norm_first)
    model = randomised(Transformer(config)).eval()
    with torch.no_grad():  # small vectors, where 1e-5 weighs
        model.src_embedding.weight.mul_(0.01)
    publish(live_site, "small", model, tmp_path)
    check_parity(live_page(), "small", model, cases(8, model))
    live_site.plant("engine/norm.js", "variance + eps", "variance + 1e-6")
    with pytest.raises(AssertionError):
        check_parity(live_page(), "small", model, cases(8, model))
