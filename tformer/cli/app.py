"""The commands, and what `tformer --help` says."""

from typing import Annotated

import typer

import tformer
from tformer.cli.asking import attend, translate
from tformer.cli.check import check
from tformer.cli.compare import compare
from tformer.cli.evaluate import evaluate
from tformer.cli.generate import generate
from tformer.cli.info import info
from tformer.cli.train import train

HELP = """Train Transformers, and look into them.

A first run, of two minutes:  tformer train copy --out runs/copy

Then ask it:  tformer translate runs/copy abcd  ·  tformer attend runs/copy abcd

A model that comes with the package:  tformer translate dates "jeudi 3 mai 1979"

A model that you downloaded:  tformer info FOLDER  ·  tformer generate FOLDER "text"

Your own code, checked:  tformer check

Exit codes: 0 done, 1 could not be done, 2 wrong usage, 130 stopped by Ctrl-C.
"""

app = typer.Typer(
    name="tformer",
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tformer {tformer.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take what stands before a command."""


for command in (train, evaluate, translate, generate, attend, info, check, compare):
    app.command()(command)
