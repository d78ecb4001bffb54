"""The config reader of the page counts what the package builds."""

import json
from pathlib import Path

import pytest

from engine.tables import read_kept
from every_module import NEEDS, OTHER_PARTS
from live_configs import KNOWN, asked, built, drawn, joined, spread
from published_sizes import COUNTS

DOCS = Path(__file__).parents[2] / "docs"
FACTS = read_kept(DOCS / "families" / "facts.json")
KINDS = [*KNOWN["families"]]
PRESETS = {
    name: {"model_type": kind, **config}
    for kind, family in KNOWN["families"].items()
    for name, config in family["presets"].items()
}


@pytest.fixture(scope="module")
def presets():
    texts = [json.dumps(config) for config in PRESETS.values()]
    return dict(zip(PRESETS, asked(texts), strict=True))


def test_every_preset_has_the_counts_of_the_page_of_families(presets):
    facts = {name: x for sizes in FACTS.values() for name, x in sizes.items()}
    counted = [name for name in PRESETS if name in facts]
    assert len(counted) >= 50
    for name in counted:
        ours, theirs = presets[name], facts[name]
        assert ours["parameters"] == theirs["parameters"], name
        assert ours["active"] == theirs["active"], name
        assert ours["kinds"] == spread(theirs["layers"]), name
        assert joined(ours["kinds"]) == theirs["layers"], name
        assert ours["maxLen"] == theirs["max_len"], name
        one, two, _, full = ours["cache"]
        assert (two - one, full) == (theirs["cache"], theirs["cache_full"]), name
        assert ours["unknown"] == []


def test_every_preset_with_experts_has_the_published_count(presets):
    for sizes in COUNTS.values():
        for name, count in sizes.items():
            assert presets[name]["parameters"] == count, name


def test_each_part_that_the_book_chooses_is_counted():
    """Alone, where it needs no other, on multi-head and on latent attention."""
    own = {"model_type": "tformer"}
    configs = {n: own | NEEDS.get(n, {}) | {n: x} for n, x in OTHER_PARTS.items()}
    told = asked([*map(json.dumps, configs.values())])
    for (name, config), ours in zip(configs.items(), told, strict=True):
        theirs = built(config)
        said = f"docs/live/formulas/config/own.js counts {name} in another way"
        assert {n: ours.get(n) for n in theirs} == theirs, said


@pytest.mark.by_day(5)
@pytest.mark.parametrize("kind", KINDS)
def test_small_models_have_the_counts_of_what_the_package_builds(kind):
    configs = [drawn(kind, seed) for seed in range(6)]
    for config, ours in zip(configs, asked([*map(json.dumps, configs)]), strict=True):
        told = "if the package refuses this too, say it in tests/live/live_configs.py"
        assert "refused" not in ours, (ours["refused"], told, config)
        theirs = built(config)
        assert {name: ours[name] for name in theirs} == theirs, config
        assert sum(row["count"] for row in ours["rows"]) == theirs["parameters"]


FAR = {"5": {"head_dim": 16, "num_key_value_heads": 1}}
ONE = {"rope_type": "default", "rope_theta": 10_000.0}
REFUSED_BY_GEMMA_4 = (
    {"num_kv_shared_layers": -1},
    {"num_kv_shared_layers": 2},  # none that sees all tokens is left
    {"num_kv_shared_layers": 99},
    {"use_bidirectional_attention": "vision"},
    {"enable_moe_block": True},
    {"hidden_activation": "silu"},
    {"rope_parameters": None},
    {"rope_parameters": {"full_attention": ONE}},
    {"global_head_dim": None},
    {"num_global_key_value_heads": 3},  # of four heads
    {"per_layer_config": {"0": {"head_dim": 16}}},  # has a window
    {"per_layer_config": FAR},  # and nothing of layer 6
    {"per_layer_config": {**FAR, "6": {**FAR["5"], "use_gate": True}}},
    {"per_layer_config": {"5": 3, "6": 3}},
    {"per_layer_config": {**FAR, "6": FAR["5"]}, "attention_k_eq_v": False},
)
TAKEN_BY_GEMMA_4 = (
    {},
    {"num_global_key_value_heads": 0},  # as many as elsewhere
    {"hidden_size_per_layer_input": None},
    {"per_layer_config": {}},  # all layers have head_dim
    {"per_layer_config": {**FAR, "6": {**dict(reversed(FAR["5"].items()))}}},
)


def test_gemma_4_refuses_what_the_package_refuses():
    seven = {"num_hidden_layers": 7, "num_kv_shared_layers": 1, "layer_types": None}
    four = {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32}
    base = drawn("gemma4_text", 0) | seven | four | {"attention_k_eq_v": True}
    base |= {"per_layer_config": None, "num_global_key_value_heads": 1}
    changes = [*TAKEN_BY_GEMMA_4, *REFUSED_BY_GEMMA_4]
    for change, ours in zip(
        changes, asked([json.dumps(base | x) for x in changes]), strict=True
    ):
        if change in TAKEN_BY_GEMMA_4:
            theirs = built(base | change)
            assert {name: ours.get(name) for name in theirs} == theirs, change
            continue
        with pytest.raises((TypeError, ValueError)):
            built(base | change)
        assert next(iter(change)) in ours.get("refused", ""), (change, ours)
