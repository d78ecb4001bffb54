"""The first layer in which two language models differ, and the change that explains it.

`compare` runs both on the same ids. Each layer of ours is then run on what went into
the other's, changed in each way in which models are known to differ, until it is equal.
"""

from tformer.checks import import_when_used

import_when_used(__name__)
