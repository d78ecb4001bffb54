"""Draws `writing.svg`, the picture of the home: a model writes a date, and looks.

Every width of a line is an attention weight of the dates model of the package. Run
`python docs/includes/writing.py` after it was trained again; a test holds the picture
to the model.
"""

from pathlib import Path

import torch

from tformer import record_weights
from tformer.pretrained import load_pretrained

FILE = Path(__file__).with_suffix(".svg")
TEXT = "jeudi 3 mai 1979"
LAYER, HEAD = 1, 2  # counted from 0: layer 2, head 3 for readers
LEAST = 0.03  # thinner lines are left out

# In the units of the drawing, which are pixels on a phone.
WIDTH, SOURCE_Y, TARGET_Y = 352, 26, 150
SOURCE_STEP, TARGET_STEP = 21.6, 30.0


def read() -> tuple[str, torch.Tensor]:
    """Return what the model writes, and where it looks: (characters, source)."""
    trained = load_pretrained("dates-as-typed")
    model, vocabulary = trained.model, trained.vocabulary
    assert vocabulary is not None
    source = vocabulary.encode_batch([TEXT], eos=True)
    ids = [vocabulary.bos_id]
    with torch.no_grad():
        while ids[-1] != vocabulary.eos_id:
            logits = model(source, torch.tensor([ids]))
            ids.append(int(logits[0, -1].argmax()))
        with record_weights(model) as weights:
            model(source, torch.tensor([ids[:-2]]))
    looks = weights[f"decoder.blocks.{LAYER}.cross_attention"][0, HEAD]
    return vocabulary.decode(ids), looks[:, : len(TEXT)]


def draw() -> str:
    """Return the picture as SVG, to stand in a page: its style is in `home.css`."""
    written, looks = read()
    left = (WIDTH - SOURCE_STEP * (len(TEXT) - 1)) / 2
    start = (WIDTH - TARGET_STEP * (len(written) - 1)) / 2
    middle = (SOURCE_Y + TARGET_Y) / 2
    lines = [
        f'<svg class="writing" viewBox="0 0 {WIDTH} {TARGET_Y + 14}" role="img" '
        'xmlns="http://www.w3.org/2000/svg">',
        f"  <title>A model reads “{TEXT}” and writes “{written}”. While it writes "
        "a character, lines lead from it to those that it looks at: from the 7 to "
        "the 7, from 05 to the m of mai, from 03 to the 3.</title>",
    ]
    for s, character in enumerate(TEXT):
        x = left + s * SOURCE_STEP
        lines.append(f'  <text class="source" x="{x:.1f}" y="20">{character}</text>')
    for t, character in enumerate(written):
        x = start + t * TARGET_STEP
        lines.append('  <g class="step">')
        for s, weight in enumerate(looks[t].tolist()):
            if weight >= LEAST:
                y = left + s * SOURCE_STEP
                lines.append(
                    f'    <path d="M{x:.1f} {TARGET_Y - 20}C{x:.1f} {middle:.0f} '
                    f'{y:.1f} {middle:.0f} {y:.1f} {SOURCE_Y + 2}" '
                    f'stroke-width="{0.4 + 6.6 * weight:.2f}"/>'
                )
        lines.append(f'    <text x="{x:.1f}" y="{TARGET_Y}">{character}</text>')
        lines.append("  </g>")
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    FILE.write_text(draw(), "utf-8")
