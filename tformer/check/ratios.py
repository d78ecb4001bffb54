"""Mistakes that are seen by comparing results with inputs, and by ratios."""

from collections.abc import Iterator, Mapping

import numpy as np

from tformer.check.calling import Array, Case
from tformer.check.general import named
from tformer.check.outcomes import Outcome, difference
from tformer.check.spec import Mistake, Spec

Given = Mapping[Case, tuple[Outcome, Outcome]]  # what came, and what must come


def other_results(spec: Spec, given: Given, rtol: float) -> Iterator[Mistake]:
    """Name what is seen by comparing with the inputs, and by ratios."""
    if all(_added(x, y) for x, y in given.values()):
        yield named(spec, "added_mask")
    tuples = all(str(a) == "tuple" for x, _ in given.values() for a in x.arrays)
    if tuples or all(_first_of(x, y, rtol) for x, y in given.values()):
        yield named(spec, "more_results")
    if all(_last_right(x, y, rtol) for x, y in given.values()) and any(
        difference(x, y, rtol) for x, y in given.values()
    ):
        yield named(spec, "more_rows")
    if all(
        not difference(Outcome(x.arrays[::-1]), y, rtol) and len(x.arrays) > 1
        for x, y in given.values()
    ):
        yield named(spec, "other_order")
    inputs = {case: spec.task().inputs(case) for case in given}
    first = next(iter(inputs.values()))
    for name in first:
        at = {case: each.get(name) for case, each in inputs.items()}
        if not all(isinstance(x, Array) for x in at.values()):
            continue
        arrays = {case: np.asarray(x) for case, x in at.items()}
        same = (
            difference(x, Outcome((spec.normal(arrays[case]),)), rtol)
            for case, (x, _) in given.items()
        )
        if not any(same):
            yield named(spec, "returns_input", name=name)
        elif all(_sum(x, y, arrays[case], rtol) for case, (x, y) in given.items()):
            yield named(spec, "input_added", name=name)
    yield from _scales(spec, given, rtol)
    yield from _instead_of_infinity(spec, given, rtol)
    if _rounded(given):
        yield named(spec, "rounded")


def _rounded(given: Given) -> bool:
    """Whether results are near what must come, now above and now below."""
    errors: list[Array] = []
    for x, y in given.values():
        if y.error or any(b.dtype.kind != "f" for b in y.arrays):
            return False
        if difference(x, y, 1e-2):
            return False
        pairs = zip(x.arrays, y.arrays, strict=True)
        errors += [a[np.isfinite(b)] - b[np.isfinite(b)] for a, b in pairs]
    error = np.concatenate(errors)
    above, below = (error > 0).sum(), (error < 0).sum()
    return bool(min(above, below) > 4 and 3 * min(above, below) > max(above, below))


def _added(x: Outcome, y: Outcome) -> bool:
    pairs = [*zip(x.arrays, y.arrays, strict=False)]
    return bool(pairs) and all(
        b.dtype.kind == "b"
        and a.dtype.kind == "f"
        and a.shape == b.shape
        and np.array_equal(a == 0, b)
        and bool((a[~b] < -100).all())
        for a, b in pairs
    )


def _instead_of_infinity(spec: Spec, given: Given, rtol: float) -> Iterator[Mistake]:
    """Find the one number that stands wherever -inf must; all else is right."""
    found: set[str] = set()
    for x, y in given.values():
        if len(x.arrays) != 1 or x.arrays[0].shape != y.arrays[0].shape:
            return
        a, b = x.arrays[0], y.arrays[0]
        if a.dtype.kind != "f" or b.dtype.kind != "f":
            return
        hidden = np.isneginf(b)
        found |= {"nan" if np.isnan(c) else f"{c:g}" for c in a[hidden].tolist()}
        if difference(Outcome((np.where(hidden, b, a),)), y, rtol):
            return
    if len(found) == 1 and found != {"-inf"}:
        yield named(spec, "for_infinity", c=found.pop())


def _first_of(x: Outcome, y: Outcome, rtol: float) -> bool:
    more = len(x.arrays) > len(y.arrays) and not y.error
    return more and not difference(Outcome(x.arrays[: len(y.arrays)]), y, rtol)


def _last_right(x: Outcome, y: Outcome, rtol: float) -> bool:
    if len(x.arrays) != len(y.arrays) or any(b.ndim < 2 for b in y.arrays):
        return False
    pairs = zip(x.arrays, y.arrays, strict=True)
    last = tuple(a[..., -b.shape[-2] :, :] if a.ndim == b.ndim else a for a, b in pairs)
    return not difference(Outcome(last), y, rtol)


def _sum(x: Outcome, y: Outcome, added: Array, rtol: float) -> bool:
    if x.error or y.error or len(x.arrays) != 1:
        return False
    right = y.arrays[0]
    if right.shape != added.shape or right.dtype.kind != "f":
        return False
    return not difference(x, Outcome((right + added,)), rtol)


def _scales(spec: Spec, given: Given, rtol: float) -> Iterator[Mistake]:
    """Find the constant, or the size of an input, that all results are times."""
    ratios: dict[Case, float] = {}
    for case, (x, y) in given.items():
        pairs = [*zip(x.arrays, y.arrays, strict=False)]
        if not pairs or any(
            a.shape != b.shape or b.dtype.kind != "f" or a.dtype.kind != "f"
            for a, b in pairs
        ):
            return
        a, b = (np.concatenate([z[i].ravel() for z in pairs]) for i in (0, 1))
        finite = np.isfinite(b)
        if not (np.isfinite(a) == finite).all():
            return
        a, b = a[finite], b[finite]
        if not b.any():
            continue
        c = float(a @ b / (b @ b))
        if not np.abs(a - c * b).max() <= 10 * rtol * np.abs(a).max(initial=1e-300):
            return
        ratios[case] = c
    if len(ratios) < 2:
        return
    values = [*ratios.values()]
    if np.allclose(values, 1, rtol=1e-4):
        return
    if np.allclose(values, values[0], rtol=1e-4):
        yield named(spec, "scaled", c=f"{values[0]:.4g}")
        return
    for name, axis, sizes in _sizes(spec, [*ratios]):
        for told, power in (("n", 1), ("1/n", -1), ("√n", 0.5), ("1/√n", -0.5)):
            powers = [float(n) ** power for n in sizes]
            if np.allclose(values, powers, rtol=1e-4):
                yield named(spec, "scaled_by", c=told, name=name, axis=axis)
                return


def _sizes(spec: Spec, cases: list[Case]) -> Iterator[tuple[str, int, list[int]]]:
    """List how long each axis of each input is, counted from the last."""
    inputs = [spec.task().inputs(case) for case in cases]
    for name in inputs[0]:
        arrays = [np.asarray(each.get(name)) for each in inputs]
        for axis in range(-1, -1 - min(x.ndim for x in arrays), -1):
            yield name, axis, [x.shape[axis] for x in arrays]
