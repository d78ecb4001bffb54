"""Round the GPT of real text in four-bit formats, and keep what each costs.

    PYTHONPATH=docs python tests/experiments/formats.py tinyshakespeare.txt

The text is not in the repository: `load_pretrained("shakespeare").manifest` has its
hash. It is five times, each with another part of the text's last tenth: the loss, and
what rounding adds to it, in thousandths of a bit per character. The code is that of
the chapter on quantisation, which shows what is kept in `formats_kept.py`. A minute on
one core.
"""

import hashlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from chapters import functions_of, keep
from tformer import load_pretrained

LENGTH = 128


class RealText:
    """The model of real text, what it learned, and five parts that it did not."""

    def __init__(self, file: Path) -> None:
        self.model, self.pieces, manifest = load_pretrained("shakespeare")
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != manifest["files"][0]["sha256"]:
            sys.exit(f"error: {file} is not the text that the model learned")
        ids = torch.tensor(self.pieces.encode(file.read_text("utf-8")))
        count = len(ids) * 9 // 10
        self.train, test = ids.split([count, len(ids) - count])
        rows = test[: len(test) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)
        self.parts = [rows[seed::5] for seed in range(5)]

    @torch.no_grad()
    def loss(self, model: nn.Module, part: Tensor) -> float:
        """Return the bits per character of the text of a part."""
        letters = sum(len(self.pieces.decode(row[1:].tolist())) for row in part)
        logits = model(part[:, :-1]).transpose(1, 2)
        nats = cross_entropy(logits, part[:, 1:], reduction="sum").item()
        return nats / math.log(2) / letters


def measured(file: Path) -> Iterator[tuple[str, object, str, float]]:
    """Yield the loss, and what each format adds, part after part."""
    c, text = functions_of("smaller-numbers.md"), RealText(file)
    for part in text.parts:
        exact = text.loss(text.model, part)
        yield "float32", 32, "bits_per_character", exact
        for name, (bits, read) in c["FORMATS"].items():
            added = text.loss(c["rounded_by"](text.model, read), part) - exact
            yield name, bits, "added", 1000 * added


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured(Path(sys.argv[1])))
