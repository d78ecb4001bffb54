"""Tasks to learn, made here, with no download."""
