from tformer.interop.huggingface import from_huggingface as from_huggingface
from tformer.interop.huggingface import to_huggingface as to_huggingface
from tformer.interop.masks import attn_mask_from_torch as attn_mask_from_torch
from tformer.interop.masks import attn_mask_to_torch as attn_mask_to_torch
from tformer.interop.masks import key_mask_from_torch as key_mask_from_torch
from tformer.interop.masks import key_mask_to_torch as key_mask_to_torch
from tformer.interop.torch_modules import from_torch as from_torch
from tformer.interop.torch_modules import to_torch as to_torch
