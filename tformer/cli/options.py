"""Options that commands share, and those that come from the settings of a run."""

import dataclasses
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, get_type_hints

import typer

from tformer.models.families.custom import PARTS
from tformer.runs.settings import RunSettings

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="The folder of a run or of a model, or a model that comes with the "
        "package: dates.",
    ),
]
Device = Annotated[
    str, typer.Option(help="auto (CUDA, MPS or CPU, the first that is there), or one.")
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="Threads of the CPU; torch chooses by itself."),
]
LengthPenalty = Annotated[
    float,
    typer.Option(min=-10, max=10, help="Of beam search: larger favours longer texts."),
]
LARGEST = 2**31 - 1  # of sizes and counts; a seed may be larger


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each setting of a run, and for each part.

    They are declared once: settings in `RunSettings`, parts in their own table. An
    option that is not given is None: then the preset of the task stands.
    """
    signature = inspect.signature(command)
    own = [p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[kind, typer.Option(help=told, rich_help_panel=panel)],
        )
        for name, kind, told, panel in _declared()
    ]
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*own, *added]
    )
    return command


def _declared() -> Iterator[tuple[str, Any, str, str]]:
    """Yield the name, the type, the help and the panel of each option."""
    kinds = get_type_hints(RunSettings)
    for setting in dataclasses.fields(RunSettings):
        if about := setting.metadata:
            kind = kinds[setting.name]
            if kind == tuple[str, ...]:
                kind = list[str]
            optional = kind if isinstance(kind, types.UnionType) else kind | None
            yield setting.name, optional, about["help"], about["panel"]
    for name, part in PARTS.items():
        kind, told = part.kind, part.help
        if isinstance(kind, tuple):
            told = f"{told} One of {', '.join(kind)}."
            kind = str
        yield name, kind | None, told, "Parts of a language model"


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Keep the options that were given.

    Raises:
        BadParameter: a size is larger than any that there could be.
    """
    for name, value in options.items():
        if isinstance(value, int) and value > LARGEST and name != "seed":
            option = name.replace("_", "-")
            raise typer.BadParameter(f"--{option} ({value}) must be at most {LARGEST}")
    lists = {n: tuple(v) for n, v in options.items() if isinstance(v, list) and v}
    plain = {n: v for n, v in options.items() if not isinstance(v, list)}
    return {n: v for n, v in {**plain, **lists}.items() if v is not None}
