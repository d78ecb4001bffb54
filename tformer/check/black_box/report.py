"""What is said of a model: findings, what was asked, and what could not be."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from tformer.check.telling import address

# The questions, in the order in which they are asked, and what each asks.
QUESTIONS = {
    "nan": "the logits are finite",
    "shape": "one row and one token give logits of the right shape",
    "random": "two calls in eval() agree",
    "inputs": "the ids stay as they are",
    "state": "a call does not change the next",
    "batch": "each row of a batch has the logits that it has alone",
    "future": "no later token changes an earlier logit",
    "length": "appending tokens changes no earlier logit",
    "cache": "with the cache, the logits are those of the whole text",
    "padding": "padding on either side changes no logit of a real token",
    "start": "the first loss on random ids is near ln V",
    "unused": "a gradient reaches every parameter",
    "learns": "one batch can be learned by heart",
}


Number = float | int | str


@cache
def texts() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Read what is said, by id and cause."""
    return tomllib.loads(
        files(__package__).joinpath("findings.toml").read_text("utf-8")
    )


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a model, and the numbers that show it."""

    id: str  # one of QUESTIONS
    cause: str  # through what, as findings.toml names it
    numbers: Mapping[str, Number] = field(default_factory=dict)
    also: str = ""  # what else the experiments say

    @property
    def sentence(self) -> str:
        """Say it to whoever wrote the model."""
        told = texts()[self.id][self.cause]["sentence"].format(**self.numbers)
        return f"{told} {self.also}".strip()

    @property
    def chapter(self) -> str:
        """The section of the site that explains it: "masks#change-the-future"."""
        return texts()[self.id][self.cause]["chapter"]

    def as_json(self) -> dict[str, object]:
        """Give what JSON can hold."""
        told = {"id": self.id, "cause": self.cause, "sentence": self.sentence}
        return {**told, "chapter": self.chapter, "numbers": dict(self.numbers)}


@dataclass(frozen=True)
class Report:
    """The verdict on a model.

    Attributes:
        findings: what is wrong; none if the model is right in all that was asked.
        asked: the questions that were asked.
        not_asked: those that could not be, or not in full, and why.
        error: why the model could not be run at all, or "".
    """

    findings: tuple[Finding, ...] = ()
    asked: tuple[str, ...] = ()
    not_asked: Mapping[str, str] = field(default_factory=dict)
    error: str = ""

    @property
    def verdict(self) -> str:
        """Say "right", "wrong" or "not run"."""
        return "not run" if self.error else "wrong" if self.findings else "right"

    @property
    def right(self) -> bool:
        """Whether it was run and nothing is wrong."""
        return self.verdict == "right"

    def as_json(self) -> dict[str, object]:
        """Give what JSON can hold."""
        return {
            "verdict": self.verdict,
            "findings": [each.as_json() for each in self.findings],
            "asked": list(self.asked),
            "not asked": dict(self.not_asked),
            **({"reason": self.error} if self.error else {}),
        }

    def __str__(self) -> str:
        return told(self.as_json())


def told(report: Mapping[str, object]) -> str:
    """Write what `as_json` gives for people to read."""
    if report.get("reason"):
        return f"not run: {report['reason']}"
    lines = [f"The model is {report['verdict']}."]
    findings, asked, left = (report[x] for x in ("findings", "asked", "not asked"))
    if isinstance(findings, list):
        for x in findings:
            lines.append(f"- {x['id']}: {x['sentence']}\n  {address(x['chapter'])}")
        wrong = {x["id"] for x in findings}
        if isinstance(asked, list):
            fine = [QUESTIONS[name] for name in asked if name not in wrong]
            lines += ["Asked, and found as it must be:", *(f"- {x}" for x in fine)]
    if isinstance(left, Mapping) and left:
        lines += ["Not asked:", *(f"- {name}: {why}" for name, why in left.items())]
    return "\n".join(lines)
