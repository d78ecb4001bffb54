"""The comparison of test_live_engine catches a fault that is planted in the engine."""

from pathlib import Path

import pytest
import torch

from parity import Case, Tolerance, cases, check_parity, date_texts, publish
from tformer import Transformer, TransformerConfig, load_pretrained

ENGINE = Path(__file__).parents[2] / "docs" / "live" / "engine"
FAULTS = {  # a file, what stands there, what is put in its place
    "the scale is off by 1/1000": (
        "heads.js",
        "run.changes.scale / Math.sqrt(this.headDim)",
        "(1.001 * run.changes.scale) / Math.sqrt(this.headDim)",
    ),
    "the mask shows one key too many": ("masks.js", "=> s <= t +", "=> s <= t + 1 +"),
    "the mask shows one key too few": ("masks.js", "=> s <= t +", "=> s < t +"),
    "the mask is forgotten": ("block.js", "{ attnMask, isCausal })", "{ attnMask })"),
    "nothing is added": (
        "block.js",
        "add(x, sublayer(norm.forward(x, run)))",
        "sublayer(norm.forward(x, run))",
    ),
    "padding is seen": ("masks.js", "() => [...real]", "() => real.map(() => true)"),
    "a head is not switched off": (
        "recording.js",
        "return this.changes.off.has(",
        "return !this.changes.off.has(",
    ),
    "a head is never switched off": (
        "recording.js",
        "return this.changes.off.has(`${name}:${head}`)",
        "return false && name === String(head)",
    ),
    "the heads are put together in another order": (
        "heads.js",
        "x.row(t).set(head.row(t), h * Dh)",
        "x.row(t).set(head.row(t), (heads.length - 1 - h) * Dh)",
    ),
    "keys and values are swapped": ("heads.js", "k[g], v[g]", "v[g], k[g]"),
    "the weights of two heads are swapped in the record": (
        "recording.js",
        "this.weights.push(weights)",
        "this.weights.unshift(weights)",
    ),
    "sines and cosines are swapped": (
        "positions.js",
        "row[i] = Math.sin(angle)",
        "row[i] = Math.cos(angle)",
    ),
    "positions begin with 1": (
        "positions.js",
        "const angle = p /",
        "const angle = (p + 1) /",
    ),
    "the factor of positions is ignored": ("positions.js", "factor * table", "table"),
    "the embedding is not scaled": ("embedding.js", "w * Math.sqrt(D)", "w"),
    "a norm divides by D - 1": ("norm.js", "** 2 / D", "** 2 / (D - 1)"),
    "the activation is left out": (
        "feed-forward.js",
        "Math.max(0, h)",
        "h",
    ),
    "the last norm is left out": (
        "decoder.js",
        "this.norm ? this.norm.forward(x, run) : x",
        "x",
    ),
    "subnormal numbers are read as normal": (
        "safetensors.js",
        "if (exponent === 0) return sign * fraction * 2 ** -14;",
        "",
    ),
}


@pytest.fixture(scope="module")
def dates() -> Transformer:
    return load_pretrained("dates").model


@pytest.fixture(scope="module")
def asked(dates) -> list[Case]:
    return cases(24, dates, texts=date_texts(24), seed=3)


def plant(site, file: str, stands: str, fault: str) -> None:
    text = (ENGINE / file).read_text("utf-8")
    assert text.count(stands) == 1, (file, stands, text.count(stands))
    site.changed[f"/live/engine/{file}"] = text.replace(stands, fault)


def test_there_is_nothing_to_be_found_without_a_fault(live_page, dates, asked):
    check_parity(live_page(), "dates", dates, asked, Tolerance())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(live_page, live_site, dates, asked, fault):
    plant(live_site, *FAULTS[fault])
    page = live_page()
    with pytest.raises(AssertionError):
        check_parity(page, "dates", dates, asked, Tolerance())


@pytest.mark.parametrize("norm_first", [False, True])
def test_another_eps_is_found(live_page, live_site, tmp_path, randomised, norm_first):
    sizes = {"vocab_size": 17, "d_model": 12, "num_heads": 3, "d_ff": 23}
    config = TransformerConfig.tiny(**sizes, dropout=0.0, norm_first=norm_first)
    torch.manual_seed(0)
    model = randomised(Transformer(config)).eval()
    with torch.no_grad():  # small vectors, where 1e-5 weighs
        model.src_embedding.weight.mul_(0.01)
    publish(live_site, "small", model, tmp_path)
    drawn = cases(8, model)
    check_parity(live_page(), "small", model, drawn, Tolerance())
    plant(live_site, "norm.js", "variance + eps", "variance + 1e-6")
    with pytest.raises(AssertionError):
        check_parity(live_page(), "small", model, drawn, Tolerance())
