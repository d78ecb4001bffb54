"""Round the GPT of real text by GPTQ and by AWQ; keep the costs.

    PYTHONPATH=docs python tests/experiments/calibrated.py tinyshakespeare.txt

The text is not in the repository: `load_pretrained("shakespeare").manifest` has its
hash. It is five times, with other pieces of the training text for GPTQ and AWQ, and
another part of the text's last tenth to measure: what rounding adds to the loss, in
thousandths of a bit per character. The code is that of the chapter on GPTQ and AWQ,
which shows what is kept in `calibrated_kept.py`. Five minutes on one core.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from chapters import functions_of, keep
from formats import LENGTH, RealText

SETTINGS = {"4/row": (4, None), "4/32": (4, 32), "3/32": (3, 32)}
METHODS = ("nearest", "GPTQ", "GPTQ_act_order", "AWQ")


def measured(file: Path) -> Iterator[tuple[str, object, str, float]]:
    """Yield what each method adds, part after part."""
    c, text = functions_of("gptq.md"), RealText(file)
    for seed, part in enumerate(text.parts):
        exact = text.loss(text.model, part)
        torch.manual_seed(seed)
        starts = torch.randint(len(text.train) - LENGTH, (16, 1))
        windows = text.train[starts + torch.arange(LENGTH)]
        for setting, (bits, group) in SETTINGS.items():
            for method in METHODS:
                taken: list[float] = []
                read = c["chosen_by"](method, bits, group, taken)
                one = c["calibrated"](text.model, windows, read)
                yield method, setting, "added", 1000 * (text.loss(one, part) - exact)
            ends = c["WIDER"][0], c["WIDER"][-1]
            yield "AWQ", setting, "alpha", sum(taken) / len(taken)
            outside = sum(not 0 <= x <= 1 for x in taken)
            yield "AWQ", setting, "layers_outside_0_to_1", outside
            at_ends = sum(x in ends for x in taken)
            yield "AWQ", setting, "layers_at_an_end", at_ends


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured(Path(sys.argv[1])))
