"""The config reader in a browser: what it shows is what the package builds."""

import json
import math
import re

from playwright.sync_api import Page, expect

import live_driving as live
from engine.tables import read_kept
from live_configs import KNOWN, built, drawn
from live_serving import DOCS

PIECE = "config"
FACTS = {
    name: facts
    for sizes in read_kept(DOCS / "families" / "facts.json").values()
    for name, facts in sizes.items()
}
PRESETS = ("gpt2", "gemma-3-1b", "deepseek-v3", "gpt-oss-20b", "command-r7b")
PRESETS += ("gemma-4-e2b",)
PARTS, CACHE = "The parameters, part by part", "The bytes that layers keep"


def take(page: Page, name: str) -> None:
    page.get_by_label("model").select_option(name)


def paste(page: Page, text: str) -> None:
    page.locator(".live-piece textarea").fill(text)


def value(formula: str) -> int:
    """Compute a formula with its sizes: "2 · 4,096 + 8 · 128"."""
    terms = formula.replace(",", "").split(" + ")
    return sum(math.prod(map(int, term.split(" · "))) for term in terms)


def counted(page: Page, caption: str) -> list[tuple[int, int]]:
    """Read a table, whose rows are formula times layers; return counts, and active."""
    _, *rows, last = live.table(page, caption)
    found = []
    for name, layers, count in rows:
        formula = name.splitlines()[-1]
        number, *more = count.splitlines()
        times = int(layers.removeprefix("× ") or 1)
        assert times * value(formula) == live.number(number), name
        active = more[-1] if "active" in count else number
        active = number if active == "all active" else active
        found.append((int(live.number(number)), int(live.number(active))))
    written = last[2].splitlines()[0]
    assert sum(count for count, _ in found) == live.number(written)
    return found


def layers_shown(page: Page) -> list[str]:
    """Read the colours of all layers, from the first to the last."""
    cells = page.locator("svg.live-chart .config-layer")
    names = cells.evaluate_all("all => all.map(x => x.getAttribute('class'))")
    return [name.split()[1] for name in names]


def agrees(page: Page, theirs: dict) -> None:
    """Compare all that is shown with `theirs`: counts, layers, the cache at its end."""
    parts = counted(page, PARTS)
    assert sum(count for count, _ in parts) == theirs["parameters"]
    assert sum(active for _, active in parts) == theirs["active"]
    said = page.locator(".config-sum-up").inner_text()
    assert said.startswith(f"{theirs['parameters']:,} parameters")
    sparse = theirs["active"] < theirs["parameters"]
    assert (f"uses {theirs['active']:,} of them" in said) == sparse
    slider = page.get_by_label("tokens L")
    live.slide(page, "tokens L", int(slider.get_attribute("max") or 0))
    assert live.shown(page, "tokens L") == f"{theirs['maxLen']:,}"
    live.choose(page, "bfloat16")
    assert sum(count for count, _ in counted(page, CACHE)) == theirs["cache"][-1]
    colours = {"all": "heads", "latent": "latent", "delta rule": "delta"}
    expected = []
    for attends, network in theirs["kinds"]:
        expected.append(colours.get(attends, "window"))
        expected += ["experts"] if network == "experts" else []
    assert layers_shown(page) == expected


def of_preset(name: str) -> dict:
    facts = FACTS[name]
    kinds = [kind for *kind, count in facts["layers"] for _ in range(count)]
    return {
        **facts,
        "kinds": kinds,
        "maxLen": facts["max_len"],
        "cache": [facts["cache_full"]],
    }


def test_presets_are_those_of_the_page_of_families(page):
    for name in PRESETS:
        take(page, name)
        agrees(page, of_preset(name))


def test_what_is_pasted_is_what_the_package_builds(page):
    for kind in ("llama", "qwen3_next", "glm4_moe", "tformer", "gpt_neox"):
        config = drawn(kind, seed=3)
        paste(page, json.dumps(config))
        agrees(page, built(config))
        assert page.get_by_label("model").input_value() == "my own"


def test_the_block_has_the_parts_of_the_layer(page):
    take(page, "gpt-oss-20b")
    block = page.locator("svg.config-block")
    text = " ".join(block.locator("text").all_text_contents())
    assert "window of 128" in text
    for part in ("64 heads of 64", "8 of keys and values", "sinks", "32 experts"):
        assert part in text
    live.choose(page, "12 × all, experts")
    assert "window" not in " ".join(block.locator("text").all_text_contents())
    counts = {"gemma-2-2b": 4, "olmo-2-1b": 2, "command-r7b": 1, "gemma-4-e2b": 5}
    for name, norms in counts.items():
        take(page, name)
        inside = block.locator(".config-box.norm").count() - 1  # the last: behind them
        assert inside == norms, name
    live.choose(page, "4 × all, keys of an earlier layer")
    for part in ("keys of an earlier", "the token again", "times a fixed number"):
        assert part in block.text_content()


