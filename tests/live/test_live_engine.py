"""The engine in the page computes the package's numbers, and a fault in it is seen."""

import pytest

from live_driving import IN_BOTH_BY_DAY
from parity import cases, check_parity, dates_read, publish
from tformer import Transformer, TransformerConfig, load_pretrained

TINY = {"num_encoder_layers": 2, "num_decoder_layers": 1, "d_ff": 23, "dropout": 0.0}


@pytest.fixture(scope="module")
def dates() -> Transformer:
    return load_pretrained("dates-as-typed").model


@IN_BOTH_BY_DAY
def test_the_model_of_the_package(live_page, dates, request):
    """In Firefox on the last few: the numbers of both come from one definition."""
    asked = cases(80, dates, sources=dates_read(80))
    last = 16 if "firefox" in request.node.name else 80
    check_parity(live_page(), "dates-as-typed", dates, asked[-last:])


@pytest.mark.parametrize(
    "changes",
    [
        {"norm_first": False, "eps": 1e-3},
        {"norm_first": True, "eps": 1e-3, "num_kv_heads": 1, "bias": False},
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
    ("masks.js", "() => [...real]", "() => real.map(() => true)"),
    ("block.js", "{ attnMask, isCausal })", "{ attnMask })"),
    ("block.js", "add(x, sublayer(", "((_, y) => y)(x, sublayer("),  # nothing is added
    ("recording.js", "return this.changes.off.has(", "return !this.changes.off.has("),
    ("recording.js", "return this.changes.off.has(", "return !name && has("),
    ("recording.js", "this.weights.push(weights)", "this.weights.unshift(weights)"),
    ("positions.js", "factor * table", "table"),
    ("embedding.js", "w * Math.sqrt(D)", "w"),
    ("feed-forward.js", "Math.max(0, h)", "h"),
    ("decoder.js", "this.norm ? this.norm.forward(x, run) : x", "x"),
    ("safetensors.js", "if (exponent === 0)", "if (false)"),  # subnormal numbers
]


@pytest.mark.by_day(3)
@pytest.mark.parametrize("fault", FAULTS, ids=[new for _, _, new in FAULTS])
def test_a_planted_fault_is_seen(live_page, live_site, dates, fault):
    file, old, new = fault
    live_site.plant(f"engine/{file}", old, new)
    asked = cases(24, dates, sources=dates_read(24), seed=3)
    with pytest.raises(AssertionError):
        check_parity(live_page(), "dates-as-typed", dates, asked)
