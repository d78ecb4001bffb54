"""Whether padding beside a text changes its logits.

B batch · T length · V vocabulary
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from tformer.check.black_box.box import Box
from tformer.check.black_box.forms import NotAsked, gap, parameters_of, told
from tformer.check.black_box.report import Finding

REAL = (
    "attention_mask",
    "key_mask",
    "padding_mask",
    "pad_mask",
    "input_mask",
)  # True = real
HIDDEN = (
    "key_padding_mask",
    "src_key_padding_mask",
    "tgt_key_padding_mask",
)  # True = pad


def pad_id_of(box: Box) -> int | None:
    """Find the id of padding, if the model names one."""
    holders = (box.model, getattr(box.model, "config", None))
    for holder in holders:
        for name in ("pad_id", "pad_token_id", "padding_idx", "pad_idx"):
            found = getattr(holder, name, None)
            if isinstance(found, int) and 0 <= found < box.ids:
                return found
    return None


class Mask:
    """How the model is told which tokens are real."""

    def __init__(self, box: Box) -> None:
        names = parameters_of(box.model)
        self.box, self.pad = box, pad_id_of(box)
        self.name = next((x for x in (*REAL, *HIDDEN) if x in names), None)
        self.positions = "position_ids" in names
        self.hidden = self.name in HIDDEN
        if self.name is None and self.pad is None:
            raise NotAsked("it takes no mask of padding and names no id of it")
        self.dtype = torch.bool
        if self.name is not None:
            self._find_use()

    def _find_use(self) -> None:
        """Find the dtype, and whether True means real or hidden, by a text in full."""
        ids = self.box.draw(1, min(8, self.box.longest), seed=70)
        plain = self.box(ids)
        error: Exception | None = None
        for dtype in (torch.int64, torch.bool, torch.float32):
            self.dtype = dtype
            for hidden in (self.hidden, not self.hidden):
                self.hidden = hidden
                try:
                    logits = self.ask(ids, torch.ones_like(ids, dtype=torch.bool))
                except Exception as raised:  # noqa: BLE001 - whatever it raises
                    error = raised
                    continue
                if gap(plain, logits)[0].max() <= self.box.far:
                    return
        why = f" ({told(error)})" if error else ""
        raise NotAsked(f"{self.name} of a text without padding changes its logits{why}")

    def ask(self, ids: Tensor, real: Tensor) -> Tensor:
        """Ask for logits of ids of which some are real."""
        more: dict[str, object] = {}
        device = self.box.device
        if self.name is not None:
            more[self.name] = (real ^ self.hidden).to(device, self.dtype)
        if self.positions:
            more["position_ids"] = (real.long().cumsum(1) - 1).clamp(min=0).to(device)
        return self.box(ids, more=more)


def padding(box: Box) -> Iterator[Finding]:
    """Pad short texts on either side, and compare with each alone."""
    mask = Mask(box)
    if box.by_chance:
        raise NotAsked("two calls differ")
    T = min(box.longest, 24)
    if T < 3:
        raise NotAsked(f"it takes texts of {T} tokens at most")
    rows = 1 if box.coupled or not box.takes(2, T) else 3
    lengths = [T, max(1, T // 2), max(1, T - 3)][:rows] if rows > 1 else [T // 2]
    text = box.draw(rows, T, seed=71)
    pad = 0 if mask.pad is None else mask.pad
    if mask.pad is not None:
        text = torch.where(text == pad, (pad + 1) % box.ids, text)
    for side in ("right", "left"):
        if side == "left" and mask.name is None:
            raise NotAsked("on the left: it takes no mask")
        places = torch.arange(T)[None].expand(rows, -1)
        counts = torch.tensor(lengths)[:, None]
        real = places < counts if side == "right" else places >= T - counts
        alone = []
        for row, length in enumerate(lengths):
            alone.append(box(text[row : row + 1, :length]))
        ids = torch.full((rows, T), pad)
        for row, length in enumerate(lengths):
            ids[row, real[row]] = text[row, :length]
        padded = mask.ask(ids, real)
        worst, i = 0.0, 0
        for row, x in enumerate(alone):
            share, size = gap(x, padded[row][real[row]][None])
            if share.max() > box.far and float(size.max()) > worst:
                worst, i = float(size.max()), int((share[0] > box.far).nonzero()[0])
        if worst:
            numbers = {"side": side, "change": worst, "i": i}
            yield Finding("padding", cause_of(mask, ids, real, padded, side), numbers)
            return


def cause_of(mask: Mask, ids: Tensor, real: Tensor, padded: Tensor, side: str) -> str:
    """Say whether the padding itself is seen, or moves the positions."""
    others = torch.where(real, ids, mask.box.other(ids))
    share, _ = gap(padded, mask.ask(others, real))
    if (share[real] > mask.box.near).any():
        return "seen"
    return "positions" if side == "left" else "differs"
