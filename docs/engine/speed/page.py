"""The page of speed: its head, and for each file its sections."""

import textwrap
from collections.abc import Mapping

from engine.speed import bars, pictures, tables
from engine.speed.rows import Report
from engine.speed.tried import tried

HEAD = """---
description: "tformer's time and memory beside torch's own modules, Hugging Face's, \
x-transformers and plain forms, measured in one run."
hide: [navigation]
---

<!-- Written by `make speed`: edit docs/engine/speed, not this file. -->

# Speed

How long does tformer take beside what you would use instead, and how much memory? Every
number on this page comes out of a file that `make bench` wrote. Nobody typed it.

The *others* are torch's own modules and functions, Hugging Face's `transformers`,
`x-transformers`, GPT in nanoGPT's style, and attention as tutorials write it. They get
the same weights and the same input, and their outputs must agree with tformer's before
any time is taken. Then all run in turn, round after round, so that what disturbs the
machine disturbs them all. The *ratio* of a row is tformer's time over that of the best
other, round by round, and then the median: **below 1.00 tformer is faster**.

With one thread, times are those of the processor. *Memory* is the most that torch held
at once during one call, above what was there before it: weights and inputs are not in
it, gradients and the optimizer's state are. What torch's libraries for matrix products
keep for themselves is not counted. In bf16, models that write have their weights in
bf16, and training steps run under `torch.autocast`.
"""

FAMILIES = {
    "modules": "Multi-head attention and the encoder",
    "training": "A step of training",
    "decoding": "Writing token by token",
    "numpy": "The NumPy twin",
    "import": "Imports",
}
WORDS = {
    "modules": "8 heads, width 512; the encoder has 6 layers with an inner width of "
    "2,048. *16 × 128* is a batch of 16 sequences of 128 tokens.",
    "training": "Forward, backward and AdamW, without dropout. The encoder-decoder is "
    "the paper's base model, 6 + 6 layers of 512; the small GPT has 6 layers of 384, "
    "GPT-2 is of its smallest size, 12 layers of 768. The loss and the "
    "gradient of the embedding agree before the first step.",
    "decoding": "The same models. 32 tokens after a source of 32 or a prompt of 16, "
    "with the cache. The texts must be equal; where tokens are drawn, and in bf16, "
    "the first scores. "
    "*Weights turned* is `tformer.fast.turning.turn_weights`. A long prompt is read, "
    "and one token written.",
    "numpy": "Causal attention of 8 heads of 64. The other is torch, on the same "
    "processor, or NumPy as tutorials write it.",
    "import": "Each in a fresh Python.",
}

FOOT = """
## Run it again { #again }

```bash
make bench    # half an hour; ARGS="--short" in two minutes, --only encoder for a part
make speed    # writes this page
```

`make bench` makes an environment of its own for the others. Its file is
`docs/speed/cpu.json`, or another with `OUT=docs/speed/name.json`: each file of the
folder has its sections here. Times differ from machine to machine, ratios less. A short
form is among the tests, and fails when a ratio falls behind its bound.
"""


CHAPTER = "chapters/making-it-fast.md"
TRIED = f"""
What was tried to make it fast, and what each step gains: [Making it fast]({CHAPTER}).
"""


def render(reports: Mapping[str, Report], *, chapter: bool) -> str:
    """Write the page from what is kept; `chapter` says whether CHAPTER is there."""
    parts = [_part(stem, report) for stem, report in reports.items()]
    return "".join([HEAD, TRIED * chapter, *parts, FOOT])


def _part(stem: str, report: Report) -> str:
    """Write what one file holds."""
    m = report.about["machine"]
    threads = f"{m['threads']} thread{'s'[: m['threads'] != 1]}"
    text = [
        f"\n## {m['name'].split(',')[0]}, {threads} {{ #{stem} }}\n\n{_about(report)}",
        f"\n### What was asked, and what was measured {{ #{stem}-bars }}\n\n",
        bars.section(report),
        "\nOf a GPU there are no figures here: no kept file has any.\n",
        f"\n### Attention over T {{ #{stem}-attention }}\n\n",
        "One sequence of T tokens, 8 heads of 64. *Grouped* has 2 heads of keys and "
        "values; with *padding* five eighths of the keys are real.\n\n",
        *(
            pictures.attention(report, stem, way)
            for way in ("forward", "forward and backward")
        ),
        _box("All rows of attention", tables.family(report.compared("attention"))),
        tried("attention", report.compared("attention")),
    ]
    for family, title in FAMILIES.items():
        rows = report.compared(family)
        if rows:
            text += [
                f"\n### {title} {{ #{stem}-{family} }}\n\n{WORDS[family]}\n\n",
                pictures.ratios(rows, stem, family) if len(rows) > 2 else "",
                tables.family(rows),
                tried(family, rows),
            ]
    text += [
        # Nobody searches for one of these numbers.
        f"\n### Everyone who ran {{ #{stem}-all data-search-exclude }}\n\n",
        _box(
            "Each contender: time, memory, and how far its output is from tformer's",
            "*Largest difference*: to tformer's output, over its largest number.\n\n"
            + tables.everyone(report),
        ),
    ]
    return "".join(text)


def _about(report: Report) -> str:
    """Write on what, with what, from which commit and how it was measured."""
    a, m = report.about, report.about["machine"]
    versions = ", ".join(f"{name} {x}" for name, x in a["versions"].items() if x)
    changed = ", with changes of the package" if a["changed"] else ""
    short = "The short form only: few workloads, few rounds. " if a["short"] else ""
    return (
        f"{short}{m['name']}, {m['kernels']}, {m['cores']} cores; "
        f"Python {m['python']}, {versions}; commit `{a['commit']}`{changed}; "
        f"{a['date']}; {a['processor_minutes']:.0f} minutes of the processor.\n\n"
        f"```bash\n{a['command']}\n```\n"
    )


def _box(title: str, inside: str) -> str:
    return f'\n??? note "{title}"\n\n{textwrap.indent(inside, "    ")}\n'
