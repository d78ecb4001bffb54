"""What training needs: loss, optimizer, schedule, loop, checkpoints, processes.

Nothing here knows of runs and their folders, which are in `tformer.runs`.
"""
