"""From texts to batches of ids."""
