"""The command line: `tformer train`, and what to do with what was trained."""

# --8<-- [start:imports]
from tformer.cli.errors import explained
from tformer.extras import require

# --8<-- [end:imports]


# --8<-- [start:main]
def main() -> None:
    """Run the command that the command line names."""
    with explained():
        require("typer")
        from tformer.cli.app import app

        app(prog_name="tformer")
    # --8<-- [end:main]
