"""Drawings: the attention of a trained model on a text, and the curves of a run."""

import itertools
import warnings
from pathlib import Path

import torch
from torch import Tensor

from tformer.checks import require
from tformer.data.vocabulary import Vocabulary
from tformer.drawing import attention_map, save_figure
from tformer.generate.evaluating import evaluating
from tformer.generate.translate import translate
from tformer.models.transformer import Transformer
from tformer.nn.recording import record_weights
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.metrics import read_metrics
from tformer.runs.model import Trained

KINDS = ("cross", "encoder", "decoder")
FORMATS = (".svg", ".png", ".pdf")
MOST_TOKENS = 100  # more cannot be read in a drawing


def attention_of(
    trained: Trained, text: str, *, kind: str | None = None, target: str | None = None
) -> tuple[tuple[Tensor, ...], list[str], list[str]]:
    """Ask a model for its attention weights on a text.

    A Transformer is asked for a kind, "cross" (if not given), "encoder" or "decoder",
    and for the target that it writes, its own greedy answer if not given.

    Returns:
        The weights of each layer (H, T, S), and the tokens of the T rows and the S
        columns.

    Raises:
        ValueError: an unknown character or kind, an empty text, or too long a one.
    """
    model, vocabulary = trained.model, trained.vocabulary
    translates = isinstance(model, Transformer)
    if not translates and (kind, target) != (None, None):
        raise RunError("kind and target are for a model that translates")
    if kind not in (None, *KINDS):
        raise RunError(f"kind ({kind!r}) must be one of {', '.join(KINDS)}")
    if not text:
        raise RunError("the text is empty")
    source = _encoded(vocabulary, "text", text, eos=translates)
    if translates and target is None:
        # Without the start token, and no longer than learned positions may be.
        longest = min(2 * len(source) + 20, MOST_TOKENS - 1, model.max_len - 1)
        target = translate(model, vocabulary, [text], max_len=longest)[0]
    written = _encoded(vocabulary, "target", target or "", bos=True)
    read, wrote = labels(vocabulary, source), labels(vocabulary, written)
    device = next(model.parameters()).device
    ids, so_far = (torch.tensor([row], device=device) for row in (source, written))
    with evaluating(model), torch.no_grad(), record_weights(model) as weights:
        model(ids, so_far) if translates else model(ids)
    kept = weights.by_name()
    if not translates:
        return tuple(w[0] for w in kept.values()), read, read
    side, part, rows, columns = {
        "encoder": ("encoder", ".attention", read, read),
        "decoder": ("decoder", ".attention", wrote, wrote),
    }.get(kind or "cross", ("decoder", ".cross_attention", wrote, read))
    wanted = [w for n, w in kept.items() if n.startswith(side) and n.endswith(part)]
    return tuple(w[0] for w in wanted), rows, columns


def _encoded(vocabulary: Vocabulary, name: str, text: str, **ends: bool) -> list[int]:
    ids = vocabulary.encode(text, **ends)
    if len(ids) > MOST_TOKENS:
        raise RunError(f"the {name} has more than {MOST_TOKENS} tokens")
    return ids


def labels(vocabulary: Vocabulary, ids: list[int]) -> list[str]:
    """Name each token, so that it can be told apart in a drawing."""
    special = {vocabulary.bos_id: "⟨start⟩", vocabulary.eos_id: "⟨end⟩"}
    named = {"\n": "⏎", "\t": "⇥"}
    texts = [special.get(i) or vocabulary.decode([i]) for i in ids]
    return [named.get(text, text) for text in texts]


def draw_attention(
    trained: Trained,
    text: str,
    out: Path,
    *,
    kind: str | None = None,
    target: str | None = None,
    layer: int | None = None,
    head: int | None = None,
) -> None:
    """Draw what `attention_of` returns: a row for each layer, a map for each head.

    The file is an .svg, .png or .pdf. Of one layer, or one head, is drawn this one
    alone; the first is 1.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the drawing cannot be written.
        ValueError: as `attention_of`; or there is no such layer, head or format.
    """
    if out.suffix not in FORMATS:
        raise RunError(f"{out} must end in one of {', '.join(FORMATS)}")
    layers, rows, columns = attention_of(trained, text, kind=kind, target=target)
    chosen = _chosen("layer", layer, len(layers))
    heads = _chosen("head", head, len(layers[0]))
    width, height = 0.9 + 0.22 * len(columns), 1.0 + 0.22 * len(rows)
    figure = require("matplotlib.figure").Figure(
        figsize=(width * len(heads), height * len(chosen)), layout="constrained"
    )
    axes = figure.subplots(len(chosen), len(heads), squeeze=False)
    for ax, (i, j) in zip(axes.flat, itertools.product(chosen, heads), strict=True):
        title = f"layer {i + 1}, head {j + 1}"
        attention_map(layers[i][j], rows, columns, ax=ax, title=title)
    out.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, out)


def _chosen(name: str, wanted: int | None, count: int) -> list[int]:
    every = range(count)
    if wanted is not None and wanted - 1 not in every:
        raise RunError(f"{name} ({wanted}) must be in [1, {count}]")
    return [i for i in every if wanted in (None, i + 1)]


def draw_curves(folder: RunFolder) -> None:
    """Draw loss.svg and learning_rate.svg from the metrics of a run."""
    lines = read_metrics(folder.metrics)
    steps = [line for line in lines if "loss" in line]
    looks = [line for line in lines if "validation_loss" in line]
    try:
        for name in ("loss", "learning_rate"):
            figure = require("matplotlib.figure").Figure((7, 4), layout="constrained")
            ax = figure.add_subplot(xlabel="step", ylabel=name.replace("_", " "))
            values = [line[name] for line in steps]
            ax.plot([x["step"] for x in steps], values, lw=0.8, label="training")
            if name == "loss":
                values = [line["validation_loss"] for line in looks]
                ax.plot([x["step"] for x in looks], values, lw=2, label="validation")
                ax.set(ylabel="loss, nats a token", yscale="log")
                ax.legend()
            save_figure(figure, folder.path / f"{name}.svg")
    except Exception as error:  # noqa: BLE001  # no drawing is worth a trained model
        warnings.warn(f"a drawing was left out: {error}", stacklevel=1)
