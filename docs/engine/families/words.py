"""What the config reader of the page knows: words, defaults and presets of families.

`docs/live/formulas/config.js` counts a config.json in the reader's browser. Nothing of
a family is written there twice: defaults, sizes, and which words change no number come
from `tformer.models.families`, as `live/families.json` of the site.
"""

import inspect
from typing import Any

from engine.families.facts import families
from tformer.models.causal_lm import CausalLM
from tformer.models.families import FAMILIES, MAY_BE_NONE, NOTES, family_of

__all__ = ["words"]


def words() -> dict[str, Any]:
    """Return what is known of each family that is one decoder, by its `model_type`.

    `defaults` are its words with their defaults, `presets` what each published size
    says besides, `section` its place on the page of families, if it has one. `notes`
    are words that change no number, `may_be_null` those that may be null.
    """
    sections = {kind: file for file, (kind, _) in families().items()}
    known = {}
    for kind in FAMILIES:
        module = family_of({"model_type": kind})
        if inspect.signature(module.build).return_annotation is CausalLM:
            own = vars(module)
            said = own.get("SAID", {})  # words that a family has in one value only
            known[kind] = {
                "defaults": {**own["DEFAULTS"], **said},
                "presets": own.get("SIZES", {}),
                "section": sections.get(kind),
            }
    return {
        "notes": NOTES.split(),
        "may_be_null": MAY_BE_NONE.split(),
        "families": known,
    }
