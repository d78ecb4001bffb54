"""Round the GPT of real text in four-bit formats, by GPTQ and by AWQ; keep the costs.

    PYTHONPATH=docs python tests/experiments/calibrated.py tinyshakespeare.txt

The text is not in the repository: `load_pretrained("shakespeare").manifest` has its
hash. It is five times, with other pieces of the training text for GPTQ and AWQ, and
another part of the text's last tenth to measure: what rounding adds to the loss, in
thousandths of a bit per character. The code is that of the chapter on quantisation,
which shows what is kept in `calibrated_kept.py`. Five minutes on one core.
"""

import hashlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from chapters import functions_of, keep
from tformer import load_pretrained

SETTINGS = {"4/row": (4, None), "4/32": (4, 32), "3/32": (3, 32)}
METHODS = ("nearest", "GPTQ", "GPTQ_act_order", "AWQ")
LENGTH = 128


def measured(file: Path) -> Iterator[tuple[str, object, str, float]]:
    """Yield the loss, and what each format and method adds, part after part."""
    c = functions_of("smaller-numbers.md")
    model, pieces, manifest = load_pretrained("shakespeare")
    if hashlib.sha256(file.read_bytes()).hexdigest() != manifest["files"][0]["sha256"]:
        sys.exit(f"error: {file} is not the text that the model learned")
    ids = torch.tensor(pieces.encode(file.read_text("utf-8")))
    train, test = ids.split([len(ids) * 9 // 10, len(ids) - len(ids) * 9 // 10])
    rows = test[: len(test) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)
    for seed in range(5):
        part = rows[seed::5]
        letters = sum(len(pieces.decode(row[1:].tolist())) for row in part)

        @torch.no_grad()
        def loss(model: torch.nn.Module, part: torch.Tensor, letters: int) -> float:
            logits = model(part[:, :-1]).transpose(1, 2)
            nats = cross_entropy(logits, part[:, 1:], reduction="sum").item()
            return nats / math.log(2) / letters

        exact = loss(model, part, letters)
        yield "float32", 32, "bits_per_character", exact
        for name, (bits, read) in c["FORMATS"].items():
            one = c["rounded_by"](model, read)
            added = loss(one, part, letters) - exact
            yield name, bits, "added", 1000 * added
        torch.manual_seed(seed)
        starts = torch.randint(len(train) - LENGTH, (16, 1))
        windows = train[starts + torch.arange(LENGTH)]
        for setting, (bits, group) in SETTINGS.items():
            for method in METHODS:
                taken: list[float] = []
                read = c["chosen_by"](method, bits, group, taken)
                one = c["calibrated"](model, windows, read)
                added = loss(one, part, letters) - exact
                yield method, setting, "added", 1000 * added
            ends = c["WIDER"][0], c["WIDER"][-1]
            yield "AWQ", setting, "alpha", sum(taken) / len(taken)
            outside = sum(not 0 <= x <= 1 for x in taken)
            yield "AWQ", setting, "layers_outside_0_to_1", outside
            at_ends = sum(x in ends for x in taken)
            yield "AWQ", setting, "layers_at_an_end", at_ends


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured(Path(sys.argv[1])))
