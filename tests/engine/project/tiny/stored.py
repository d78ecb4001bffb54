"""Numbers from a file."""

import json
from pathlib import Path


def stored_width() -> float:
    """Read the width that is kept beside the code."""
    file = Path(__file__).parent / "data" / "widths.json"
    return float(json.loads(file.read_text())["width"])
