"""The NumPy twin: the formula of every part of `tformer.nn`; torch is never imported.

Functions and plain classes, for reading and for checking; nothing is trained. Names,
arguments, masks and errors are those of the torch code: reference/x.py mirrors nn/x.py,
where they are explained. A class computes what the torch module of its name does in
`eval()`, of whole sequences, and has its weights and parts under the same names;
`from_torch` makes the twin of a module that you have.
"""

from tformer.checks import import_when_used

import_when_used(__name__)
