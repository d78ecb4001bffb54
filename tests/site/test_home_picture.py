"""The picture of the home shows what the package's model does."""

import re

from includes import writing

NUMBER = re.compile(r"\d+\.\d+")


def test_lines_are_as_wide_as_the_weights() -> None:
    new, old = writing.draw(), writing.FILE.read_text("utf-8")
    assert NUMBER.sub("#", new) == NUMBER.sub("#", old), "run docs/includes/writing.py"
    pairs = zip(NUMBER.findall(new), NUMBER.findall(old), strict=True)
    assert all(abs(float(a) - float(b)) < 0.02 for a, b in pairs)


def test_the_model_writes_the_date() -> None:
    written, looks = writing.read()
    assert written == "1979-05-03"
    assert looks.shape == (len(written), len(writing.TEXT))
    best = [writing.TEXT[s] for s in looks.argmax(1)]
    # What the title says: the 7 to the 7, 05 to the m of mai, the 3 to the 3.
    assert [int(s) for s in looks.argmax(1)[[0, 2, 3]]] == [12, 14, 15]
    assert best[5:7] + best[8:] == ["m", "m", "3", "3"]
