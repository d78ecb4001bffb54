"""`tformer attend`: draw what a trained model attends to."""

from pathlib import Path
from typing import Annotated

import typer

from tformer.cli.options import Model
from tformer.cli.translate import check_finite
from tformer.data.text_files import clean_text
from tformer.runs.attention import KINDS, draw_attention
from tformer.runs.trained import load_trained


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
    layer: Annotated[
        int | None, typer.Option(min=1, help="One layer, from 1; all if not given.")
    ] = None,
    head: Annotated[
        int | None, typer.Option(min=1, help="One head, from 1; all if not given.")
    ] = None,
) -> None:
    """Draw the attention weights of a model: a row for each layer, a map for each head.

    tformer attend dates "jeudi 3 mai 1979" --out mai.svg

    tformer attend runs/book "To be, or not to be" --layer 2 --out be.png
    """
    trained = load_trained(model)
    check_finite(trained)
    draw_attention(
        trained,
        clean_text(text),
        out,
        kind=kind,
        target=target,
        layer=layer,
        head=head,
    )
    typer.echo(out)
