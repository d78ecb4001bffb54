"""A run: one training in a folder, which says what was asked and what came of it.

No mathematics lives here, and nothing below knows of runs: what they do, a program can
do by the functions that they call.
"""
