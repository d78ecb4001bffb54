"""Through what a later token changes an earlier logit: experiments, no guesses.

B batch · T length · D width
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from tformer.check.black_box.box import Box
from tformer.check.black_box.copying import module_in
from tformer.check.black_box.forms import gap, tensors_of
from tformer.check.black_box.future import Leak
from tformer.check.black_box.place import Place, heads_of, like_a_norm
from tformer.check.black_box.report import Finding, Number

Seen = list[tuple[str, nn.Module, bool, list[Tensor]]]


def run_of(box: Box, ids: Tensor) -> Seen:
    """Keep what goes into each module and what comes out, in the order of the run."""
    model = box.subject()
    seen: Seen = []
    if (watched := module_in(model)) is None:
        return seen
    hooks = []

    def keep(name: str, module: nn.Module, enters: bool, what: object) -> None:
        seen.append((name, module, enters, [x.detach() for x in tensors_of(what)]))

    def before(name: str) -> Callable[[nn.Module, tuple[object, ...]], None]:
        return lambda module, args: keep(name, module, True, args)

    def after(name: str) -> Callable[[nn.Module, object, object], None]:
        return lambda module, _, out: keep(name, module, False, out)

    for name, module in watched.named_modules():
        if name:
            hooks.append(module.register_forward_pre_hook(before(name)))
            hooks.append(module.register_forward_hook(after(name)))
    try:
        box(ids[None], model=model)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def changed(box: Box, x: Tensor, y: Tensor, T: int) -> tuple[Tensor, int]:
    """Say at which positions two tensors differ: (T,) of booleans, and their axis."""
    sizes = [axis for axis, size in enumerate(x.shape) if size == T]
    if not sizes or x.shape != y.shape or not x.is_floating_point():
        return torch.zeros(T, dtype=torch.bool), 0
    x, y = x.double().cpu(), y.double().cpu()
    usual = x[x.isfinite()].square().mean().sqrt() + 1e-30
    apart = torch.where(x == y, 0.0, (x - y).abs()).nan_to_num(torch.inf, torch.inf)
    far = apart > box.near * usual
    return far.movedim(sizes[0], 0).flatten(1).any(1), sizes[0]


def first_place(box: Box, leak: Leak) -> Place | None:
    """Find the first tensor of a module in which the leak shows."""
    T = len(leak.before)
    pairs = zip(run_of(box, leak.before), run_of(box, leak.after), strict=False)
    for index, ((name, module, enters, xs), (*_, ys)) in enumerate(pairs):
        for x, y in zip(xs, ys, strict=False):
            late, axis = changed(box, x, y, T)
            if sum(size == T for size in x.shape) > 1 and enters:
                continue  # scores (T, S), perhaps before their mask
            if late[: leak.j].any():
                return Place(index, name, module, enters, x, y, axis)
    return None


def reach_of(pairs: Iterable[tuple[int, int]]) -> int:
    """Say how far ahead the farthest token is that is seen."""
    return max((j - i for i, j in pairs), default=0)


def edges(box: Box, leak: Leak, place: Place | None) -> set[tuple[int, int]]:
    """List (i, j): token j changes what is at position i, all i but j."""
    T = len(leak.before)
    found = set()
    base = None if place is None else run_of(box, leak.before)
    plain = box(leak.before[None]) if place is None else None
    others = box.other(leak.before[None])[0]
    for j in range(T):
        ids = leak.before.clone()
        ids[j] = leak.after[j] if leak.after[j] != ids[j] else others[j]
        if place is None or base is None:
            reached = gap(plain, box(ids[None]))[0][0] > box.near  # type: ignore[arg-type]
        else:
            x, y = (s[place.number][3][0] for s in (base, run_of(box, ids)))
            reached, _ = changed(box, x, y, T)
        found |= {(int(i), j) for i in reached.nonzero() if int(i) != j}
    return found


def clearer(box: Box, leak: Leak) -> Leak:
    """Choose a short text, and a late token, if the leak shows there too.

    Its length is not one of the model's sizes, so that positions are known by it.
    """
    model = module_in(box.model) or nn.Module()
    sizes = {size for x in model.parameters() for size in x.shape}
    tail = box.draw(1, box.longest, seed=2)[0]
    whole = [torch.cat((x, tail[len(x) :])) for x in (leak.before, leak.after)]
    for end in range(leak.j + 8, min(leak.j + 20, box.longest) + 1):
        if end in sizes or not box.takes(1, end):
            continue
        late = torch.arange(end) >= end - 2
        texts = [(whole[0][:end], whole[1][:end], leak.j)]
        other = box.other(texts[0][0][None])[0]
        texts.insert(0, (texts[0][0], torch.where(late, other, texts[0][0]), end - 2))
        for before, after, j in texts:
            share, size = gap(box(before[None]), box(after[None]))
            if (share[0, :j] > box.near).any():
                i = int(share[0, :j].argmax())
                return Leak(before, after, i, j, float(size[0, i]))
    return leak


def explain(box: Box, leak: Leak) -> Finding:
    """Say through what it comes, as far as experiments tell.

    They may fail in a model that can be called as it was, and in no other way.
    """
    try:
        return _explained(box, clearer(box, leak))
    except Exception:  # noqa: BLE001 - whatever the model raises
        numbers = {"i": leak.i, "j": leak.j, "change": leak.change}
        return Finding("future", "seen", numbers)


def _explained(box: Box, leak: Leak) -> Finding:
    numbers: dict[str, Number] = {"i": leak.i, "j": leak.j, "change": leak.change}
    place = first_place(box, leak)
    pairs = edges(box, leak, place)
    ahead = {(i, j) for i, j in pairs if i < j}
    numbers["reach"] = reach_of(ahead)
    also, kind = "", ""
    if place is not None:
        kind = type(place.module).__name__.lower()
        owner = place.name.rpartition(".")[0] if place.enters else place.name
        numbers["module"] = owner or "the model itself"
        shows = "goes into" if place.enters else "comes out of"
        where = f"in {owner}" if owner else "in the model's own forward"
        also = f"It first shows {where}, in what {shows} {place.name}."
    begin = min((i for i, _ in ahead), default=leak.i)
    if begin > 2:
        also += f" No position before {begin} is reached."
    inside = place is not None and not place.enters
    if inside and "batchnorm" in kind:
        cause = "statistics"
    elif (inside and "norm" in kind) or like_a_norm(box, place, leak):
        cause = "norm"
    elif inside and "conv" in kind:
        cause = "convolution"
    elif inside and "embedding" in kind:
        cause = "shifted"
    elif place is not None and (heads := heads_of(box, place, leak)):
        cause, numbers["columns"] = "heads", heads
    elif not ahead:
        only = [int(leak.after[leak.j]), int(leak.before[leak.j])]
        cause, also = "seen", f"{also} It hangs on the ids: {only[0]} for {only[1]}."
    else:
        owner = str(numbers.get("module", ""))
        cause = pattern(box, leak, pairs, f"{owner} {kind}")
    return Finding("future", cause, numbers, also.strip())


def pattern(box: Box, leak: Leak, pairs: set[tuple[int, int]], where: str) -> str:
    """Say what the pairs (i, j) look like of which token j reaches position i."""
    T = len(leak.before)
    logits = edges(box, leak, None)
    ahead = {(i, j) for i, j in pairs if i < j}
    reach, every = reach_of(ahead), {(i, j) for j in range(T) for i in range(j)}
    if not any(j < i for i, j in logits) and len(logits) > 2:
        return "inverted"
    if reach == 1 and not alone(box, leak):
        return "shifted"
    if reach < T // 2 and len(ahead) > 1:
        size = reach + 1
        if ahead == {(i, j) for i, j in every if i // size == j // size}:
            return "blocks"
        if ahead == {(i, j) for i, j in every if j - i <= reach}:
            return "near" if "att" in where.lower() else "ahead"
    return "missing" if len(ahead) > 0.8 * len(every) else "seen"


def alone(box: Box, leak: Leak) -> bool:
    """Say whether the first token changes the first logits."""
    other = leak.before.clone()
    other[0] = box.other(leak.before[None])[0, 0]
    share = gap(box(leak.before[None]), box(other[None]))[0]
    return bool(share[0, 0] > box.near)
