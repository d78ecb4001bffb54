"""Options that commands share, and those that come from the settings of a run."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_type_hints

import typer

from tformer.models.families.custom import PARTS
from tformer.runs.settings import RunSettings

LARGEST = 2**31 - 1  # of sizes and counts; a seed may be larger


def counted(told: str) -> Any:
    """Declare an option that counts something, with its help."""
    return typer.Option(min=1, max=LARGEST, help=told)


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="The folder of a run or of a model, or a model that comes with the "
        "package: dates, dates-as-typed, shakespeare.",
    ),
]
Device = Annotated[
    str, typer.Option(help="auto (CUDA, MPS or CPU, the first that is there), or one.")
]
Beams = Annotated[int, counted("Beam search with so many; 1 is greedy.")]
LengthPenalty = Annotated[
    float,
    typer.Option(min=-10, max=10, help="Of beam search: larger favours longer texts."),
]


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each setting of a run, and for each part.

    They are declared once: settings in `RunSettings`, parts in their own table. An
    option that is not given is None: then the preset of the task stands.
    """
    signature = inspect.signature(command)
    options = [p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD]
    kinds = get_type_hints(RunSettings)
    for setting in dataclasses.fields(RunSettings):
        if about := setting.metadata:
            kind = kinds[setting.name]
            kind = list[str] if kind == tuple[str, ...] else kind
            options.append(_option(setting.name, kind, about["help"], about["panel"]))
    for name, part in PARTS.items():
        kind, told = part.kind, part.help
        if isinstance(part.kind, tuple):
            kind, told = str, f"{told} One of {', '.join(part.kind)}."
        options.append(_option(name, kind, told, "Parts of a language model"))
    vars(command)["__signature__"] = signature.replace(parameters=options)
    return command


def _option(name: str, kind: Any, told: str, panel: str) -> inspect.Parameter:
    most = LARGEST if kind in (int, int | None) and name != "seed" else None
    about = typer.Option(help=told, max=most, rich_help_panel=panel)
    option = Annotated[kind | None, about]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option
    )


def given(options: Mapping[str, object]) -> dict[str, object]:
    """Keep the options that were given."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in options.items()
        if value not in (None, [])
    }
