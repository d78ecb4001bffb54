"""A plugin of pytest: `pytest --tformer-model my.py:make_model`, a test a question.

Nothing else is imported until the option is given.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

OPTION = "--tformer-model"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("tformer").addoption(
        OPTION,
        metavar="FILE:FUNCTION",
        help="ask a language model whether it sees the future, and what else shows: "
        "FUNCTION of FILE returns it, or a folder holds it",
    )


def pytest_collection(session: pytest.Session) -> None:
    """Make no other test necessary."""
    if target := session.config.getoption(OPTION):
        session.config.stash[MODEL] = Model.from_parent(
            session, name=str(target), nodeid=str(target)
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Put the questions before other tests."""
    model = config.stash.get(MODEL, None)
    if model is not None:
        report = config.hook.pytest_make_collect_report(collector=model)
        config.hook.pytest_collectreport(report=report)  # which counts them
        items[:0] = report.result


class Model(pytest.Collector):
    """A model, which is asked once, when its first test runs."""

    answers: dict[str, object] | None = None

    def collect(self) -> Iterator["Question"]:
        """Yield a test for each question."""
        from tformer.check.black_box.report import QUESTIONS

        for name, said in QUESTIONS.items():
            yield Question.from_parent(self, name=name, said=said)

    def ask(self) -> dict[str, object]:
        """Ask the model."""
        if self.answers is None:
            from tformer.cli.black_box import ask

            self.answers = ask(self.name)
        return self.answers


MODEL = pytest.StashKey[Model]()


class WrongModel(Exception):
    """What was found, without a traceback."""


class Question(pytest.Item):
    """One question to the model."""

    def __init__(self, *, said: str, name: str, parent: Model) -> None:
        super().__init__(name, parent)
        self.said, self.model = said, parent

    def runtest(self) -> None:
        """Fail with what was found; skip what could not be asked."""
        report = self.model.ask()
        if reason := report.get("reason"):
            raise WrongModel(f"not run: {reason}")
        findings = report["findings"]
        for finding in findings if isinstance(findings, list) else []:
            if finding["id"] == self.name:
                raise WrongModel(f"{finding['sentence']} See {finding['chapter']}.")
        asked, left = report["asked"], report["not asked"]
        if (
            isinstance(asked, list)
            and self.name not in asked
            and isinstance(left, dict)
        ):
            pytest.skip(str(left.get(self.name, "not asked")))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], *_: object
    ) -> str:
        """Say what was found, alone."""
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the test: the model and what is asked."""
        return self.path, None, f"{self.model.name}: {self.said}"
