"""Whole models, built from `tformer.nn`: Transformer, GPT and BERT, and their sizes.

No part lives here, and nothing that trains a model or writes with it.
"""
