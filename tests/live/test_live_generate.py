"""Sampling, beam search, vocabulary and numbers of the engine against the package."""

import pytest
import torch

from tformer import load_pretrained
from tformer.generate.beam import beam_search, length_divisor
from tformer.generate.sampling import min_p_filter, top_k_filter, top_p_filter
from tformer.generate.translate import translate
from tformer.tasks.dates import ISO_LEN, DatesTask, date_examples

TEXTS = [example.text for example in date_examples(12, seed=8, split="test")]
START = """
const { Transformer } = await import('/live/engine/transformer.js');
const written = await import('/live/engine/generate.js');
const sampling = await import('/live/engine/sampling.js');
const model = (window.model ??= await Transformer.load('/live/models/dates'));
const read = (text) => model.vocabulary.encode(text, { eos: true });
"""


@pytest.fixture(scope="module")
def dates():
    return load_pretrained("dates")


@pytest.fixture
def ask(live_page):
    page = live_page()
    return lambda code, given=None: page.evaluate(
        f"async (given) => {{ {START} {code} }}", given
    )


def test_each_step_tells_what_it_read_and_chose(ask, dates):
    code = """
    const seen = [];
    for (const step of written.write(model, read(given))) {
      const { target, id, ids, logits, probabilities, record } = step;
      seen.push({ target, id, ids, names: [...record.keys()],
        best: written.argmax(logits), sum: probabilities.reduce((a, b) => a + b, 0),
        p: probabilities[id],
        last: record.matrix('probabilities').row(ids.length - 1)[id],
        long: record.matrix('src_embedding').rows });
    }
    return seen;"""
    model, vocabulary = dates[:2]
    steps = ask(code, TEXTS[0])
    src = vocabulary.encode_batch(TEXTS[:1], eos=True)
    for n, step in enumerate(steps):
        assert step["target"] == [1, *step["ids"][:-1]]
        assert step["ids"][-1] == step["id"] == step["best"]
        assert step["sum"] == pytest.approx(1, abs=1e-5)
        with torch.no_grad():
            p = model(src, torch.tensor([step["target"]]))[0, -1].softmax(-1)
        assert step["p"] == pytest.approx(float(p[step["id"]]), abs=1e-5)
        assert step["p"] == step["last"]
        assert step["long"] == len(TEXTS[0]) + 1
        assert len(step["ids"]) == n + 1
    written = translate(model, vocabulary, TEXTS[:1], max_len=ISO_LEN + 1)
    assert [vocabulary.decode(steps[-1]["ids"])] == written


FILTERS = {"topK": top_k_filter, "topP": top_p_filter, "minP": min_p_filter}


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"topK": 3},
        {"topK": 1},
        {"topP": 0.9},
        {"topP": 1e-9},
        {"topP": 1},
        {"minP": 0.2},
        {"topK": 5, "topP": 0.8, "minP": 0.1},
    ],
)
def test_filters_leave_what_the_package_leaves(ask, filters):
    logits = 3 * torch.randn(40, 17)
    if not {"topP", "topK"} & set(filters):  # of equal ones torch may keep either
        logits[:, 5] = logits[:, 4]
    code = """return given.logits.map((row) =>
        [...sampling.filtered(Float32Array.from(row), 0.7, given.filters)])"""
    ours = ask(code, {"logits": logits.tolist(), "filters": filters})
    theirs = (logits - logits.amax(-1, keepdim=True)) / 0.7
    for name, value in filters.items():
        theirs = FILTERS[name](theirs, value)
    assert torch.allclose(torch.tensor(ours), theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("temperature", "filters", "message"),
    [
        (0, {}, "temperature (0) must be above 0 and finite"),
        (1, {"topK": 0}, "top_k (0) must be an int in [1, vocab_size = 3]"),
        (1, {"topK": 4}, "top_k (4) must be an int in [1, vocab_size = 3]"),
        (1, {"topP": 0}, "top_p (0) must be in (0, 1]"),
        (1, {"minP": 2}, "min_p (2) must be in (0, 1]"),
    ],
)
def test_a_filter_out_of_its_range_is_told(ask, temperature, filters, message):
    code = """try {
      sampling.filtered(Float32Array.of(1, 2, 3), given.temperature, given.filters);
    } catch (error) { return error.message; }"""
    assert ask(code, {"temperature": temperature, "filters": filters}) == message


def test_draws_come_as_often_as_their_probability(ask):
    code = """
    const random = sampling.seededRandom(7);
    const counts = given.map(() => 0);
    for (let i = 0; i < 40000; i++) {
      counts[sampling.draw(Float32Array.from(given), random)] += 1;
    }
    return counts;"""
    p = torch.tensor([0.5, 0.0, 0.3, 0.15, 0.05])
    counts = torch.tensor(ask(code, p.tolist()), dtype=torch.float64)
    assert counts[1] == 0
    deviation = (40_000 * p * (1 - p)).sqrt()
    assert bool(((counts - 40_000 * p).abs() <= 4 * deviation).all())


