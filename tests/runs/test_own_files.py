"""The data of a run on somebody's own files: nothing is learned from the test."""

import math
from pathlib import Path

import pytest

from small_run import (
    change,
    go_on,
    small_pairs_settings,
    small_text_settings,
    stop_after,
)
from tformer.data.text_files import PIECE_BYTES
from tformer.runs.data import run_data
from tformer.runs.metrics import text_bits_per_byte
from tformer.runs.settings import RunSettings
from tformer.training.evaluation import MeanLoss

SMALL = {"vocabulary": "bpe", "vocab_size": 300, "max_len": 16}


@pytest.mark.parametrize("times", [1, 2 + PIECE_BYTES // 3400])
def test_byte_pairs_are_not_learned_from_the_end_of_a_text(tmp_path, times):
    """Its words come often enough to be pieces, if they were seen."""
    path = tmp_path / "book.txt"
    lines = ["the lowest of the low said it\n"] * 100, ["zyxwv zyxwv zyxwv\n"] * 15
    path.write_text("".join(line * times for part in lines for line in part))
    settings = RunSettings.of("text", files=(str(path),), **SMALL)
    data = run_data(settings, tmp_path)
    pieces = {data.vocabulary.decode([i]) for i in range(len(data.vocabulary))}
    assert any("lowest" in piece for piece in pieces)
    assert not any("zy" in piece for piece in pieces)


def test_line_ends_of_windows_teach_no_other_pieces(tmp_path):
    lines = "".join(f"{i % 7}\n" for i in range(900)) + "zyxwv\n" * 30
    learned = []
    for name, end in (("unix.txt", "\n"), ("windows.txt", "\r\n")):
        path = tmp_path / name
        path.write_text(lines, newline=end)
        (tmp_path / f"run-{name}").mkdir()
        settings = RunSettings.of("text", files=(str(path),), **SMALL)
        vocabulary = run_data(settings, tmp_path / f"run-{name}").vocabulary
        learned.append([vocabulary.decode([i]) for i in range(len(vocabulary))])
    assert learned[0] == learned[1]


def test_bytes_are_those_of_the_text_where_windows_cut_characters(tmp_path):
    text = "天地玄黃宇宙洪荒日月盈昃辰宿列張" * 40
    path = tmp_path / "book.txt"
    path.write_text("a quick brown fox\n" * 5 + text, encoding="utf-8")
    settings = RunSettings.of("text", files=(str(path),), **SMALL)
    data = run_data(settings, tmp_path)
    rows = [row for batch in data.test for row in batch.targets.tolist()]
    joined = [token for row in rows for token in row]
    # Side by side they are one stretch of the text; a half at each end may be cut.
    whole = data.vocabulary.decode(joined).strip("\ufffd").encode()
    loss = MeanLoss(2.0, len(joined))
    bits = text_bits_per_byte(data.vocabulary, data.test, loss)
    size = 2.0 * len(joined) / math.log(2) / bits
    assert -0.5 <= size - len(whole) < 6
    assert any("\ufffd" in data.vocabulary.decode(row) for row in rows)


def six_files(tmp_path, **changed):
    """Files of three splits, each of words that the others have not."""
    lines = {"train": ["ab", "ba", "aab"], "validation": ["cc"], "test": ["dd", "ddd"]}
    files = []
    for split, texts in {**lines, **changed}.items():
        for side in ("de", "en"):
            file = tmp_path / f"{split}.{side}"
            file.write_text("".join(f"{text}\n" for text in texts))
            files.append(str(file))
    return tuple(files)


def test_six_files_are_the_three_splits(tmp_path):
    """Nothing is dealt out by a hash: what is in a file of a split is of that split."""
    settings = RunSettings.of("pairs", files=six_files(tmp_path), max_len=9)
    data = run_data(settings, tmp_path)
    assert [pair.source for pair in data.validation_pairs] == ["cc"]
    assert [pair.source for pair in data.test_pairs] == ["dd", "ddd"]
    rows = next(data.batches(0)).inputs[0].tolist()
    trained = {data.vocabulary.decode(row) for row in rows}
    assert trained == {"ab", "ba", "aab"}


def test_byte_pairs_are_of_the_training_alone(tmp_path):
    files = six_files(tmp_path, train=["xy xy xy"] * 9, test=["qz qz qz"] * 9)
    settings = RunSettings.of(
        "pairs", files=files, vocabulary="bpe", vocab_size=262, max_len=9
    )
    vocabulary = run_data(settings, tmp_path).vocabulary
    assert len(vocabulary.encode("xy")) < len(vocabulary.encode("qz"))


def test_a_fault_in_any_of_six_files_is_named(tmp_path):
    files = six_files(tmp_path, test=["dd", "d" * 50])
    settings = RunSettings.of("pairs", files=files, max_len=9)
    with pytest.raises(ValueError, match=r"test\.de, line 2 has 51 tokens"):
        run_data(settings, tmp_path)


def test_a_full_disk_leaves_no_half_of_the_ids(tmp_path):
    resource = pytest.importorskip("resource")  # which Windows lacks
    path = tmp_path / "book.txt"
    path.write_text("the lowest of the low said it\n" * 900)
    settings = RunSettings.of("text", files=(str(path),), max_len=16)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            run_data(settings, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.rglob("*.new"))
    run_data(settings, tmp_path)


def test_a_text_is_no_longer_needed_and_its_name_may_change(tmp_path):
    path = tmp_path / "run"
    stop_after(path, small_text_settings(tmp_path), 5)
    (tmp_path / "book.txt").unlink()
    change(path, files=["other.txt"])
    assert go_on(path)["steps"] == 12


def test_pairs_may_lie_elsewhere(tmp_path):
    path, settings = tmp_path / "run", small_pairs_settings(tmp_path)
    stop_after(path, settings, 5)
    moved = [f"{file}.moved" for file in settings.files]
    for file, new in zip(settings.files, moved, strict=True):
        Path(file).rename(new)
    with pytest.raises(OSError, match="No such file"):
        go_on(path)
    change(path, files=moved)
    assert go_on(path)["steps"] == 9
