"""`tformer translate`: from texts to what a trained encoder-decoder writes."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from tformer.cli.options import LARGEST, Device, LengthPenalty, Model
from tformer.data.text_files import clean_text, decode_text, read_text
from tformer.generate.beam import beam_search
from tformer.generate.sampling import greedy
from tformer.generate.translate import translate as translate_texts
from tformer.models.transformer import Transformer
from tformer.nn.memory_layout import turn_weights
from tformer.runs.folder import RunError
from tformer.runs.trained import Trained, load_trained
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
    beams: Annotated[
        int,
        typer.Option(min=1, max=LARGEST, help="Beam search with so many; 1 is greedy."),
    ] = 1,
    length_penalty: LengthPenalty = 0.6,
    max_len: Annotated[
        int | None,
        typer.Option(min=1, max=LARGEST, help="Write at most so many tokens for each."),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
    device: Device = "auto",
) -> None:
    """Write what a model makes of each text, a line each.

    tformer translate dates "jeudi 3 mai 1979" "May 3, 1979"

    tformer translate runs/de-en --file new.de --beams 4 > new.en
    """
    trained = load_trained(model)
    check_kind(trained, Transformer, "translate")
    if texts and file:
        raise typer.BadParameter("give texts or --file, not both")
    lines = texts or _lines(file)
    lines = [clean_text(line).strip() for line in lines]
    check_lines(trained, lines)  # all, before any is written
    ready_to_write(trained, choose_device(device))
    for first in range(0, len(lines), batch_size):
        for written in translate_texts(
            trained.model,
            trained.vocabulary,
            lines[first : first + batch_size],
            max_len=max_len or longest_target(trained),
            decode=decoder(beams, length_penalty),
        ):
            typer.echo(_one_line(written))


def _one_line(text: str) -> str:
    """Make spaces of line ends, which pieces of words can write: one text, one line."""
    return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")


def _lines(file: Path | None) -> list[str]:
    if file is None:
        if sys.stdin is None:
            raise RunError("the standard input is closed: give texts, or --file")
        text = decode_text(sys.stdin.buffer.read(), "the standard input")
    else:
        text = read_text(file)
    return text.removesuffix("\n").split("\n") if text else []


def ready_to_write(trained: Trained, device: torch.device) -> None:
    """Put a model where it shall write, its matrices as they are read there fastest.

    Raises:
        RunError: its weights are not finite.
    """
    check_finite(trained)
    trained.model.to(device)
    if device.type == "cpu":
        turn_weights(trained.model)


def decoder(beams: int, length_penalty: float) -> Callable[..., Tensor]:
    """Return greedy decoding, or the best of a beam search."""
    if beams == 1:
        return greedy

    def best(*args: Any, **kwargs: Any) -> Tensor:
        found = beam_search(
            *args, num_beams=beams, length_penalty=length_penalty, **kwargs
        )
        return found.ids[:, 0]

    return best


def longest_target(trained: Trained) -> int:
    """Say how many tokens a target of this model may have, the end token included."""
    task = trained.task
    if task in TASKS:
        return TASKS[task].max_target_len + 1
    return int(trained.model.max_len)


def check_finite(trained: Trained) -> None:
    """Raise if a model has weights from which nothing but NaN can come."""
    if name := not_finite(trained.model.named_parameters()):
        raise RunError(f"{trained.name} is damaged: {name} holds numbers as NaN or inf")


def check_kind(trained: Trained, kind: type | tuple[type, ...], command: str) -> None:
    """Raise unless a model is of the kind, or of one of those, of a command."""
    if not isinstance(trained.model, kind):
        name = type(trained.model).__name__
        raise RunError(f"{trained.name} is a {name}: {command} is not for it")


def check_lines(trained: Trained, lines: list[str]) -> None:
    """Raise if a line is empty or has an unknown character, and name the line."""
    for number, line in enumerate(lines, 1):
        if not line:
            raise RunError(f"line {number} is empty")
        try:
            trained.vocabulary.encode(line)
        except ValueError as error:
            raise RunError(f"line {number}: {error}") from error
