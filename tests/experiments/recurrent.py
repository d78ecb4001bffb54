"""Train a GRU and an encoder layer to remember one digit; keep what is right.

    PYTHONPATH=docs python tests/experiments/recurrent.py

The fraction of right answers, by learning rate and number of digits. The code is that
of the chapter on recurrent networks, which shows what is kept in `recurrent_kept.py`.
Four minutes on one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep

REMEMBERS = {
    "GRU": ("gru_of_32", (0.01, 0.03, 0.06, 0.12)),
    "encoder-layer": ("encoder_layer_of_32", (0.003, 0.01, 0.03)),
}


def remembered() -> Iterator[tuple[str, object, str, float]]:
    """Yield how often the first of so many digits is told, seed after seed."""
    c = functions_of("recurrent.md")
    for seed in range(5):
        for name, (make, rates) in REMEMBERS.items():
            for length in (32, 128):
                for rate in rates:
                    right = c["remembers_first"](c[make], length, rate, seed)
                    yield name, rate, f"of-{length}", right


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, remembered())
