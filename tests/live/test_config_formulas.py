"""The config reader of the page counts what the package builds."""

import json
from pathlib import Path

import pytest

from engine.tables import read_kept
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
SEEDS = 6


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


@pytest.mark.parametrize("kind", KINDS)
def test_small_models_have_the_counts_of_what_the_package_builds(kind):
    configs = [drawn(kind, seed) for seed in range(SEEDS)]
    for config, ours in zip(configs, asked([*map(json.dumps, configs)]), strict=True):
        assert "refused" not in ours, (ours, config)
        theirs = built(config)
        assert {name: ours[name] for name in theirs} == theirs, config
        assert sum(row["count"] for row in ours["rows"]) == theirs["parameters"]
