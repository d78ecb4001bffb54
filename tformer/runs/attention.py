"""Drawings: the attention of a trained model on a text, and the curves of a run."""

import itertools
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from tformer.checks import require
from tformer.data.vocabulary import Vocabulary
from tformer.drawing import attention_map, save_figure
from tformer.generate.evaluating import evaluating
from tformer.generate.translate import translate
from tformer.models.building import Model
from tformer.models.transformer import Transformer
from tformer.nn.recording import record_weights
from tformer.runs.batches import RunData
from tformer.runs.folder import RunError, RunFolder, writing
from tformer.runs.metrics import read_metrics
from tformer.runs.settings import RunSettings
from tformer.runs.trained import Trained

KINDS = ("cross", "encoder", "decoder")
FORMATS = (".svg", ".png", ".pdf")
MOST_TOKENS = 100  # more cannot be read in a drawing


def attention_of(
    trained: Trained, text: str, *, kind: str | None = None, target: str | None = None
) -> tuple[tuple[Tensor, ...], list[str], list[str]]:
    """Ask a model for its attention weights on a text.

    Args:
        trained: the model.
        text: what it reads.
        kind: of a Transformer "cross" (if not given), "encoder" or "decoder".
        target: what a Transformer writes; its own greedy answer if not given.

    Returns:
        The weights of each layer (H, T, S), and the tokens of the T rows and the S
        columns.

    Raises:
        RunError: an unknown character or kind, an empty text, or too long a one.
    """
    model, vocabulary = trained.model, trained.vocabulary
    translates = isinstance(model, Transformer)
    if kind is not None and not translates:
        raise RunError(f"kind ({kind!r}) must be left out for this model")
    if kind is not None and kind not in KINDS:
        raise RunError(f"kind ({kind!r}) must be one of {', '.join(KINDS)}")
    if target is not None and not translates:
        raise RunError("target is for a model that translates")
    if not text:
        raise RunError("the text is empty")
    bounded = not translates or model.config.positions == "learned"
    limit = min(MOST_TOKENS, model.max_len) if bounded else MOST_TOKENS
    source = _encoded(vocabulary, "text", text, limit, eos=translates)
    if translates and target is None:
        longest = min(limit - 1, 2 * len(source) + 20)  # without the start token
        target = translate(model, vocabulary, [text], max_len=longest)[0]
    written = _encoded(vocabulary, "target", target or "", limit, bos=True)
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


def _encoded(
    vocabulary: Vocabulary, name: str, text: str, limit: int, **ends: bool
) -> list[int]:
    try:
        ids = vocabulary.encode(text, **ends)
    except ValueError as error:
        raise RunError(str(error)) from error
    if len(ids) > limit:
        raise RunError(f"the {name} has more than {limit} tokens")
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
    """Draw the weights: a row of maps for each layer, a map for each head.

    Args:
        trained: as `attention_of` takes it, and so are `text`, `kind` and `target`.
        text: what the model reads.
        out: the file, .svg, .png or .pdf.
        kind: of attention.
        target: what the model writes.
        layer: only this one; the first is 1.
        head: only this one; the first is 1.

    Raises:
        ImportError: matplotlib is not installed.
        RunError: as `attention_of`; or there is no such layer or head, or the drawing
            cannot be of this format, or not be written.
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
    with writing(out):
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


def draw_result(
    folder: RunFolder, data: RunData, model: Model, settings: RunSettings
) -> None:
    """Draw the curves, and attention.svg: of a test source, or the first words."""
    vocabulary = data.vocabulary
    if data.test_pairs:
        text = data.test_pairs[0][0]
    else:
        start = data.test[0].inputs[0][0, : min(24, settings.max_len)]
        text = vocabulary.decode(i for i in start.tolist() if i < len(vocabulary))
    trained = Trained(settings.task, model, vocabulary, {}, settings)
    draw_if_possible(lambda: draw_curves(folder))
    if len(vocabulary.encode(text, eos=True)) <= MOST_TOKENS:
        out = folder.path / "attention.svg"
        draw_if_possible(lambda: draw_attention(trained, text, out))


def draw_if_possible(draw: Callable[[], object]) -> None:
    """Draw, and warn if that fails: no drawing is worth a trained model."""
    try:
        draw()
    except Exception as error:  # noqa: BLE001  # whatever it is
        warnings.warn(f"a drawing was left out: {error}", stacklevel=1)
