"""A package small enough to test an engine with."""
