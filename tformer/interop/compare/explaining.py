"""What a language model of ours must change to compute what another one does.

Each layer of ours is run on what went into the other's, so that a layer is blamed for
nothing that was wrong before it. A change counts only if it makes them equal.

B batch · T length · D d_model · V vocabulary
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import torch
from torch import Tensor

from tformer.interop.compare.attention_changes import attention_changes
from tformer.interop.compare.block_changes import (
    feed_forward_changes,
    whole_changes,
)
from tformer.interop.compare.end_changes import (
    Form,
    embedding_forms,
    logit_forms,
    norm_row_forms,
)
from tformer.interop.compare.measuring import difference
from tformer.interop.compare.norm_changes import norm_changes
from tformer.interop.compare.recorded import Key, Recorded
from tformer.interop.compare.rotary_changes import Change, Hints, copied
from tformer.models.causal_lm import CausalLM
from tformer.nn.block import Block

MOST = 4  # changes of one block
ROLES = ("attention", "feed-forward", "block")
NORMS = {"attention": "attention_norm", "feed-forward": "feed_forward_norm"}


@dataclass
class Guess:
    """A change of one model after which it computes what the other does."""

    sentence: str  # follows "if in A"
    layers: list[Key] = field(default_factory=list)
    before: float = 0.0  # the difference of the first of the layers
    after: float = 0.0  # the same once changed: the proof


class Enough(Exception):
    """What was asked for has been computed."""


class Explaining:
    """The search for what differs.

    Args:
        ours: the model that is changed, in the dtype of the comparison.
        theirs: the rows of the other one.
        bounds: as `rounding` measures them.
        ids: (B, T).
        hints: numbers of the other model.
        letter: which of the two is ours.
    """

    def __init__(
        self,
        ours: CausalLM,
        theirs: Recorded,
        bounds: tuple[Mapping[Key, float], Mapping[Key, float]],
        ids: Tensor,
        hints: Hints,
        letter: str,
    ) -> None:
        self.ours, self.theirs = ours, theirs
        self.bounds, self.loose = bounds
        self.ids, self.hints, self.letter = ids, hints, letter
        self.blocks = cast(Sequence[Block], [*ours.blocks])
        self.guesses: list[Guess] = []
        self.unexplained: list[Key] = []
        self.alone: dict[Key, float] = {}  # by layer, how far ours is on their input

    def off(self, key: Key, ours: Tensor) -> float:
        """Return how far ours is from their row, on the same input."""
        return difference(self.theirs.rows[key].value, ours)

    def equal(self, key: Key, off: float) -> bool:
        """Whether it is rounding. NaN is not."""
        return off <= self.bounds[key]

    @torch.no_grad()
    def run(self) -> None:
        """Find all differences by layer, and what explains them."""
        rows, inputs = self.theirs.rows, self.theirs.inputs
        if any(x.shape[2] != self.ours.d_model for x in inputs):
            return  # the table says it
        if Key("embedding") in rows:
            self.piece(Key("embedding"), embedding_forms(self.ours, self.ids))
        for i in range(min(len(self.blocks), len(inputs))):
            self.block(i)
        if last := rows.get(Key("block", len(inputs) - 1)):
            self.end(last.value)

    def end(self, last: Tensor) -> None:
        """Explain the final norm and the logits."""
        ours = self.ours
        norm = self.theirs.rows.get(Key("norm"))
        x = last if ours.norm is None else ours.norm(last)
        if norm is not None and ours.norm is not None:
            self.piece(Key("norm"), norm_row_forms(ours.norm, last, self.hints))
            x = norm.value
        known = norm is not None
        forms = logit_forms(ours, x, last, self.hints, norm_is_known=known)
        self.piece(Key("logits"), forms)

    def piece(self, key: Key, forms: Iterable[Form]) -> None:
        """Explain a layer by functions; the first is what ours does."""
        before = math.nan
        tried: list[tuple[float, str]] = []
        for told, form in forms:
            try:
                value = form()
            except (IndexError, RuntimeError, ValueError):
                continue  # it does not fit these sizes
            if key.role == "logits":
                value = value[:, -self.theirs.logits.shape[1] :]
                value = value[..., : self.theirs.logits.shape[2]]
            off = self.off(key, value)
            if not told:
                before = self.alone[key] = off
                if self.equal(key, off):
                    return
                tried += self.scaled(key, value)
            else:
                tried.append((off, told))
        self.keep(key, before, [x for x in tried if self.equal(key, x[0])])

    def scaled(self, key: Key, ours: Tensor) -> Iterator[tuple[float, str]]:
        """Yield the factor that comes nearest."""
        theirs = self.theirs.rows[key].value
        if theirs.shape == ours.shape and theirs.isfinite().all():
            factor = float((theirs * ours).sum() / ours.square().sum())
            told = f"what {key} brings is multiplied by {factor:.6g}"
            yield self.off(key, factor * ours), told

    def keep(
        self, key: Key, before: float, proven: Sequence[tuple[float, str]]
    ) -> None:
        """Note what was proven of a layer, or that nothing was."""
        if not proven:
            if not before <= self.loose[key]:
                self.unexplained.append(key)
            return
        known = {guess.sentence: guess for guess in self.guesses}
        told = " — or ".join(dict.fromkeys(told for _, told in proven))
        guess = known.get(told) or Guess(told, [], before, proven[0][0])
        guess.layers.append(key)
        self.guesses += [guess] if told not in known else []

    def replay(self, block: Block, i: int, last: str = "block") -> dict[Key, Tensor]:
        """Run a block on what went into theirs, up to the row of this role."""
        rows: dict[Key, Tensor] = {}

        def keep(role: str, _: object, __: object, out: Tensor) -> None:
            rows[Key(role, i)] = out
            if role == last:
                raise Enough

        parts = {"attention": block.attention, "feed-forward": block.feed_forward}
        hooks = [
            part.register_forward_hook(partial(keep, role))
            for role, part in parts.items()
        ]
        with suppress(Enough):
            rows[Key("block", i)] = block(self.theirs.inputs[i], is_causal=True)
        for hook in hooks:
            hook.remove()
        return {key: x for key, x in rows.items() if key in self.theirs.rows}

    def block(self, i: int) -> None:
        """Explain a block: a change, and if a difference is left, another one."""
        block = copied(self.blocks[i])
        whole = Key("block", i)
        for _ in range(MOST):
            rows = self.replay(block, i)
            off = {key: self.off(key, x) for key, x in rows.items()}
            self.alone = off | self.alone  # what was before a change stands
            if self.equal(whole, off[whole]):
                return
            parts = [Key(role, i) for role in ROLES]
            wrong = [k for k in parts if k in off and not self.equal(k, off[k])]
            for key in dict.fromkeys((wrong[0], whole)):
                if changed := self.search(block, i, key, off[key]):
                    block = changed
                    break
            else:
                break
        scaled = self.scaled(wrong[0], rows[wrong[0]])
        proven = [each for each in scaled if self.equal(wrong[0], each[0])]
        self.keep(wrong[0], off[wrong[0]], proven)

    def search(self, block: Block, i: int, key: Key, before: float) -> Block | None:
        """Return the block with a change that makes this row equal, if one does."""
        proven: list[tuple[bool, float, str, Block]] = []
        whole = Key("block", i)
        known = {guess.sentence for guess in self.guesses}
        for told, change in self.changes(block, i, key.role):
            changed = copied(block)
            try:
                change(changed)
                rows = self.replay(changed, i, key.role)
                off = self.off(key, rows[key]) if key in rows else math.nan
                if not self.equal(key, off):
                    continue
                rows |= self.replay(changed, i)
            except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
                continue  # it does not fit this block
            rest = not self.equal(whole, self.off(whole, rows[whole]))
            proven.append((rest, off, told, changed))
            if told in known:  # another block differs by it
                break
        if not proven:
            return None
        if proven[-1][2] in known:
            proven = proven[-1:]
        rest = min(each[0] for each in proven)  # what makes the whole block equal
        best = [each for each in proven if each[0] == rest]
        self.keep(key, before, [(off, told) for _, off, told, _ in best])
        return best[0][3]

    def changes(self, block: Block, i: int, role: str) -> Iterator[Change]:
        """Yield what may differ in a block, for one of its rows."""
        T, hints, norms = self.ids.shape[1], self.hints, [*NORMS.values()]
        for name in ROLES[:2] if role == "block" else (role,):
            if name == "attention":
                yield from attention_changes(block, i, T, hints)
            else:
                yield from feed_forward_changes(block)
            yield from norm_changes(block, [NORMS[name]], hints)
        if role == "block":
            yield from norm_changes(block, norms, hints)
        yield from whole_changes(block, self.blocks, i)
