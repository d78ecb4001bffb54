"""What rows that are behind the best other still pay for, and what was tried."""

import textwrap
from collections.abc import Sequence

from engine.speed.bars import NEAR
from engine.speed.rows import Row

TRIED = {
    "attention": """
        Both call the same kernel. tformer checks its arguments before, and afterwards
        looks for rows of zeros, since the kernel gives zeros where the formula gives
        NaN. Short sequences feel it most. Tried: one number of each row is looked at
        and not all (kept); a mask that keeps the NaN (slower). Many queries with a
        mask go to the kernel some at a time, so that memory grows with T only. In bf16
        the kernel's backward pass is slow for short sequences. Attention as in
        tutorials is faster there, and rounds each score to 8 bits, which the kernel and
        tformer do not; the formula in fp32 was tried, and is as slow.""",
    "modules": """
        In inference `nn.TransformerEncoder` runs a whole layer in one call of C++, with
        one product for queries, keys and values. tformer's layers are Python to be
        read, with three. Tried: padding left out, ReLU in place, fewer checks (kept);
        one product for the three (few bytes saved, and the paper's names lost: not
        kept).""",
    "training": """
        All run the same products forward and backward, and these are nearly all of the
        time; in bf16 with short sequences the kernel of attention counts too, see
        above. Tried: the loss in slices, with the gradient written over its logits
        (kept).""",
    "decoding": """
        A token reads every weight once, and makes many small calls. The others write
        into a cache of full length, or have one product for queries, keys and values.
        Tried: calls of a token were counted, and most of them left out; rows are asked
        for an end only where there is one (kept); weights turned in memory (the rows
        that say so: a line for you to add). To sample, GPT in nanoGPT's style draws
        among the k likeliest; tformer draws from the vocabulary, since tokens as likely
        as the k-th stay too.""",
    "numpy": """
        NumPy cannot join steps: each passes over the scores of a block once more.
        Tried: sizes of blocks, steps in place, no largest score where nothing can
        overflow, products in tiles, for which OpenBLAS has a faster way (kept).""",
    "import": """
        Tried: names are imported when they are used; libraries that draw, cut tokens
        or write dates only by those who need them (kept).""",
}


def tried(family: str, rows: Sequence[Row]) -> str:
    """Say what was tried, if a row is behind by more than a run can decide."""
    behind = sum(row.missed > NEAR for row in rows)
    if not behind:
        return ""
    words = f"Behind by more than {NEAR}: {behind} of {len(rows)}. " + TRIED[family]
    return "\n" + textwrap.fill(" ".join(words.split()), 88) + "\n"
