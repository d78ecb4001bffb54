"""The Transformer, executable: attention, heads, positions, encoder and decoder.

`__init__.pyi` lists the names; each is imported when it is first used, so that
`import tformer.reference`, the NumPy twin, does not wait for torch.
"""

from tformer.checks import import_when_used

__version__ = "0.1.0"

import_when_used(__name__)
