"""Batches: what one step of a training reads, and what it has to predict.

B rows · S length of the longest source · T length of the longest target · C context
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor

from tformer.checks import check_positive


@dataclass(frozen=True, eq=False)
class Batch(ABC):
    """Rows of ids that are learned from together: the face of every kind of batch.

    `model(*batch.inputs)` gives logits (B, T, V), to be compared with `batch.targets`
    (B, T). So one training step serves every model.
    """

    @property
    @abstractmethod
    def inputs(self) -> tuple[Tensor, ...]:
        """What the model reads."""

    @property
    @abstractmethod
    def targets(self) -> Tensor:
        """What it has to predict; padding where nothing is asked."""

    def __post_init__(self) -> None:
        name = fields(self)[0].name
        for other, tensor in self._tensors().items():
            if len(tensor) != len(self):
                raise ValueError(
                    f"{name} has {len(self)} rows but {other} has {len(tensor)}"
                )

    def __len__(self) -> int:
        return len(next(iter(self._tensors().values())))

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Self:
        """Return the batch on a device."""
        tensors = self._tensors().values()
        return type(self)(*(t.to(device, non_blocking=non_blocking) for t in tensors))

    def split(self, parts: int) -> list[Self]:
        """Cut the rows into parts, in order; sizes differ by at most one."""
        check_positive(parts=parts)
        if parts > len(self):
            raise ValueError(f"parts ({parts}) must be at most the {len(self)} rows")
        cut = (t.tensor_split(parts) for t in self._tensors().values())
        return [type(self)(*tensors) for tensors in zip(*cut, strict=True)]

    def num_tokens(self, pad_id: int | None) -> int:
        """Count the targets that are not padding, best before `to` a GPU; None: all."""
        targets = self.targets
        return targets.numel() if pad_id is None else int((targets != pad_id).sum())

    def _tensors(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class PairBatch(Batch):
    """Sources and their targets, filled up with padding, for an encoder-decoder.

    The target holds the start token, the text and the end token. The decoder reads
    `tgt[:, :-1]` and has to predict `tgt[:, 1:]`: at each position the next token.
    """

    src: Tensor  # int64 (B, S)
    tgt: Tensor  # int64 (B, T)

    @property
    def inputs(self) -> tuple[Tensor, Tensor]:
        """The sources (B, S), and the targets without their last column (B, T - 1)."""
        return self.src, self.tgt[:, :-1]

    @property
    def targets(self) -> Tensor:
        """The targets without their first column, the start token: (B, T - 1)."""
        return self.tgt[:, 1:]


@dataclass(frozen=True, eq=False)
class TextBatch(Batch):
    """Windows of a long text, for a language model: at each position the next token."""

    ids: Tensor  # int64 (B, C + 1)

    @property
    def inputs(self) -> tuple[Tensor]:
        """The windows without their last column: (B, C)."""
        return (self.ids[:, :-1],)

    @property
    def targets(self) -> Tensor:
        """The windows without their first column: (B, C)."""
        return self.ids[:, 1:]


@dataclass(frozen=True, eq=False)
class MaskedBatch(Batch):
    """Texts with some tokens hidden, for a masked language model like BERT."""

    corrupted: Tensor  # int64 (B, S): some ids replaced
    asked: Tensor  # int64 (B, S): what stood there; padding at all other positions

    @property
    def inputs(self) -> tuple[Tensor]:
        """The texts with tokens hidden: (B, S)."""
        return (self.corrupted,)

    @property
    def targets(self) -> Tensor:
        """What stood in the hidden places, and padding elsewhere: (B, S)."""
        return self.asked
