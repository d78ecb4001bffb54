"""What is asked of a trained model: `tformer translate` and `attend`."""

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Unpack

import torch
import typer
from torch import Tensor, nn

from tformer.cli.options import Beams, Device, LengthPenalty, Model, counted
from tformer.data.text_files import clean_text, decode_text, read_text
from tformer.generate.beam import beam_search
from tformer.generate.given import Options
from tformer.generate.sampling import greedy
from tformer.generate.translate import translate as translate_texts
from tformer.models.transformer import Transformer
from tformer.nn.memory_layout import turn_weights
from tformer.runs.attention import KINDS, draw_attention
from tformer.runs.folder import RunError
from tformer.runs.model import Trained, load_trained
from tformer.tasks import TASKS
from tformer.training.distributed import choose_device
from tformer.training.processes import not_finite


def translate(
    model: Model,
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Texts; lines of the standard input if none is given."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Read a line a text from this file.")
    ] = None,
    beams: Beams = 1,
    length_penalty: LengthPenalty = 0.6,
    max_len: Annotated[
        int | None, counted("Write at most so many tokens for each.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
    device: Device = "auto",
) -> None:
    """Write what a model makes of each text, a line each.

    tformer translate dates "jeudi 3 mai 1979" "May 3, 1979"

    tformer translate runs/de-en --file new.de --beams 4 > new.en
    """
    trained, _ = ready(model, Transformer, "translate", device)
    if texts and file:
        raise typer.BadParameter("give texts or --file, not both")
    lines = [clean_text(line).strip() for line in texts or _lines(file)]
    check_lines(trained, lines)  # all, before any is written
    if trained.task in TASKS:
        for line in lines:
            if unlike := TASKS[trained.task].unlike_training(line):
                typer.echo(f"warning: {line} {unlike}", err=True)
    for first in range(0, len(lines), batch_size):
        for written in translate_texts(
            trained.model,
            trained.vocabulary,
            lines[first : first + batch_size],
            max_len=max_len or longest_target(trained),
            decode=decoder(beams, length_penalty),
        ):  # one line for each text, though pieces of words can write line ends
            typer.echo(re.sub("\r\n?|\n", " ", written))


def _lines(file: Path | None) -> list[str]:
    if file is not None:
        text = read_text(file)
    elif sys.stdin is None:
        raise RunError("the standard input is closed: give texts, or --file")
    else:
        text = decode_text(sys.stdin.buffer.read(), "the standard input")
    return text.removesuffix("\n").split("\n") if text else []


def attend(
    model: Model,
    text: Annotated[str, typer.Argument(help="What the model reads.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The drawing: .svg, .png or .pdf.")
    ] = Path("attention.svg"),
    kind: Annotated[
        str | None,
        typer.Option(
            help=f"Of a Transformer: {', '.join(KINDS)}; cross, from what it writes to "
            "what it reads, if not given."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="What a Transformer writes; its own answer if not given."),
    ] = None,
    layer: Annotated[int | None, counted("One layer; all if not given.")] = None,
    head: Annotated[int | None, counted("One head; all if not given.")] = None,
) -> None:
    """Draw the attention weights of a model: a row for each layer, a map for each head.

    tformer attend dates "jeudi 3 mai 1979" --out mai.svg

    tformer attend runs/book "To be, or not to be" --layer 2 --out be.png
    """
    trained = load_trained(model)
    _check_finite(trained)
    read = clean_text(text)
    draw_attention(trained, read, out, kind=kind, target=target, layer=layer, head=head)
    typer.echo(out)


def ready(
    name: str, kind: type[nn.Module], command: str, device: str
) -> tuple[Trained, torch.device]:
    """Load a model of this kind, and put it where, and as, it writes fastest."""
    trained = load_trained(name)
    if not isinstance(trained.model, kind):
        other = type(trained.model).__name__
        raise RunError(f"{trained.name} is a {other}: {command} is not for it")
    _check_finite(trained)
    chosen = choose_device(device)
    trained.model.to(chosen)
    if chosen.type == "cpu":
        turn_weights(trained.model)
    return trained, chosen


def _check_finite(trained: Trained) -> None:
    """Raise if a model has weights from which nothing but NaN can come."""
    if name := not_finite(trained.model.named_parameters()):
        raise RunError(f"{trained.name} is damaged: {name} holds numbers as NaN or inf")


def decoder(beams: int, length_penalty: float) -> Callable[..., Tensor]:
    """Return greedy decoding, or the best of a beam search."""
    if beams == 1:
        return greedy
    search = partial(beam_search, num_beams=beams, length_penalty=length_penalty)

    def best(model: Transformer, src: Tensor, **options: Unpack[Options]) -> Tensor:
        return search(model, src, **options).ids[:, 0]

    return best


def longest_target(trained: Trained) -> int:
    """Say how many tokens a target of this model may have, the end token included."""
    task = trained.task
    if task in TASKS:
        return TASKS[task].max_target_len + 1
    return int(trained.model.max_len)


def check_lines(trained: Trained, lines: list[str]) -> None:
    """Raise if a line is empty or has an unknown character, and name the line."""
    for number, line in enumerate(lines, 1):
        if not line:
            raise RunError(f"line {number} is empty")
        try:
            trained.vocabulary.encode(line)
        except ValueError as error:
            raise RunError(f"line {number}: {error}") from error
