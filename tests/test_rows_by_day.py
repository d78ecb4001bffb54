"""Rows of a test by day and at night: tests/support/rows_by_day.py."""

import pytest

ROWS = """
    import pytest

    @pytest.mark.by_day({count})
    @pytest.mark.parametrize("row", range({rows}))
    def test_rows(row):
        pass

    @pytest.mark.parametrize("row", range(2))
    def test_all(row):
        pass
"""


@pytest.fixture
def asked(pytester):
    def collect(count, rows, *options):
        pytester.makeconftest('pytest_plugins = ["rows_by_day"]')
        pytester.makeini("[pytest]\nmarkers =\n    nightly: late\n    by_day: some")
        pytester.makepyfile(test_it=ROWS.format(count=count, rows=rows))
        return pytester.runpytest("--collect-only", "-q", "-p", "no:tformer", *options)

    return collect


def rows_of(result):
    return [int(x[:-1].split("[")[1]) for x in result.outlines if "test_rows[" in x]


@pytest.mark.parametrize(
    ("count", "rows", "kept"),
    [(1, 5, [0]), (2, 5, [0, 2]), (3, 7, [0, 2, 4]), (5, 5, range(5)), (9, 2, [0, 1])],
)
def test_so_many_rows_run_by_day(asked, count, rows, kept):
    assert rows_of(asked(count, rows, "-m", "not nightly")) == [*kept]
    assert len(rows_of(asked(count, rows, "-m", "nightly"))) == rows - len(kept)


def test_a_row_that_is_asked_for_alone_runs(asked):
    result = asked(1, 5, "test_it.py::test_rows[3]", "-m", "not nightly")
    assert rows_of(result) == [3]


def test_none_by_day_is_refused(asked):
    result = asked(0, 3)
    result.stderr.fnmatch_lines(["*test_rows[[]0[]]: by_day(0) is below 1"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
