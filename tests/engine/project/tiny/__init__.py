"""A package small enough to test an engine with."""

__version__ = "1.0.0"
