"""What training needs: loss, optimizer, schedule, loop, checkpoints, processes.

Nothing here knows of runs and their folders, which are in `tformer.runs`.
"""

from tformer.checks import import_when_used

import_when_used(__name__)
