"""Look for an attention sink in the package's GPT of real text, and keep the numbers.

    PYTHONPATH=docs python tests/experiments/sinks.py tinyshakespeare.txt

The text is not in the repository: `load_pretrained("shakespeare").manifest` has its
hash. On five parts of its last tenth: the share of attention on the first token, by
layer, and the loss with all keys, with a window, and with a window that keeps the first
token in the place of its oldest. The code is that of the chapter on attention sinks,
which shows what is kept in `sinks_kept.py`. One minute on one core.
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from chapters import as_on_the_page, functions_of, keep
from tformer import causal_mask, load_pretrained

LENGTH, COUNT = 128, 16
WINDOWS = (4, 8, 16, 32, 64)


def measured(file: Path) -> Iterator[tuple[str, object, str, float]]:
    """Yield shares and losses, part after part."""
    c = functions_of("attention-sinks.md")
    model, pieces, manifest = load_pretrained("shakespeare")
    model = model.double().eval()
    if hashlib.sha256(file.read_bytes()).hexdigest() != manifest["files"][0]["sha256"]:
        sys.exit(f"error: {file} is not the text that the model learned")
    ids = torch.tensor(pieces.encode(file.read_text("utf-8")))
    test = ids[len(ids) * 9 // 10 :]
    rows = test[: len(test) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)
    late = range(LENGTH // 2, LENGTH)
    for part in range(5):
        texts = rows[part::5][:COUNT]
        shares = c["first_shares"](model, texts[:, :-1])
        for layer, share in enumerate(shares, 1):
            yield "layer", layer, "share", share
        yield "even", 0, "share", sum(1 / (t + 1) for t in late) / len(late)
        yield "all", LENGTH, "loss", c["loss_under"](model, texts, causal_mask(LENGTH))
        for window in WINDOWS:
            newest = causal_mask(LENGTH, window=window)
            first = c["keep_first"](LENGTH, window - 1, 1)
            yield "newest", window, "loss", c["loss_under"](model, texts, newest)
            yield "first_kept", window, "loss", c["loss_under"](model, texts, first)


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured(Path(sys.argv[1])))
