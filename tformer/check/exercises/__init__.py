"""The exercises: a part of the Transformer to write, and the spec that judges it.

What a reader is told of each stands beside this file, in NAME.md: a title, a statement,
the code to begin with, and three hints.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tformer.check.calling import Case
from tformer.check.spec import SPECS, Spec

# In the order of the chapters. A text without a spec is no exercise yet.
ORDER = """attention causal_mask multi_head sinusoids layer_norm rotary rms_norm swiglu
clamped_swiglu grouped_attention alibi t5_buckets cached_step smoothed_loss noam top_k
top_p beam index_scores choose_keys short_convolution delta_rule state_space moe route
sinkhorn hyper_connection lora speculative"""
HERE = Path(__file__).parent
COMMENT = "# Write it with NumPy or with PyTorch: import which you like.\n\n\n"


@dataclass(frozen=True)
class Exercise:
    """One exercise."""

    name: str  # by which it is asked for, and its spec is found
    title: str
    chapter: str  # where it is explained: "rotary#the-formula"
    statement: str  # what to write, in a sentence or two
    starter: str  # the file to begin with: signature and docstring
    hints: tuple[str, ...]  # each says more; the last has code

    @property
    def spec(self) -> Spec:
        """What judges it."""
        return SPECS[self.name]

    @property
    def function(self) -> str:
        """The name of the function."""
        return re.findall(r"^def (\w+)", self.starter, re.MULTILINE)[0]

    @property
    def arguments(self) -> list[str]:
        """The names of its arguments."""
        (head,) = re.findall(r"^def \w+\((.*?)\):", self.starter, re.MULTILINE)
        return [each.partition("=")[0].strip() for each in head.split(",")]

    @property
    def cases(self) -> list[Case]:
        """What a reader's function is asked: what its signature takes, no more."""
        taken = {*self.arguments}
        cases = (case for case in self.spec.cases if case.exercise)
        return [case for case in cases if case.options.keys() <= taken]

    @staticmethod
    def read(name: str, text: str) -> "Exercise":
        """Read an exercise from its text.

        Raises:
            ValueError: the text has no chapter, title, code, or three hints.
        """
        form = r"---\nchapter: (\S+)\n---\n\n# (.+?)\n\n(.+?)\n\n```python\n(.+?)```\n"
        found = re.match(form, text, re.DOTALL)
        _, *hints = re.split(r"^## Hint \d\n", text, flags=re.MULTILINE)
        if found is None or len(hints) != 3:
            raise ValueError(f"{name}.md must have chapter, title, code, three hints")
        chapter, title, statement, code = found.groups()
        told = tuple(hint.strip() for hint in hints)
        return Exercise(name, title, chapter, statement, COMMENT + code, told)


EXERCISES = {
    name: Exercise.read(name, HERE.joinpath(f"{name}.md").read_text("utf-8"))
    for name in ORDER.split()
    if name in SPECS
}
