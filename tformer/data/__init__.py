"""From texts to batches of ids.

Nothing here knows a model, or a part of one.
"""

from tformer.checks import import_when_used

import_when_used(__name__)
