"""The command line: `tformer train`, and what to do with what was trained.

Nothing imports it, and nothing can be done here that a program could not do too.
"""

from tformer.checks import require
from tformer.cli.errors import explained


def main() -> None:
    """Run the command that the command line names."""
    with explained():
        require("typer")
        from tformer.cli.app import app

        app(prog_name="tformer")
