"""The page of speed is made from the files of `make bench`, and says what they say."""

import json
from pathlib import Path

import pytest

from engine import speed
from engine.speed.rows import KERNEL, megabytes, milliseconds

DOCS = Path(speed.__file__).parents[2]
REPORTS = speed.kept_reports(DOCS)


def contender(role, median, peak):
    found = {"role": role, "difference": 0.0, "peak_bytes": peak}
    return {**found, "median": median, "lowest": median}


def attention_row(T, peak):
    ours = contender("tformer", 0.011 * T, peak)
    other = contender("peer", 0.01 * T, peak)
    ratio = ours["median"] / other["median"]
    return {
        "family": "attention",
        "name": "causal, forward",
        "size": f"T = {T:,}",
        "dtype": "float32",
        "length": T,
        "ours": "tformer",
        "best": KERNEL,
        "ratio": ratio,
        "ratios": {KERNEL: ratio},
        "contenders": {"tformer": ours, KERNEL: other},
    }


MACHINE = {"name": "AMD EPYC", "kernels": "AVX2", "cores": 2, "threads": 1}


def kept(*rows):
    return {
        "machine": {**MACHINE, "python": "3.11.7"},
        "versions": {"torch": "2.13.0", "x-transformers": None},
        "commit": "0123456789",
        "command": "python tests/benchmarks",
        "date": "2026-01-02",
        "processor_minutes": 12.3,
        "rows": list(rows),
        **dict.fromkeys(("changed", "short"), False),
    }


def page_of(docs, file):
    """Write the page of one file."""
    (docs / "speed").mkdir(exist_ok=True)
    (docs / "speed" / "cpu.json").write_text(json.dumps(file))
    speed.write(docs)
    return (docs / "speed.md").read_text("utf-8")


def line_of(text, words):
    """Return the one line of a table that holds these words."""
    lines = text.replace("\u00a0", " ").split("\n")  # some spaces do not break
    (line,) = [line for line in lines if words in line]
    return line


def test_the_page_is_what_the_command_writes():
    """Who edits a number by hand fails here."""
    assert REPORTS
    assert (DOCS / speed.PAGE).read_text("utf-8") == speed.page(DOCS)


def test_what_was_tried_is_told_of_rows_that_are_behind(tmp_path):
    near, behind = attention_row(512, 10**6), attention_row(2048, 10**6)
    near["ratio"] = 1.02
    told = " ".join(page_of(tmp_path, kept(near, behind)).split())
    assert "Behind by more than 0.02: 1 of 2. Both call the same" in told
    assert "Behind" not in page_of(tmp_path, kept(near))


@pytest.mark.parametrize("name", REPORTS)
def test_no_output_differed_and_no_path_of_a_machine_is_kept(name):
    found = REPORTS[name]
    for row in found.rows:
        for who, ran in row.contenders.items():
            assert not ran.get("disagrees"), (row.title, who)
        if row.ratio is not None:
            assert (
                row.ratio == row["ratios"][row["best"]] == max(row["ratios"].values())
            )
    assert "/tmp" not in found["command"]
    assert "--out" not in found["command"]


def test_a_number_of_a_file_is_on_the_page(tmp_path):
    rows = [attention_row(512, 10**6), attention_row(2048, 4 * 10**6)]
    text = page_of(tmp_path, kept(*rows))
    line = line_of(text, "| causal, forward, T = 512, fp32 | 1.10 | 5,632 ms |")
    assert "| 5,120 ms | F.scaled_dot_product_attention | 1.0 MB |" in line
    assert line.endswith("| 0.10 |")
    assert "torch 2.13.0; commit `0123456789`; 2026-01-02; 12 minutes" in text
    assert "times = [5632, 22528]" in text


def test_numbers_have_as_many_digits_as_are_read():
    assert milliseconds(0.000_875_4) == "0.875\u00a0ms"
    assert milliseconds(0.041_84) == "41.8\u00a0ms"
    assert milliseconds(1.4302) == "1,430\u00a0ms"
    assert megabytes(1_212_928) == "1.2\u00a0MB"
    assert megabytes(285_212_672) == "285\u00a0MB"
    assert megabytes(None) == "–"
