"""The NumPy twin: the formula of every part of `tformer.nn`; torch is never imported.

Functions and plain classes, for reading and for checking; nothing is trained. Names,
arguments and masks are those of the torch code, and reference/x.py mirrors nn/x.py. A
class has its weights and parts under the names that they have in the torch module;
`from_torch` makes the twin of a module that you have.
"""

from tformer.checks import import_when_used

import_when_used(__name__)
