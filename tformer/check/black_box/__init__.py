"""A model as a black box: `tformer.check.model` calls it, and trains a copy of it.

Torch is imported here, and not by `tformer.check`.
"""

from tformer.check.black_box.report import QUESTIONS, Finding, Report

__all__ = ["QUESTIONS", "Finding", "Report"]
