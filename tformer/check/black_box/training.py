"""Whether a model begins well and can be trained: the loss, gradients, one batch.

B batch · T length · V vocabulary
"""

import math
import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tformer.check.black_box.box import Box
from tformer.check.black_box.copying import Model, copy_of, module_in
from tformer.check.black_box.forms import Form, NotAsked, gap, logits_of
from tformer.check.black_box.report import Finding

ABOVE = 1.5  # nats above ln V that first logits may cost
STEPS = 300
RATES = (3e-3, 1e-2, 5e-4)


def loss_of(logits: Tensor, ids: Tensor) -> Tensor:
    """Compute the mean loss of each next token."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())


def untrained(module: nn.Module) -> bool:
    """Say whether the numbers are as they are drawn: all of a matrix alike.

    In a trained one rows are of unequal lengths, and gains of norms of unequal sizes.
    """
    for name, parameter in module.named_parameters():
        x = parameter.detach().double()
        if x.ndim == 2 and min(x.shape) >= 4 and x.any():
            for axis in (0, 1):
                squares = x.square().mean(1 - axis)
                squares = squares[squares > 0]  # an embedding's row of padding
                usual = x.square()
                expected = (usual.var() / x.shape[1 - axis]).sqrt()
                if squares.std() > 2.0 * expected + 1e-12:
                    return False
        elif x.ndim == 1 and name.endswith("weight") and len(x) > 1 and x.std() > 1e-6:
            return False
    return True


def start(box: Box, given: Model) -> Iterator[Finding]:
    """Ask for the loss on random ids of the model as it was given."""
    T = min(box.longest, 32)
    rows = 1 if box.coupled or not box.takes(4, T) else 4
    if T < 2:
        raise NotAsked("it takes no two tokens")
    model = copy_of(given) or given
    if (module := module_in(model)) is not None:
        module.eval()
    ids = torch.cat([box.draw(rows, T, seed=80 + k) for k in range(2)])
    logits = torch.cat([box(x, model=model) for x in (ids[:rows], ids[rows:])])
    loss, even = float(loss_of(logits, ids)), math.log(box.ids)
    numbers = {
        "loss": loss,
        "even": even,
        "spread": float(logits[logits.abs() < 1e4].std()),
    }
    doubt = (
        4 * float(logits.clamp(-30, 30).std()) / math.sqrt(ids.numel()) + 0.05 * even
    )
    if logits.min() >= 0 and (logits.sum(-1) - 1).abs().max() < 1e-3:
        yield Finding("start", "probabilities", {})
        return
    if loss < even - max(doubt, 0.1) and not box.leaks:
        yield Finding("start", "below", numbers)
    if loss > even + ABOVE:
        if module is None:
            raise NotAsked("whether it was trained cannot be seen in a function")
        if not untrained(module):
            raise NotAsked("its weights are not those of a beginning")
        yield Finding("start", "above", numbers)


class Pupil:
    """A copy of a model that is trained."""

    def __init__(self, box: Box, begin: Model | None) -> None:
        made = None if begin is None else copy_of(begin)
        module = None if made is None else module_in(made)
        if made is None or module is None:
            raise NotAsked("it is a function, or cannot be copied")
        self.model, self.module, self.form = made, module, box.form
        self.box = box
        self.weights = {n: x for n, x in module.named_parameters() if x.requires_grad}
        if not self.weights:
            raise NotAsked("none of its parameters asks for a gradient")
        module.train()
        for part in module.modules():
            if isinstance(part, nn.Dropout):
                part.p = 0.0
            if isinstance(part, nn.MultiheadAttention):
                part.dropout = 0.0

    def loss(self, ids: Tensor) -> Tensor:
        """Compute the loss, with what its gradient needs."""
        form: Form = self.form
        given = ids.clone().to(self.box.device)
        with torch.enable_grad():
            logits = logits_of(form(self.model, given, {}), *ids.shape)
            return loss_of(logits, ids.to(logits.device))


def batch_of(box: Box, rows: int, length: int) -> Tensor:
    """Draw texts of which each begins with a token of its own."""
    ids = box.draw(rows, length, seed=90)
    ids[:, 0] = torch.arange(rows) % box.ids
    return ids


def size_of(box: Box) -> tuple[int, int]:
    """Choose how many rows and tokens a batch has that a copy is trained on."""
    length = min(box.longest, 16 if box.cost < 1e-3 else 8)
    rows = next((n for n in (4, 2) if box.takes(n, length)), 1)
    return rows, length


def unused(box: Box) -> Iterator[Finding]:
    """Ask for the gradient of each parameter, and of those without it, why."""
    pupil = Pupil(box, box.pristine)
    rows, length = size_of(box)
    if length < 2:
        raise NotAsked("it takes no two tokens")
    reached: set[str] = set()
    for seed in range(3):
        ids = box.draw(rows, length, seed=91 + seed)
        box.seed()
        loss = pupil.loss(ids)
        if not loss.requires_grad:
            raise NotAsked("its logits have no gradient: it computes without one")
        pupil.module.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        for name, x in pupil.weights.items():
            if x.grad is not None and not x.grad.isfinite().all() and loss.isfinite():
                yield Finding("nan", "gradients", {"parameter": name})
                return
            if x.grad is not None and x.grad.any():
                reached.add(name)
        if len(reached) == len(pupil.weights):
            return
    left = [n for n in pupil.weights if n not in reached and "expert" not in n]
    cut = [name for name in left if matters(box, name, rows, length)]
    for cause, names in (("cut", cut), ("idle", [n for n in left if n not in cut])):
        if cause == "idle":  # beside one that is cut off, a bias of keys does nothing
            beside = {name.rpartition(".")[0] for name in cut}
            names = [n for n in names if n.rpartition(".")[0] not in beside]
            names = [n for n in names if pupil.weights[n].grad is None]
        if names:
            yield Finding("unused", cause, {"parameter": names[0], "more": more(names)})


def more(names: Sequence[str]) -> str:
    """Say how many others there are."""
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


def matters(box: Box, name: str, rows: int, length: int) -> bool:
    """Say whether the logits depend on a parameter."""
    fresh, changed = box.fresh(), box.fresh()
    module = module_in(changed)
    if changed is None or module is None:
        return False
    x = module.get_parameter(name)
    draw = torch.Generator().manual_seed(1)
    size = float(x.detach().double().square().mean().sqrt()) or 1.0
    noise = torch.randn(x.shape, generator=draw).to(x.device, x.dtype)
    x.data = x.data + noise * size
    ids = box.draw(rows, length, seed=95)
    return bool(gap(box(ids, model=fresh), box(ids, model=changed))[0].max() > box.far)


def learns(box: Box, given: Model, seconds: float) -> Iterator[Finding]:
    """Train a copy on one batch, at several rates, until it knows it by heart."""
    rows, length = size_of(box)
    if length < 2 or box.ids < 3:
        raise NotAsked("there is nothing to learn in so few tokens")
    begin, least, first, steps = time.perf_counter(), math.inf, 0.0, 0
    ids = batch_of(box, rows, length)
    big = box.cost > 1e-3
    for rate in (3e-4, 1e-3) if big else RATES:
        pupil = Pupil(box, given)
        optimizer = torch.optim.Adam(pupil.weights.values(), lr=rate)
        for step in range(STEPS):
            box.seed(step)
            loss = pupil.loss(ids)
            if not loss.requires_grad:
                raise NotAsked("its logits have no gradient: it computes without one")
            value = float(loss.detach())
            first = first or value
            least, steps = min(least, value), max(steps, step + 1)
            if value < 0.35 * min(first, math.log(box.ids)):
                return
            if not math.isfinite(value):
                break
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if time.perf_counter() - begin > seconds:
                raise NotAsked(
                    f"in {seconds:.0f} s it fell from {first:.2f} to {least:.2f}"
                )
    numbers = {"rows": rows, "length": length, "steps": steps, "loss": least}
    yield Finding("learns", "not", {**numbers, "first": first})