WRONG = {
    "": "There is nothing yet",
    "{": "This is no JSON",
    "[1]": "A config.json is an object",
    "null": "A config.json is an object",
    "{}": "The config has no model_type",
    '{"model_type": "mamba"}': 'model_type ("mamba") is not known here',
    '{"model_type": ["llama"]}': "is not known here",
    '{"model_type": "__proto__"}': "is not known here",
    '{"model_type": "constructor"}': "is not known here",
    '{"model_type": "llama", "hidden_size": "4096"}': "hidden_size",
    '{"model_type": "llama", "hidden_size": -1}': "from 1 to",
    '{"model_type": "llama", "hidden_size": 1e999}': "from 1 to",
    '{"model_type": "llama", "hidden_size": 0.5}': "from 1 to",
    '{"model_type": "llama", "num_hidden_layers": 99999999}': "from 1 to 1,000",
    '{"model_type": "llama", "num_key_value_heads": 5}': "must be divisible by",
    '{"model_type": "llama", "num_attention_heads": 99999}': "at least",
    '{"model_type": "llama", "hidden_size": 1e8, "vocab_size": 1e8}': "exactly",
    '{"model_type": "olmo3", "layer_types": ["full_attention"]}': "a list of 32",
    '{"model_type": "olmo3", "layer_types": {"length": 32}}': "a list of 32",
    '{"model_type": "qwen2", "attention_bias": false}': "must be true in qwen2",
    '{"model_type": "mixtral", "num_experts_per_tok": 9}': "at most 8",
    '{"model_type": "smollm3", "no_rope_layers": "no"}': "a list of 36",
    '{"model_type": "qwen3_moe", "mlp_only_layers": 3}': "a list of layers",
    '{"model_type": "x", "text_config": {"model_type": "y"}}': '"y") is not known',
    '{"model_type": "<img src=x onerror=alert(1)>"}': "<img src=x onerror=alert(1)>",
    "[" * 50_000: "This is no JSON",
    " " + "9" * 300_000: "more than any config.json",
}


def test_a_hostile_or_broken_text_ends_in_one_sentence(page):
    wrong, result = page.locator(".config-wrong"), page.locator(".config-result")
    for text, part in WRONG.items():
        paste(page, text)
        assert part in wrong.inner_text(), text[:80]
        assert len(wrong.inner_text()) < 700
        expect(result).to_be_hidden()
        assert page.locator(".live-piece img").count() == 0
    take(page, "gpt2")
    expect(result).to_be_visible()
    assert wrong.inner_text() == ""


def test_what_is_not_known_is_said(page):
    notes = page.locator(".config-notes")
    config = {"model_type": "llama", "quantization_config": {}, "eos_token_id": 2}
    paste(page, json.dumps(config))
    assert notes.inner_text() == ""
    paste(page, json.dumps(config | {"num_local_experts": 8, "qk_norm": True}))
    said = "Not known in llama, and not counted: num_local_experts, qk_norm"
    assert said in notes.inner_text()
    doubt = "if the words that are not known"
    assert doubt in page.locator(".config-sum-up").inner_text()
    twice = {"model_type": "gpt_oss", "num_experts_per_tok": 4}
    for used in (4, 5):  # a word that the released files write beside the other
        paste(page, json.dumps(twice | {"experts_per_token": used}))
        assert ("experts_per_token" in notes.inner_text()) == (used == 5)
    text = drawn("gemma3_text", 1)
    whole = {"model_type": "gemma3", "text_config": text, "vision_config": {}}
    paste(page, json.dumps(whole))
    assert "Only text_config is counted" in notes.inner_text()
    agrees(page, built(text))


def test_the_address_names_a_preset_and_nothing_that_was_pasted(live_page):
    page = live.ready(live_page(live.figure(PIECE), fresh=True))
    take(page, "qwen3-0.6b")
    assert page.evaluate("location.hash") == "#config=qwen3-0.6b"
    page.reload()
    live.ready(page)
    assert page.get_by_label("model").input_value() == "qwen3-0.6b"
    paste(page, '{"model_type": "gpt2"}')
    assert page.evaluate("location.hash") == ""
    for other in ("#config=no-such", "#config=__proto__", "#config=%3Cb%3E"):
        page.evaluate("hash => { location.hash = hash }", other)
        assert page.locator(".config-sum-up").inner_text().startswith("124,439,808")
    page.evaluate("location.hash = '#config=mixtral-8x7b'")
    expect(page.locator(".config-sum-up")).to_contain_text("46,702,792,704")


def test_every_part_leads_to_a_section_that_is_there(page):
    shown = set()
    for kind in KNOWN["families"]:
        for seed in range(2):
            paste(page, json.dumps(drawn(kind, seed)))
            links = page.locator(".config-table a")
            shown |= {*links.evaluate_all("all => all.map(x => x.href)")}
    assert len(shown) > 12
    for link in sorted(shown):
        chapter, section = re.search(r"/chapters/([\w-]+)/#?(.*)", link).groups()
        text = (DOCS / "chapters" / f"{chapter}.md").read_text("utf-8")
        assert not section or section in sections(text), link


def sections(text: str) -> set[str]:
    """Name the sections of a chapter as its address does."""
    heads = re.findall(r"^#{2,3} (.*?)(?: \{ #([\w-]+) \})?$", text, re.M)
    return {
        own or re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title, own in heads
    }


def some_agree(page: Page) -> None:
    for name in PRESETS[1:4]:
        take(page, name)
        agrees(page, of_preset(name))


FORMULAS = "formulas/config"
test_a_planted_fault_is_seen = live.planted(
    PIECE,
    some_agree,
    (f"{FORMULAS}/parts.js", '[2, "D", "G", "Dh"]', '[2, "D", "H", "Dh"]'),
    (f"{FORMULAS}/families.js", "allButEvery(() => 2)", "allButEvery(() => 3)"),
    (f"{FORMULAS}/layers.js", "layer < first", "layer <= first"),
    (f"{FORMULAS}.js", '[2, "W"] : ["L"]', '["W"] : ["L"]'),
    (f"{FORMULAS}.js", "E: chosen", "E: chosen + 1"),
    ("pieces/config/tables.js", "grouped(row.count)", "grouped(row.active)"),
    ("pieces/config/layers.js", '"heads" : "window"', '"window" : "heads"'),
)
