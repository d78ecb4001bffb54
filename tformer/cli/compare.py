"""`tformer compare`: the first layer in which two models differ."""

import json
import sys
from contextlib import redirect_stdout
from typing import Annotated, Literal

import torch
import typer

from tformer.interop.compare.comparison import compare as compare_models

Place = Annotated[
    str,
    typer.Argument(
        help="The folder of a model, ours or Hugging Face's, or FILE.py:FUNCTION, "
        "whose function returns a module or a function of ids.",
        show_default=False,
    ),
]


Precision = Literal["float64", "float32"]


def compare(
    a: Place,
    b: Place,
    ids: Annotated[
        str | None,
        typer.Option(help="Token ids, as 1,2,3; by chance if not given."),
    ] = None,
    dtype: Annotated[Precision, typer.Option(help="In what both compute.")] = "float64",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Find the first layer in which two models differ, and say why.

    tformer compare runs/gpt mine.py:make_model

    Exit codes: 0 equal up to rounding, 1 not, 2 they could not be compared.
    """
    try:
        with redirect_stdout(sys.stderr):  # of what a file prints when it runs
            found = compare_models(a, b, numbers(ids), dtype=getattr(torch, dtype))
    except (OSError, TypeError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(json.dumps(found.as_json(), indent=2) if as_json else found)
    raise typer.Exit(int(not found.equal))


def numbers(ids: str | None) -> torch.Tensor | None:
    """Read ids such as 1,2,3 as one sequence."""
    if ids is None:
        return None
    try:
        return torch.tensor([[int(each) for each in ids.split(",")]])
    except (ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(f"--ids ({ids!r}) must be whole numbers, as 1,2,3") from error
