"""From a trained model's scores to a text: greedy, beam search, sampling.

Nothing here changes a model, and no model depends on it.
"""

from tformer.checks import import_when_used

import_when_used(__name__)
