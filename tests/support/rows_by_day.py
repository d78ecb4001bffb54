"""Of a test with many rows some run by day, and all of them at night.

`@pytest.mark.by_day(4)` keeps four rows, spread evenly over all that are collected.
A row that is asked for alone runs.
"""

import itertools
from collections.abc import Iterable

import pytest


@pytest.hookimpl(tryfirst=True)  # before `-m "not nightly"` takes its choice
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as nightly the rows that do not run by day."""
    for _, rows in itertools.groupby(items, lambda item: item.nodeid.split("[")[0]):
        for late in rows_at_night(list(rows)):
            late.add_marker(pytest.mark.nightly)


def rows_at_night(rows: list[pytest.Item]) -> Iterable[pytest.Item]:
    """Return the rows of one test that are left to the night."""
    mark = rows[0].get_closest_marker("by_day")
    if mark is None:
        return []
    (count,) = mark.args
    if not isinstance(count, int) or count < 1:
        raise pytest.UsageError(f"{rows[0].nodeid}: by_day({count!r}) is below 1")
    few = min(count, len(rows))
    kept = {i * len(rows) // few for i in range(few)}
    return [row for i, row in enumerate(rows) if i not in kept]
