"""What each task is trained with unless a run is asked otherwise."""

from typing import Any

_DATES = {"steps": 4000, "examples": 200_000, "warmup_steps": 400}

# What differs from the defaults of RunSettings. Each ends well on a CPU in minutes.
PRESETS: dict[str, dict[str, Any]] = {
    "copy": {"steps": 1500},
    "reverse": {"steps": 3000},
    "sort": {"steps": 2000},
    "addition": {"steps": 3000, "examples": 200_000},
    "number-words": {"steps": 6000, "examples": 300_000},
    "dates": _DATES,
    "dates-new-locales": _DATES,
    "text": {
        "model": "gpt",
        "d_model": 128,
        "num_layers": 4,
        "max_len": 64,
        "batch_size": 12,
        "steps": 2000,
        "warmup_steps": 100,
        "weight_decay": 0.1,
        "beta2": 0.99,
        "bias": False,
    },
    "pairs": {"d_model": 256, "num_heads": 8, "num_layers": 3, "dropout": 0.1},
}
PARTED = "causal-lm"  # the model of a run that names parts
# How many files each of these tasks reads. Of pairs two, which are dealt out to the
# splits, or six: two to train on, two for validation, two for the test.
OWN_FILES = {"text": (1,), "pairs": (2, 6)}