def test_one_seed_gives_one_text_and_others_give_others(ask):
    code = """return [0, 0, 1, 2, 3].map((seed) =>
        written.sample(model, read(given), { seed, temperature: 4 }).ids.join())"""
    first, again, *others = ask(code, TEXTS[0])
    assert first == again
    assert len({first, *others}) == 4


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("beams", [1, 3])
def test_beam_search_finds_what_the_package_finds(ask, dates, beams, penalty):
    code = """return given.texts.map((text) => written.beamSearch(model, read(text),
        { numBeams: given.beams, lengthPenalty: given.penalty, maxLen: 12 }))"""
    model, vocabulary = dates[:2]
    given = {"texts": TEXTS[:4], "beams": beams, "penalty": penalty}
    options = {"num_beams": beams, "length_penalty": penalty, "max_len": 12}
    options |= {"bos_id": 1, "eos_id": 2}
    for text, found in zip(TEXTS, ask(code, given), strict=False):
        source = vocabulary.encode_batch([text], eos=True)
        theirs = beam_search(model, source, **options)
        for beam, ids, score in zip(
            found, theirs.ids[0], theirs.scores[0], strict=True
        ):
            assert vocabulary.decode(beam["ids"]) == vocabulary.decode(ids.tolist())
            assert beam["score"] == pytest.approx(float(score), abs=1e-4)
            divisor = length_divisor(len(beam["ids"]), penalty)
            assert beam["score"] == pytest.approx(beam["sum"] / divisor)


def test_the_tree_of_a_search_holds_together(ask):
    code = """return [...written.searchBeams(model, read(given), { numBeams: 3 })]"""
    live = [{"ids": [], "sum": 0.0}]
    for step in ask(code, TEXTS[1]):
        sums = [beam["sum"] for beam in step["candidates"]]
        assert sums == sorted(sums, reverse=True)
        assert len(step["candidates"]) == 6
        for beam in step["candidates"]:
            parent = live[beam["parent"]]
            assert beam["ids"][:-1] == parent["ids"]
            assert beam["sum"] <= parent["sum"]
            assert beam["ended"] == (beam["ids"][-1] == 2)
        live = step["live"]
    assert len(step["ended"]) == 3


def test_the_vocabulary_is_the_packages(ask, dates):
    code = "return given.map((text) => model.vocabulary.encode(text, { bos: true }))"
    vocabulary = dates.vocabulary
    texts = [*TEXTS, vocabulary.characters]
    assert ask(code, texts) == [vocabulary.encode(text, bos=True) for text in texts]
    symbols = ask("return given.map((id) => model.vocabulary.symbol(id))", [0, 1, 2, 3])
    assert symbols == ["⟨unknown⟩", "⟨bos⟩", "⟨eos⟩", vocabulary.characters[0]]
    ids = [1, 5, 6, 0, 2, 9]
    decoded = ask("return model.vocabulary.decode(given)", ids)
    assert decoded == vocabulary.decode(ids)


def test_unknown_characters_become_padding_one_for_a_code_point(ask):
    text = "3 mai ☃👩‍👧 😀x"
    given = ask("return [read(given), model.vocabulary.unknown(given)]", text)
    ids, unknown = given
    assert len(ids) == len(text) + 1
    assert [i for i, c in enumerate(text) if c in unknown] == [
        i for i, number in enumerate(ids) if number == 0
    ]
    assert ask("return read(given)", "") == [2]


def test_a_text_without_any_known_character_is_read_as_its_end_alone(ask):
    code = "return written.greedy(model, read(given)).ids.length"
    for text in ("☃☃☃", "", "‮א", "x" * 60, "☃" * 60):
        assert 1 <= ask(code, text) <= 11


def test_texts_are_made_plain_as_the_task_does(ask):
    code = """const dates = await import('/live/engine/dates.js');
        return [dates.plain(given), dates.ISO_LEN, dates.MAX_SOURCE_LEN]"""
    plain, iso, longest = ask(code, "3 mai 1979, févr.")
    assert plain == "3 mai 1979, févr."
    assert (iso, longest) == (ISO_LEN, DatesTask.max_source_len)


def test_every_half_is_read_as_torch_reads_it(ask):
    code = """const { float16 } = await import('/live/engine/safetensors.js');
        return Array.from({ length: 65536 }, (_, bits) => String(float16(bits)))"""
    bits = torch.arange(65536).to(torch.uint16).view(torch.float16).double()
    ours = torch.tensor([float(text) for text in ask(code)], dtype=torch.float64)
    assert torch.equal(ours.nan_to_num(nan=7.5), bits.nan_to_num(nan=7.5))
    assert torch.equal(ours.signbit()[:31745], bits.signbit()[:31745])
