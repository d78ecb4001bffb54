"""What the live page says of a text that its model was not trained on, for the page.

`docs/live/explorer/forms.js` is the twin of `tformer.tasks.known_dates`. From here it
gets the same expressions, and how many dates of other kinds the model of the page read
right, from its run in docs/results/.
"""

import json
from pathlib import Path
from typing import Any

from tformer.tasks.date_forms import TWO_DIGIT_YEARS
from tformer.tasks.dates import FIRST_DAY, LAST_DAY
from tformer.tasks.known_dates import known_dates

RUN = "dates-as-typed-0.json"  # of the model of the page


def forms(results: Path) -> dict[str, Any]:
    """Return what `docs/live/explorer/forms.js` reads."""
    run = json.loads((results / RUN).read_text("utf-8"))

    def right(split: str) -> float:
        return float(run["evaluations"][split]["result"]["exact_match"])

    return {
        # JavaScript names a group without the P of Python.
        "forms": [each.replace("(?P<", "(?<") for each in known_dates()],
        "years": [FIRST_DAY.year, LAST_DAY.year],
        "firstOfTwoDigits": TWO_DIGIT_YEARS[0],
        "right": {
            "otherOrders": right("new-formats"),
            "otherYears": right("new-years"),
        },
    }
