"""Models that see no future and models with a fault, as tformer.check.model tells."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

import tformer.check
from faulty_models import FAULTS, Small
from right_models import RIGHT, Kept, Nano
from tformer.check.black_box.report import QUESTIONS, texts

CHAPTERS = Path(__file__).parents[2] / "docs" / "chapters"


@pytest.fixture(autouse=True)
def drawn():
    torch.manual_seed(1)


# By day a fault for each question; all at night.
FIRST = {id: name for name, (id, _) in reversed(FAULTS.items())}
EVERY_FAULT = [
    pytest.param(name, marks=[pytest.mark.nightly] * (name != FIRST[id]))
    for name, (id, _) in FAULTS.items()
]


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", RIGHT)
def test_right_models_are_right(name):
    report = tformer.check.model(RIGHT[name]())
    assert report.verdict == "right", str(report)
    assert {"nan", "random", "state", "batch", "future", "length"} <= {*report.asked}


def test_what_a_model_offers_is_asked():
    assert {*tformer.check.model(Small()).asked} == {*QUESTIONS}
    assert "cache" in tformer.check.model(Kept()).asked
    assert "start" not in tformer.check.model(RIGHT["trained"]()).asked
    report = tformer.check.model(RIGHT["frozen"]())
    assert {"cache", "start"} <= {*report.asked}
    assert {"unused", "learns"} <= {*report.not_asked}


@pytest.mark.by_day(5)
@pytest.mark.parametrize("name", EVERY_FAULT)
def test_a_fault_is_found_and_nothing_else(name):
    report = tformer.check.model(Small(name))
    id, cause = FAULTS[name]
    assert [finding.id for finding in report.findings] == [id], str(report)
    assert cause in (None, report.findings[0].cause), str(report)


def test_the_faults_of_the_corpus_are_many():
    assert len(FAULTS) >= 40
    assert {id for id, _ in FAULTS.values()} == {*QUESTIONS} - {"learns"}


def test_through_which_module_and_head():
    sentence = tformer.check.model(Small("one head without mask")).findings[0].sentence
    assert "head 2 of 4" in sentence
    assert "layers.0.attention" in sentence
    late = tformer.check.model(Small("no mask in the last layer")).findings[0].sentence
    assert "first shows in layers.1.attention" in late
    begin = tformer.check.model(Small("no mask from the 17th on")).findings[0].sentence
    assert "No position before 16" in begin


FORMS = ("enclosed", "partial", "numpy")
OF_FUNCTIONS = [
    ("no mask", "future"),
    ("all see token 11", "future"),
    ("minus the mean of logits", "future"),
    ("shifted inputs", "future"),
    ("positions from the end", "length"),
    ("rows see each other", "batch"),
    ("dropout left on", "random"),
    ("a state from call to call", "state"),
]
FUNCTIONS = [(form, *fault) for fault in OF_FUNCTIONS for form in FORMS]


@pytest.mark.by_day(5)
@pytest.mark.parametrize(("form", "name", "id"), FUNCTIONS)
def test_functions_too(name, id, form):
    """Where no module is seen, and none can be changed."""
    import functools

    net = Small(name)
    makes = {
        "enclosed": lambda: lambda ids: net(ids),
        "partial": lambda: functools.partial(Small.__call__, net),
        "numpy": lambda: lambda ids: net(torch.from_numpy(ids)).detach().numpy(),
    }
    report = tformer.check.model(makes[form]())
    assert [finding.id for finding in report.findings] == [id], str(report)


def test_a_cache_that_is_not_emptied():
    findings = tformer.check.model(Kept("it is never empty")).findings
    assert [(each.id, each.cause) for each in findings] == [("cache", "again")]


def test_probabilities_are_no_logits():
    net = Small()
    report = tformer.check.model(lambda ids: net(ids).softmax(-1), seconds=5.0)
    (finding,) = [each for each in report.findings if each.id == "start"]
    assert finding.cause == "probabilities"


class Dull(nn.Module):
    """Its logits know nothing of the ids but their own token, and cannot learn more."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(31, 1)

    def forward(self, ids):
        return torch.tanh(self.embedding(ids)) * torch.linspace(-1, 1, 31)


def test_what_cannot_learn():
    assert [x.id for x in tformer.check.model(Dull()).findings] == ["learns"]


def test_nothing_is_changed():
    net = Nano().train()
    before = {name: x.clone() for name, x in net.state_dict().items()}
    torch.manual_seed(3)
    wanted = torch.rand(3)
    torch.manual_seed(3)
    tformer.check.model(net)
    assert torch.equal(torch.rand(3), wanted)
    assert net.training
    assert all(module.training for module in net.modules())
    after = net.state_dict()
    assert all(torch.equal(x, after[name]) for name, x in before.items())
    assert all(x.grad is None for x in net.parameters())


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (3, r"the model \(int\) must be callable"),
        (lambda: 0, "TypeError"),
        (lambda _: None, "returned NoneType, not logits"),
        (lambda ids: ids, r"made \(1, 8\), not \(B, T, V\)"),
        (lambda ids: torch.zeros(len(ids), 5), r"made \(1, 5\)"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (lambda ids: torch.zeros(len(ids), 1, 5), r"made \(1, 1, 5\)"),
    ],
)
def test_what_cannot_be_run_is_not_blamed(model, said):
    report = tformer.check.model(model)
    assert report.verdict == "not run"
    assert re.search(said, report.error), report.error
    assert not report.findings


def test_every_sentence_names_a_section_that_there_is():
    for id, causes in texts().items():
        assert id in QUESTIONS
        for cause, said in causes.items():
            chapter, _, section = said["chapter"].partition("#")
            text = (CHAPTERS / f"{chapter}.md").read_text("utf-8")
            heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
            plain = (re.sub(r"\{.*\}|[^\w\s-]", "", head).strip() for head in heads)
            slugs = {re.sub(r"[\s-]+", "-", head).lower() for head in plain}
            known = section in slugs or f"{{ #{section} }}" in text
            assert known, (id, cause, said["chapter"])
