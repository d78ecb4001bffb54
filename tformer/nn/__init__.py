"""The book's parts, one concept each: what a chapter teaches.

Nothing here trains, reads a file, or knows a whole model.
"""

from tformer.checks import import_when_used

import_when_used(__name__)
