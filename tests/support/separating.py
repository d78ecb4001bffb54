"""Which cases tell every mistake from what is right, and from each other.

    python tests/support/separating.py [NAME ...]

prints for each exercise what is not told apart by the cases that a reader's function
is asked, and the fewest cases that would do.
"""

import sys
from collections.abc import Iterable
from itertools import combinations

from tformer.check import SPECS, Case, Mistake, Spec
from tformer.check.diagnosis import wrong_of
from tformer.check.evidence import right_of
from tformer.check.exercises import EXERCISES
from tformer.check.outcomes import difference

Pair = tuple[str, str]  # two mistakes, or one and "right"


def asked(spec: Spec) -> list[Case]:
    """List the cases of an exercise, the smallest first."""
    exercise = EXERCISES.get(spec.name)
    cases = exercise.cases if exercise else spec.cases
    return sorted(cases, key=lambda case: case.size)


def told_apart(spec: Spec, case: Case) -> set[Pair]:
    """List what gives different results in a case."""
    known = {"right": right_of(spec, case)}
    for mistake in of_numbers(spec):
        known[mistake.id] = wrong_of(spec, case, mistake)
    return {
        (a, b)
        for a, b in combinations(known, 2)
        if difference(known[a], known[b], 1e-4)
    }


def of_numbers(spec: Spec) -> list[Mistake]:
    """List the mistakes that change numbers."""
    return [mistake for mistake in spec.mistakes if mistake.shows == "value"]


def not_told_apart(spec: Spec, cases: Iterable[Case]) -> set[Pair]:
    """List what is the same in all cases."""
    names = ["right", *(mistake.id for mistake in of_numbers(spec))]
    return {*combinations(names, 2)}.difference(*(told_apart(spec, x) for x in cases))


def fewest(spec: Spec, cases: list[Case]) -> list[Case]:
    """Choose, one after another, the case that tells most apart of what is left."""
    apart = {case: told_apart(spec, case) for case in cases}
    left, chosen = set().union(*apart.values()), []
    while left:
        best = max(cases, key=lambda case: (len(apart[case] & left), -case.size))
        chosen.append(best)
        left -= apart[best]
    return chosen


def main(names: list[str]) -> None:
    """Print what is not told apart."""
    for name in names or SPECS:
        spec = SPECS[name]
        cases = asked(spec)
        print(f"{name}: {len(spec.mistakes)} mistakes, {len(cases)} cases")
        same = not_told_apart(spec, cases)
        unseen = {b for a, b in same if a == "right"}
        for pair in sorted(same):
            if not unseen.intersection(pair):
                print("  not told apart:", *pair)
        if unseen:
            print("  seen with options only:", *sorted(unseen))
        print("  enough:", ", ".join(case.name for case in fewest(spec, cases)))


if __name__ == "__main__":
    main(sys.argv[1:])
