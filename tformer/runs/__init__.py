"""A run: one training in a folder, which says what was asked and what came of it."""
