"""The search: what learners type, the section that answers it, and how one gets there.

The words are those of titles of questions: at Stack Overflow and its sisters, on
PyTorch's forum, and of issues at GitHub, where people implement attention.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from test_site_browser import DESK, PHONE, opened

# What is typed, and the section where Enter has to lead, or one of several. A page,
# with a slash at its end, stands for itself and its sections.
QUESTIONS = {
    "why divide by square root of d_k": "attention/#why-sqrt",
    "attention from scratch": "attention/#in-ten-lines",
    "out of memory long sequence": "attention/#memory",
    "softmax overflow float16": "attention/#sixteen-bits",
    "softmax dim": "attention/#what-if-softmax-runs-over-the-wrong-axis",
    "src_mask vs src_key_padding_mask": "masks/#two-polarities",
    "attention mask shape": "masks/#which-shape-does-a-mask-have",
    "nan after softmax all keys masked": "masks/#nothing-to-look-at",
    "is_causal lower right": "masks/#the-other-corner",
    "how to test causal mask": "masks/#change-the-future",
    "why multiple heads": "heads/#one-head-for-two-jobs",
    "view vs transpose heads": "heads/#view-without-transpose",
    "nn.MultiheadAttention weights": "heads/#against-nnmultiheadattention",
    "repeat_kv": "heads/#fewer-keys-and-values",
    "why sin and cos": ("positions/#why-sines-and-cosines-a-shift-is-a-rotation"),
    "why multiply embedding by sqrt d_model": "transformer/#why-multiply-by-d",
    "pre-norm vs post-norm": ("residuals/#post-norm-or-pre-norm-which-trains-better"),
    "teacher forcing": "teacher-forcing/",
    "number of parameters": "transformer/#how-many-parameters",
    "ignore padding in loss": (
        "batches/#what-if-padding-counts-in-the-loss loss/#what-if-padding-counts"
    ),
    "perplexity": "loss/#what-are-perplexity-and-bits",
    "why warmup": "optimizer/#what-if-there-is-no-warm-up",
    "weight decay bias layernorm": "optimizer/#which-weights-decay",
    "temperature": "decoding/#what-does-a-temperature-change",
    "top_p vs top_k": "decoding/#what-do-top-k-top-p-and-min-p-keep",
    "kv cache size": "kv-cache/#how-large-is-a-kv-cache",
    "past_key_values": "kv-cache/#how-is-a-cache-written",
    "rope scaling longer context": "longer-texts/#four-ways",
    "rotate_half interleaved": "rotary/#the-layouts-are-mixed",
    "lora rank": "adapting/#low-rank adapting/#the-code",
    "load balancing loss": "balance/#balance-loss",
    "get attention weights": "reading-attention/#how-are-the-weights-recorded",
    "repeats the same word": "../mistakes/#the-text-repeats-itself",
    "loss does not decrease": "../mistakes/#the-loss-stays-near-ln-v",
}
# Other people's names for what the book calls by one name.
SYNONYMS = {
    "rope": "rotary/",
    "rotary embedding": "rotary/",
    "positional encoding": "positions/",
    "look-ahead mask": "masks/#three-masks-a-line-each",
    "GQA": "heads/#fewer-keys-and-values",
    "multi-query attention": "heads/#fewer-keys-and-values",
    "MLA": "small-caches/",
    "nucleus sampling": "decoding/#what-do-top-k-top-p-and-min-p-keep",
    "MoE": "experts/",
    "skip connection": "residuals/#the-residual-connection",
    "layer normalization": "residuals/#what-does-a-norm-do",
    "MLP": "feed-forward/",
    "weight tying": "transformer/#what-does-tying-do-before-any-training",
    "BPE": "tokens/",
    "tokenization": "tokens/",
    "quantization": "smaller-numbers/",
    "initialization": "starting-well/",
    "flash attention": "tiles/",
    "online softmax": "tiles/#why-it-is-exact",
    "speculative decoding": "faster-writing/",
    "sliding window attention": "long-context/#reach",
    "SwiGLU": "swiglu/#the-gated-network",
    "mamba": "state-spaces/",
    "cross attention": "decoder/",
    "next token prediction": "gpt/",
    "fine-tuning": "adapting/",
}
ASKED = {**QUESTIONS, **SYNONYMS}
FIELD, LINK = ".md-search__input", ".md-search-result__link"
# What Enter opens, by Material's own rule, and whether a reader sees it in the list.
FIRST = """() => {
  const all = [...document.querySelectorAll("[data-md-score]")]
  const score = (article) => Number(article.dataset.mdScore)
  const best = all.reduce((one, other) => score(other) > score(one) ? other : one)
  const folded = best.closest("details:not([open])") !== null
  return [best.parentElement.href, folded, document.querySelector("h1 mark, h2 mark")
    ?.closest("li").innerText ?? ""]
}"""
MARKS = (
    """() => [...document.querySelectorAll("mark")].map((mark) => mark.textContent)"""
)


@pytest.fixture(scope="module")
def tab(browser: Browser, home: str) -> Iterator[Page]:
    with opened(browser, home) as (tab, _):
        yield tab


def search(tab: Page, query: str) -> None:
    """Paste a query, without a key as a menu does, and wait for its own results."""
    tab.locator(FIELD).fill("")
    tab.locator(LINK).first.wait_for(state="detached")
    tab.locator(FIELD).fill(query)
    tab.locator(LINK).first.wait_for()


@pytest.mark.by_day(6)
@pytest.mark.parametrize("query", ASKED)
def test_enter_leads_to_the_section_that_answers(
    tab: Page, home: str, query: str
) -> None:
    search(tab, query)
    url, folded, _ = tab.evaluate(FIRST)
    page, _, section = url.removeprefix(f"{home}chapters/").partition("#")
    place = page.partition("?")[0].replace(home, "../") + (
        f"#{section}" * bool(section)
    )
    wanted = ASKED[query].split()
    pages = tuple(x for x in wanted if x.endswith("/"))
    assert place in wanted or (pages and place.startswith(pages)), place
    assert not folded


@pytest.mark.by_day(1)
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_a_page_from_the_search_is_unharmed(
    browser: Browser, home: str, size: tuple[int, int]
) -> None:
    """One Enter, and the section stands at the top; only whole words are marked."""
    with opened(browser, home) as (tab, wrong):
        tab.set_viewport_size({"width": size[0], "height": size[1]})
        tab.locator("label[for=__search]").first.dispatch_event("click")
        tab.locator(FIELD).focus()
        tab.keyboard.type("kv cache size")
        tab.keyboard.press("Enter")  # before anything was found
        tab.wait_for_url("**/kv-cache/?h=*#how-large-is-a-kv-cache")
        tab.locator("mark").first.wait_for()
        tab.wait_for_timeout(500)
        top = "document.getElementById('how-large-is-a-kv-cache')"
        assert 0 <= tab.evaluate(f"{top}.getBoundingClientRect().top") <= 200
        marks = {text.lower() for text in tab.evaluate(MARKS)}
        assert marks <= {"kv", "cache", "size", "kv cache", "cache size"}, marks
        assert not tab.locator(".md-header mark, .md-nav mark").count()
        assert not wrong, "\n".join(wrong)


def test_no_result_has_stray_signs_or_stems(tab: Page) -> None:
    for query in ("causal mask", "masks", "kv caches size", "quantization siz"):
        search(tab, query)
        titles = tab.locator(".md-search-result__item :is(h1, h2)").all_inner_texts()
        seen = [title for title in titles if title]  # others are folded
        assert not [title for title in seen if title[0] in "<>&*"], seen
        missing = tab.locator(".md-search-result__terms").all_inner_texts()
        assert "*" not in "".join(missing), missing


@pytest.mark.nightly
def test_a_search_that_could_not_be_loaded_says_so_and_tries_again(
    browser: Browser, home: str
) -> None:
    with opened(browser, home) as (tab, _):
        refused: list[str] = []

        def refuse(route: object) -> None:
            refused.append("once")
            route.abort()  # type: ignore[attr-defined]

        tab.route("**/sections.json", refuse)
        tab.locator(FIELD).focus()
        tab.keyboard.type("softma")
        tab.get_by_text("The search could not be loaded").wait_for()
        assert refused
        tab.unroute("**/sections.json")
        tab.keyboard.type("x")
        tab.locator(LINK).first.wait_for()


def test_every_term_of_the_glossary_is_a_link_away(
    browser: Browser, home: str, site: Path
) -> None:
    html = (site / "glossary/index.html").read_text("utf-8")
    terms = html.count("<dt")
    with opened(browser, home, "glossary/") as (tab, _):
        links = tab.locator(".glossary-terms a")
        assert links.count() == terms > 100
        targets = links.evaluate_all(
            "all => all.map((link) => decodeURIComponent(link.hash.slice(1)))"
        )
        assert len(set(targets)) == terms
        found = (
            "all => all.filter((id) => document.getElementById(id)?.tagName !== 'DT')"
        )
        assert not tab.evaluate(found, targets)
        search(tab, "absorbed form")
        assert "glossary/" in " ".join(
            tab.locator(LINK).evaluate_all("all => all.map((link) => link.href)")
        )
