"""Whole models, built from `tformer.nn`: Transformer, GPT, BERT, CausalLM, and sizes.

No part lives here, and nothing that trains a model or writes with it.
"""

from tformer.checks import import_when_used

import_when_used(__name__)
