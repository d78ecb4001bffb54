"""The command line, called as a shell would, but in this process."""

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tformer.cli import main

# So small that a run takes half a second.
SMALL = {
    "--d-model": 10,
    "--num-heads": 2,
    "--num-layers": 1,
    "--d-ff": 14,
    "--batch-size": 11,
    "--steps": 21,
    "--warmup-steps": 5,
    "--evaluate-every": 7,
    "--evaluate-examples": 9,
    "--test-examples": 13,
    "--save-every": 6,
}
# Every part of a language model that an option names.
TODAY = {
    "positions": "rotary",
    "norm": "rms",
    "placement": "sandwich",
    "feed_forward": "swiglu",
    "kv_heads": 1,
    "window": 6,
    "global_every": 2,
    "softcap": 20.0,
    "logit_cap": 30.0,
}


@pytest.fixture(scope="session")
def today():
    return TODAY


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def small():
    """Options of a small run, as words; others may be given."""

    def words(**changes):
        options = SMALL | {f"--{k.replace('_', '-')}": v for k, v in changes.items()}
        return [str(x) for pair in options.items() for x in pair if x is not None]

    return words


def call(patch: pytest.MonkeyPatch, *words) -> int:
    patch.setattr(sys, "argv", ["tformer", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.fixture
def tformer(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")  # so that no message is wrapped
    monkeypatch.setenv("NO_COLOR", "1")

    def said(*words) -> Said:
        code = call(monkeypatch, *words)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Said(code, out, err)

    return said


@pytest.fixture(scope="session")
def runs(tmp_path_factory, small) -> dict[str, Path]:
    """Finished runs of each kind, with the files that they read."""
    folder = tmp_path_factory.mktemp("runs")
    text = folder / "book.txt"
    text.write_text("To be, or not to be: that is the question.\n" * 40)
    sources, targets = folder / "text.en", folder / "text.de"
    words = ["one two", "three", "four five six", "seven", "eight nine", "ten"]
    lines = [f"{a} {b}" for a in words for b in words] * 3
    sources.write_text("".join(f"{line}\n" for line in lines))
    targets.write_text("".join(f"{line[::-1]}\n" for line in lines))
    commands = {
        "reverse": ["reverse", *small(examples=130)],
        "gpt": ["text", text, *small(max_len=17)],
        "bert": ["text", text, *small(max_len=17, model="bert")],
        "today": ["text", text, *small(max_len=17, d_model=8, **TODAY)],
        "bpe": ["text", text, *small(max_len=5, vocabulary="bpe", vocab_size=270)],
        "pairs": ["pairs", sources, targets, *small(max_len=41)],
    }
    for name, words in commands.items():
        out = ["--out", folder / name, "--quiet", "--threads", 1]
        with pytest.MonkeyPatch.context() as patch:
            assert call(patch, "train", *words, *out) == 0, name
    paths = {name: folder / name for name in commands}
    return paths | {"text": text, "sources": sources, "targets": targets}
