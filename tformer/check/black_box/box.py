"""A model as it is called from outside: ids (B, T) in, logits (B, T, V) out.

B batch · T length · V vocabulary
"""

import copy
import random
import time
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from tformer.check.black_box.copying import Model, copy_of, module_in
from tformer.check.black_box.forms import Form, Unusable, forms, gap, logits_of, told

LONGEST = 128  # tokens that are tried
LARGE = 20_000_000  # weights from which on fewer are tried, or a thousandth of it ids
FINEST = 2.0**-30  # no dtype is taken to be finer: parts may compute in float32


class Box:
    """A model that is asked: a copy of the reader's own, if it can be copied.

    Args:
        model: takes ids (B, T), int64, and returns logits (B, T, V).
        double: whether the copy computes in float64.

    Raises:
        Unusable: no call gives logits.
    """

    def __init__(self, model: Model, *, double: bool = False) -> None:
        self.double = double
        copied = copy_of(model)
        self.model = model if copied is None else copied
        self.copied = copied is not None
        self.device = torch.device("cpu")
        self.stateful = self.coupled = self.changed = False
        self.by_chance = self.own_numbers = self.leaks = False  # as was found
        self.noise = self.rounding = 0.0
        if (module := module_in(self.model)) is not None:
            module.eval()
            first = next(module.parameters(), None)
            self.device = self.device if first is None else first.device
            if self.copied:
                self._fill_zeros(module)
                if double:
                    module.double()
        self.pristine = copy_of(self.model) if self.copied else None
        self.wide = torch.float64
        self.form, self.dtype = self._find_form()
        weights = 0 if module is None else sum(x.numel() for x in module.parameters())
        self.large = weights > LARGE or self.ids > LARGE // 1000
        if self.large and self.dtype != torch.float64:
            self.wide = torch.float32
        self.longest = self._find_longest()
        self.measure()

    @staticmethod
    def _fill_zeros(module: nn.Module) -> None:
        """Draw what is all zeros, behind which a fault would hide.

        Some begin with last matrices of zeros; no weights excuse a fault.
        """
        draw = torch.Generator().manual_seed(0)
        for x in module.parameters():
            if x.is_floating_point() and not x.is_meta and not x.any():
                noise = torch.randn(x.shape, generator=draw) * 0.05
                x.data = noise.to(x.device, x.dtype)

    def subject(self) -> Model:
        """Return what is called: after a call has left a trace, a fresh copy."""
        fresh = copy_of(self.pristine) if self.stateful and self.pristine else None
        return self.model if fresh is None else fresh

    def fresh(self) -> Model | None:
        """Make a copy that was never called."""
        return None if self.pristine is None else copy_of(self.pristine)

    def with_model(self, model: Model) -> "Box":
        """Ask another model in the same way."""
        other = copy.copy(self)
        other.model = model
        return other

    @staticmethod
    def seed(number: int = 0) -> None:
        """Begin all random numbers anew."""
        torch.manual_seed(number)
        np.random.seed(number)
        random.seed(number)

    def raw(self, ids: Tensor, more: Mapping[str, object], model: Model) -> object:
        """Call a model as it wants to be called."""
        given = ids.clone().to(self.device)
        with torch.no_grad():
            returned = self.form(model, given, more)
        self.changed = self.changed or not torch.equal(given.cpu(), ids)
        return returned

    def __call__(
        self,
        ids: Tensor,
        *,
        seed: int | None = 0,
        model: Model | None = None,
        more: Mapping[str, object] | None = None,
    ) -> Tensor:
        """Ask for logits, in float64 on the CPU: (B, T) to (B, T, V)."""
        if seed is not None:
            self.seed(seed)
        returned = self.raw(ids, more or {}, self.subject() if model is None else model)
        return logits_of(returned, *ids.shape).detach().to("cpu", self.wide)

    def _find_form(self) -> tuple[Form, torch.dtype]:
        """Find how the model is called, and how many ids it knows."""
        errors: list[str] = []
        self.ids = 2
        known: list[object] = [8, 4, 2, 16, 32, 64, 128, 256, 512, 1024]
        known += [getattr(self.model, name, 0) for name in ("max_len", "block_size")]
        for form in forms(self.model):
            self.form = form
            for length in [x for x in known if isinstance(x, int) and x > 1]:
                try:
                    ids = torch.arange(length)[None] % 2
                    x = logits_of(self.raw(ids, {}, self.model), 1, length)
                except Exception as error:  # noqa: BLE001 - whatever it raises
                    errors.append(told(error))
                    continue
                self.works, self.ids = length, x.shape[-1]
                while self.ids > 2 and not self.takes(1, length, self.ids - 1):
                    self.ids = (self.ids + 1) // 2
                return form, x.dtype
        raise Unusable(
            f"no call gives logits: {errors[0] if errors else 'not callable'}"
        )

    def takes(self, rows: int, length: int, token: int | None = None) -> bool:
        """Say whether the model can read so many."""
        ids = self.draw(rows, length)
        ids = ids if token is None else torch.full_like(ids, token)
        try:
            self(ids)
        except Exception:  # noqa: BLE001 - whatever it raises
            return False
        return True

    def _find_longest(self) -> int:
        """Find how many tokens the model takes, up to LONGEST."""
        most = 40 if self.large else LONGEST
        good, bad = self.works, most + 1
        while good < most:
            trial = min(2 * good, most)
            if not self.takes(1, trial):
                bad = trial
                break
            good = trial
        while bad - good > 1 and good < most:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if self.takes(1, middle) else (good, middle)
        return good

    def measure(self) -> None:
        """Measure what two calls differ by, what rounding does, and the time."""
        ids = self.draw(1, self.longest, seed=7)
        first = self(ids)
        begin = time.perf_counter()
        second = self(ids)
        self.cost = (time.perf_counter() - begin) / self.longest  # seconds a token
        self.noise = float(gap(first, second)[0].max())
        try:
            beside = self(ids.expand(3, -1))[1:2]
            self.rounding = min(float(gap(first, beside)[0].max()), 1e-3)
        except Exception:  # noqa: BLE001 - it takes no batch
            self.rounding = 0.0

    @property
    def eps(self) -> float:
        """The rounding of the coarsest dtype in which the model seems to compute."""
        return max(torch.finfo(self.dtype).eps, FINEST)

    @property
    def near(self) -> float:
        """What rounding may change in calls of one shape, as a share."""
        return max(25 * self.eps if self.eps < 1e-5 else 2 * self.eps, 10 * self.noise)

    @property
    def far(self) -> float:
        """What rounding may change between calls of different shapes."""
        wide = 800 * self.eps if self.eps < 1e-5 else 8 * self.eps
        return max(wide, 10 * self.noise, 20 * self.rounding)

    def draw(self, rows: int, length: int, seed: int = 0) -> Tensor:
        """Draw ids (B, T), the same in each run."""
        generator = torch.Generator().manual_seed(1000 * seed + 10 * length + rows)
        return torch.randint(self.ids, (rows, length), generator=generator)

    def other(self, ids: Tensor, seed: int = 1) -> Tensor:
        """Draw ids that differ from these in every place."""
        generator = torch.Generator().manual_seed(seed)
        steps = torch.randint(1, max(self.ids, 2), ids.shape, generator=generator)
        return (ids + steps) % self.ids

    def affordable(self, tokens: int, seconds: float) -> int:
        """Say how many tokens of these can be read in the time, at least 64."""
        return max(64, min(tokens, int(seconds / max(self.cost, 1e-9))))

    def rows_at_once(self, length: int) -> int:
        """Say how many rows a call may have."""
        if self.coupled:
            return 1
        return int(max(1, min(32, 3e7 // (length * self.ids))))

    def pairs(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Compare the logits of rows with those of others of the same shape: (N, T)."""
        shares, sizes = [], []
        step = self.rows_at_once(x.shape[1])
        for begin in range(0, len(x), step):
            a, b = (z[begin : begin + step] for z in (x, y))
            share, size = gap(self(a), self(b))
            shares.append(share)
            sizes.append(size)
        return torch.cat(shares), torch.cat(sizes)
