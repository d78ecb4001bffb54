"""From texts to batches of ids.

Nothing here knows a model, or a part of one.
"""
