"""Test the scalings of the chapter on longer texts with ten seeds, and keep them.

    PYTHONPATH=docs python tests/experiments/longer_texts.py

Each seed is a model that was trained on short texts, and one more (`small`) whose
embeddings began as GPT-2's do. The code is the chapter's, which shows what is kept in
`longer_texts_kept.py`. Two minutes on one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the share that is right of each way and length, seed after seed."""
    c = functions_of("longer-texts.md")
    for seed in range(10):
        model = c["new_model"](seed)
        for way, frequencies_at in c["WAYS"].items():
            for s in (1, 2, 4, 8, 16):
                right = c["accuracy"](model, s * c["L"], *frequencies_at(s))
                yield way, s, "right", right
        model = c["new_model"](seed, small=True)
        for s in (1, 2, 4, 8, 16):
            yield "small", s, "right", c["accuracy"](model, s * c["L"], c["THETA"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
