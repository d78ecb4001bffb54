"""Converters between torch's own modules and masks and ours; Hugging Face's models.

torch puts the batch first only if asked to (`batch_first=True`); ours always do,
whatever the module was that they came from. Nothing is computed here, and no model of
ours depends on it.
"""

from tformer.checks import import_when_used

import_when_used(__name__)
