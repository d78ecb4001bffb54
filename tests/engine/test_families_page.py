"""The page of families: made from the files, from the presets, and from configs."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from engine import families as pages
from engine.families import facts, scan
from engine.tables import read_kept

DOCS = Path(pages.__file__).parents[2]
HOW = "make families"
KEPT = read_kept(DOCS / "families/facts.json")
PRESETS = [(name, preset) for name in KEPT for preset in KEPT[name]]
FAST = 5 * 10**8  # parameters: a larger one takes seconds, with experts a minute


def test_every_preset_of_what_was_counted_is_there():
    now = {name: [*facts.presets(name)] for name in facts.families()}
    assert {name: [*found] for name, found in KEPT.items()}.items() <= now.items(), HOW


def test_the_page_is_what_would_be_written():
    page = (DOCS / pages.PAGE).read_text("utf-8")
    assert page == pages.with_outputs(pages.page(DOCS), page), HOW
    for name in facts.families():  # counted, or named as one that is not
        heading = rf"^## .* {{ #{name} }}$"
        place = heading if name in KEPT else rf"^- \*\*.*\*\*{{ #{name} }}: "
        assert re.search(place, page, re.MULTILINE), HOW


@pytest.mark.nightly
def test_every_family_is_counted():
    assert KEPT.keys() == facts.families().keys(), HOW


def same(name, preset):
    found = facts.facts(facts.presets(name)[preset])
    assert json.loads(json.dumps(found)) == KEPT[name][preset], HOW


@pytest.mark.by_day(5)
@pytest.mark.parametrize(
    ("name", "preset"),
    [x for x in PRESETS if KEPT[x[0]][x[1]]["parameters"] < FAST],
)
def test_a_preset_is_counted_so(name, preset):
    same(name, preset)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "preset"),
    [x for x in PRESETS if KEPT[x[0]][x[1]]["parameters"] >= FAST],
)
def test_a_large_preset_is_counted_so(name, preset):
    same(name, preset)


def test_numbers_that_are_known():
    """GPT-2's parameters as published; its cache by hand: 2 · layers · D · 2 bytes."""
    small = KEPT["gpt2"]["gpt2"]
    assert small["parameters"] == small["active"] == 124_439_808
    assert small["layers"] == [["all", "dense", 12]]
    assert small["widths"] == {"D": 768, "queries": 768, "keys": 768, "inner": 3072}
    assert small["cache"] == 2 * 12 * 768 * 2
    assert small["cache_full"] == small["cache"] * small["max_len"] == 36_864 * 1024
    assert small["parts"]["block.attention.q_proj"] == "Linear, with a bias"
    assert small["parts"]["block"] == "norms: pre"


def test_layers_of_each_kind_have_their_letter_and_their_words():
    config = {"model_type": "tformer", "positions": "rotary", "num_layers": 4}
    own = {**config, "window": 7, "global_every": 2, "experts": 3, "kv_heads": 2}
    found = facts.facts(own)
    assert pages.letters(found) == "WAWA"
    assert pages.layers_of(found).replace("\u00a0", " ") == (
        "2 × window 7, experts · 2 × all, experts"
    )
    assert found["active"] < found["parameters"]
    latent = facts.facts({**config, "kv_rank": 16})
    assert pages.letters(latent) == "llll"
    assert latent["cache"] == 4 * 2 * (16 + 8)  # a latent and a rotated key
    assert facts.facts(config)["cache"] == 4 * 2 * (2 * 64)


def test_a_report_is_told_with_its_place():
    told = tomllib.loads((DOCS / "families/told.toml").read_text("utf-8"))
    page = (DOCS / pages.PAGE).read_text("utf-8")
    for name, found in told.items():
        assert found.keys() <= {"title", "after", "bought", "report", "arxiv"}, name
        assert ("bought" in found) == ("report" in found), name
        assert re.fullmatch(r"\d{4}\.\d{5}", found.get("arxiv", "0000.00000")), name
        if name in KEPT and "bought" in found:
            assert found["report"] in page
    assert {"gpt2", "llama", "mistral", "qwen3"} <= told.keys()


def test_what_blocks_have_printed_is_kept_where_the_block_is_the_same():
    block = '```python\ndifference("a", "b")\n```\n\n```{.diff .output}\n'
    other = block.replace('"b"', '"c"')
    written = f"{block}```\n\n{other}```\n"
    before = f"{block}+x\n```\n"
    assert pages.with_outputs(written, before) == f"{block}+x\n```\n\n{other}```\n"


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ({"rms_norm_eps": 1e-6, "hidden_act": "silu"}, {"RMSNorm", "SiLU or its gate"}),
        ({"layer_norm_eps": 0.1}, {"LayerNorm"}),
        ({"activation_function": "gelu_new"}, {"GELU or its gate"}),
        (
            {"num_attention_heads": 8, "num_key_value_heads": 2},
            {"heads that share keys and values"},
        ),
        ({"num_attention_heads": 8, "num_key_value_heads": 8}, set()),
        ({"sliding_window": 9, "use_sliding_window": False}, set()),
        (
            {"sliding_window": 9, "layer_types": ["sliding_attention", "full"]},
            {"windows", "windows in some layers only"},
        ),
        (
            {"rope_parameters": {"rope_type": "default", "rope_theta": 1.0}},
            {"rotary positions"},
        ),
        (
            {"rope_parameters": {"a": {"rope_type": "yarn"}, "b": {}}},
            {"rotary positions", "rotary positions, scaled"},
        ),
        (
            {
                "rope_parameters": {
                    "rope_type": "default",
                    "partial_rotary_factor": 0.5,
                }
            },
            {"rotary positions", "a part of each head rotated"},
        ),
        ({"num_experts": 4, "num_shared_experts": 0}, {"experts"}),
        ({"layer_types": ["linear_attention"]}, {"linear attention or a state"}),
        ({"no_rope_layers": []}, set()),
    ],
)
def test_a_config_says_which_parts_there_are(config, parts):
    assert {part for part, asks in scan.PARTS.items() if asks(config)} == parts


def test_who_uses_what_has_its_date_and_its_version():
    today = read_kept(DOCS / "families/today.json")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", today["date"])
    page = (DOCS / pages.PAGE).read_text("utf-8")
    assert f"`transformers` {today['transformers']}" in page
    assert today["date"] in page
    used = {part for parts in today["families"].values() for part in parts}
    assert used == scan.PARTS.keys()
    assert "experts" in today["families"]["mixtral"]
    assert "experts" not in today["families"]["llama"]
