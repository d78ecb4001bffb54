"""Converters between torch's own modules and masks and ours; Hugging Face's models.

torch puts the batch first only if asked to (`batch_first=True`); ours always do,
whatever the module was that they came from. Nothing is computed here, and no model of
ours depends on it.
"""

from tformer.interop.compare import Comparison as Comparison
from tformer.interop.compare import compare as compare
from tformer.interop.huggingface import from_huggingface as from_huggingface
from tformer.interop.masks import attn_mask_from_torch as attn_mask_from_torch
from tformer.interop.masks import attn_mask_to_torch as attn_mask_to_torch
from tformer.interop.masks import key_mask_from_torch as key_mask_from_torch
from tformer.interop.masks import key_mask_to_torch as key_mask_to_torch
from tformer.interop.torch_modules import from_torch as from_torch
from tformer.interop.torch_modules import to_torch as to_torch
