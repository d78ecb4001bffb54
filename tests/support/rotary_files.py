"""A rotary embedding as different people write it, right and wrong."""

NUMPY = """
import numpy as np

def rotary(x, positions, base):
    half = x.shape[-1] // 2
    angles = positions[:, None] * base ** (-np.arange(half) / half)
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = x[..., :half], x[..., half:]
    rotated = np.concatenate((a * cos - b * sin, a * sin + b * cos), -1)
    return rotated.astype(x.dtype)
"""
TORCH = """
import torch

def rotary(x, positions, base):
    half = x.shape[-1] // 2
    exponents = -torch.arange(half, dtype=torch.float64) / half
    angles = positions[:, None] * base ** exponents
    cos, sin = angles.cos(), angles.sin()
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x.dtype)
"""
LISTS = """
from math import cos, sin
import numpy as np

def rotary(x, positions, base):
    half = x.shape[-1] // 2
    rows = [[[row(x[b, h, t], positions[t], base, half) for t in range(x.shape[2])]
             for h in range(x.shape[1])] for b in range(x.shape[0])]
    return np.array(rows, x.dtype)

def row(x, position, base, half):
    angles = [float(position) * base ** (-i / half) for i in range(half)]
    pairs = [(float(x[i]), float(x[i + half]), angles[i]) for i in range(half)]
    first = [a * cos(angle) - b * sin(angle) for a, b, angle in pairs]
    return first + [a * sin(angle) + b * cos(angle) for a, b, angle in pairs]
"""
MODULE = TORCH.replace("def rotary(x", "def forward(self, x").replace(
    "\n    ", "\n        "
)
MODULE = MODULE.replace(
    "def forward", "class Rotary(torch.nn.Module):\n    def forward"
)
FLOAT32 = TORCH.replace("float64", "float32").replace("base **", "float(base) **")
RIGHT = {
    "NumPy": NUMPY,
    "torch": TORCH,
    "lists": LISTS,
    "float32 inside": FLOAT32,
    "a module": f"{MODULE}\nrotary = Rotary()",
    "a class": MODULE.replace("Rotary", "rotary"),
    "compared with torch, written in NumPy": f"import torch\n{NUMPY}",
    "a part of a function": TORCH.replace("def rotary(x", "def turn(unused, x")
    + "\nfrom functools import partial\nrotary = partial(turn, None)",
    "decorated": TORCH.replace("def rotary", "@torch.compiler.disable\ndef rotary"),
    "a lambda": TORCH.replace("def rotary", "def turn")
    + "\nrotary = lambda *args: turn(*args)",
    "by name only": TORCH.replace("(x, positions, base)", "(*, base, positions, x)"),
    "more arguments": TORCH.replace("base)", "base=1e4, interleaved=False, **more)"),
    "beside others": f"{NUMPY}\ndef help(x): return x\nprint(help(1))",
    "not run as a program": f"{NUMPY}\nif __name__ == '__main__':\n    raise OSError",
    "methods of tensors": """
def rotary(x, positions, base):
    half = x.shape[-1] // 2
    angles = positions.double()[:, None] * base ** (-positions.new_ones(half)
        .cumsum(0).sub(1).double() / half)
    a, b = x.chunk(2, -1)
    first = a * angles.cos() - b * angles.sin()
    out = x.new_empty(x.shape)
    out[..., :half], out[..., half:] = first, a * angles.sin() + b * angles.cos()
    return out
""",
}


CUT = "a, b = x.detach().chunk(2, -1)"
COUNT = "KEPT = []\n\ndef rotary(x, positions, base):\n    KEPT.append(1)"
WRONG = {
    "value": TORCH.replace("-torch.arange", "torch.arange"),
    "shape": TORCH.replace("-1).to", "-1)[0].to"),
    "dtype": TORCH.replace(".to(x.dtype)", ".double()"),
    "gradient": TORCH.replace("a, b = x.chunk(2, -1)", CUT),
    "inputs": NUMPY.replace("return", "x *= 2\n    return"),
    "layout": TORCH.replace("half =", "x = x.view(-1).view(x.shape)\n    half ="),
    "state": COUNT + "\n    return len(KEPT) * x",
    "error": "def rotary(x, positions, base):\n    return x.nothing",
}
PAIRS = TORCH.replace("x.chunk(2, -1)", "x[..., ::2], x[..., 1::2]").replace(
    "torch.cat((a * cos - b * sin, a * sin + b * cos), -1)",
    "torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)",
)
