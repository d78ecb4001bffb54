"""Train the small models of teacher forcing with five seeds, and keep them.

    PYTHONPATH=docs python tests/experiments/teacher_forcing.py

Which letters are right after the true letters, and after the model's own; and what a
model learns whose target is not shifted. The code is the chapter's, which shows what is
kept in `teacher_forcing_kept.py`. A minute on one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield everything, seed after seed."""
    c = functions_of("teacher-forcing.md")
    for seed in range(5):
        cheat, loss = c["train_small"](40, c["WithoutShift"], seed)
        yield "no_shift", 40, "loss", loss
        yield "no_shift", 40, "words", c["whole_words"](cheat)
        model, _ = c["train_small"](200, seed=seed)
        for where, (true, own) in c["after_both"](model).items():
            yield where.replace(" ", "_"), 200, "true", true
            yield where.replace(" ", "_"), 200, "own", own
        true, wrong = c["after_one_wrong"](model)
        yield "planted", 200, "true", true
        yield "planted", 200, "wrong", wrong


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
