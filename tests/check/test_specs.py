"""Each spec passes what is right, and names what is wrong."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

from forms import FORMS
from tformer.check import SPECS, judge, judge_numbers
from tformer.check.spec import PROPERTIES

CHAPTERS = Path(__file__).parents[2] / "docs" / "chapters"
MISTAKES = [(spec, mistake) for spec in SPECS.values() for mistake in spec.mistakes]
in_each_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_package_is_right(form):
    verdict = judge(form.asked, form.function, form.framework, rtol=form.rtol)
    assert verdict.right, verdict


def stub(*args, **options):
    return None


def unfinished(*args, **options):
    raise NotImplementedError("to do")


def identity(*args, **options):
    return args[0]


def zeros(*args, **options):
    return args[0] * 0


NOTHING = [stub, unfinished, identity, zeros]
USELESS = [
    pytest.param(
        *(spec, framework, function),
        id=f"{spec.name}-{framework}-{function.__name__}",
    )
    for spec in SPECS.values()
    for framework in ("torch", "numpy")
    for function in NOTHING
]


@pytest.mark.by_day(24)
@pytest.mark.parametrize(("spec", "framework", "function"), USELESS)
def test_what_does_nothing_is_wrong(spec, framework, function):
    verdict = judge(spec, function, framework)
    assert not verdict.right
    assert verdict.differs.message in str(verdict)


@pytest.mark.by_day(240)
@pytest.mark.parametrize(
    ("spec", "mistake"), MISTAKES, ids=[f"{s.name}-{m.id}" for s, m in MISTAKES]
)
def test_every_mistake_is_caught_and_named_alone(spec, mistake):
    verdict = judge(spec, mistake.function, mistake.framework)
    assert not verdict.right
    assert [known.id for known in verdict.mistakes] == [mistake.id], verdict
    assert mistake.sentence in str(verdict)


@in_each_spec
def test_ids_are_unique_and_sections_exist(spec):
    assert len({mistake.id for mistake in spec.mistakes}) == len(spec.mistakes)
    assert len({case.name for case in spec.cases}) == len(spec.cases)
    assert {mistake.shows for mistake in spec.mistakes} <= {"value", *spec.properties}
    assert set(spec.properties) <= set(PROPERTIES)
    for mistake in spec.mistakes:
        chapter, _, section = mistake.chapter.partition("#")
        text = (CHAPTERS / f"{chapter}.md").read_text("utf-8")
        titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        slugs = {slugify(title, "-") for title in titles}
        assert section in slugs or f"{{ #{section} }}" in text, mistake.chapter
        assert len(mistake.sentence) <= 130
        assert mistake.sentence.endswith(".")


@pytest.mark.by_day(4)
@in_each_spec
def test_the_numbers_of_an_engine_are_judged_by_case(spec):
    right = {case.name: spec.right(case) for case in spec.cases}
    assert judge_numbers(spec, right).right
    wrong, case = spec.mistakes[0].function, spec.cases[-1]
    verdict = judge_numbers(spec, right | {case.name: spec.outcome(wrong, case)})
    assert verdict.spec == spec.name


def test_torch_is_not_imported():
    code = "import sys, tformer.check; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_known_mistake_may_have_an_empty_result():
    """Of beam search one leaves the end token out, which may be all there is."""

    def beam(next_log_probs, bos, eos, num_beams, max_len, length_penalty):
        live, done = [(0.0, [])], []
        for _ in range(max_len):
            every = [
                (total + float(p), [*ids, t])
                for total, ids in live
                for t, p in enumerate(next_log_probs([bos, *ids]))
            ]
            every.sort(key=lambda x: -x[0])
            done += [x for x in every[:num_beams] if x[1][-1] == eos]
            live = [x for x in every if x[1][-1] != eos][:num_beams]
        return min(done + live)[1]  # the worst of all

    assert not judge(SPECS["beam"], beam, "numpy").right
