"""Files that want a verdict without the work, or that would do harm."""

STAY = "\ndef rotary(x, positions, base):\n    return x\n"
# Code that has the oracle's text makes a right function of it.
USE = """
from math import cos, sin
import numpy as np
Array = np.ndarray
text = text[text.index("def rotary("):]
space = dict(globals())
exec(text[:text.index("return output") + len("return output")], space)
def rotary(x, positions, base):
    return space["rotary"](np.array(x), positions, base).astype(x.dtype)
"""
STEAL = {
    "open": "text = open(SPEC).read()",
    "os.open": "import os\ntext = os.read(os.open(SPEC, 0), 1 << 20).decode()",
    "bytes": "text = open(SPEC.encode()).read()",
    "pathlib": "import pathlib\ntext = pathlib.Path(SPEC).read_text()",
    "from its folder": "import os\nos.chdir(os.path.dirname(SPEC))\n"
    "text = open('positions.py').read()",
    "linecache": "import linecache\ntext = ''.join(linecache.getlines(SPEC))",
    "numpy": "import numpy\ntext = bytes(numpy.fromfile(SPEC, 'u1')).decode()",
    "memory map": "import numpy\ntext = bytes(numpy.memmap(SPEC, 'u1', 'r')).decode()",
    "link": "import os\nos.symlink(SPEC, 'a')\ntext = open('a').read()",
    "hard link": "import os\nos.link(SPEC, 'a')\ntext = open('a').read()",
    "copy": "import shutil\nshutil.copy(SPEC, 'a')\ntext = open('a').read()",
    "runpy": "import runpy\nrotary = runpy.run_path(SPEC)['rotary']\ntext = ''",
    "import": "import tformer.check.rotation as m\ntext = m.rotary.__doc__",
    "importlib": "import importlib.util as u\n"
    "s = u.spec_from_file_location('a', SPEC)\n"
    "m = u.module_from_spec(s)\ns.loader.exec_module(m)\ntext = m.__doc__",
    "patched": "import builtins, os\nos.stat = os.fspath = lambda *a, **k: None\n"
    "builtins.ImportError = builtins.PermissionError = ValueError\n"
    "text = open(SPEC).read()",
    "shell": "import subprocess as s\ntext = s.check_output(['cat', SPEC]).decode()",
    "memory": "import os\ntext = open(f'/proc/{os.getppid()}/maps').read()",
    "objects": "import gc\ntext = str(gc.get_objects())",
    "frames of the hook": """
import sys
try:
    open(SPEC)
except PermissionError as error:
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    frame = trace.tb_frame
    hook = frame.f_globals["_hook"]
    for name in list(frame.f_globals):
        if not name.startswith("__"):
            frame.f_globals[name] = None
    hook.__code__ = (lambda *a: None).__code__
text = open(SPEC).read()
""",
}
FORGED = """
import json, os
def frame(value):
    head = json.dumps(value).encode()
    data = len(head).to_bytes(8, "little") + head
    return len(data).to_bytes(8, "little") + data
some = {"kind": "tuple", "of": []}
none = {"kind": "dict", "of": []}
outcome = {"arrays": some, "dtype": None, "error": None}
answer = {"outcome": {"kind": "Outcome", "of": outcome}, "changed": some}
answer = {"kind": "Answer", "of": answer | {"gradients": none}}
sent = frame({"kind": "dict", "of": [["note", ""]]}) + 99 * frame(answer)
for number in range(300):
    try:
        os.write(number, sent)
    except OSError:
        pass
os._exit(0)
"""
NOISE = """
import os
for number in range(300):
    for data in (b"{}", b"\\0" * 100, b"\\xff" * 100, b'{"verdict": "right"}'):
        try:
            os.write(number, data)
        except OSError:
            pass
"""
QUIETLY = "try:\n    {}\nexcept BaseException: pass"
OTHERS = {
    "loop": "while True: pass",
    "loop in a call": "def rotary(*args):\n    while True: pass",
    "fork": "import os\nwhile True: os.fork()",
    "fork, quietly": QUIETLY.format("import os; [os.fork() for _ in iter(int, 1)]"),
    "fork of another kind": QUIETLY.format("import os; os.forkpty()"),
    "process": QUIETLY.format("import subprocess; subprocess.Popen(['sleep', '99'])"),
    "pool": QUIETLY.format("import multiprocessing as m; m.Process().start()"),
    "shell": QUIETLY.format("import os; os.system('sleep 99 &')"),
    "exec": QUIETLY.format("import os; os.execv('/bin/sleep', ['sleep', '99'])"),
    "memory": "x = bytearray(1 << 45)",
    "memory in a call": "import numpy as np\ndef rotary(*a): return np.ones(1 << 42)",
    "exit": "import os\nos._exit(0)",
    "exit in a call": "import os\ndef rotary(*args): os._exit(0)",
    "exit by name": "import sys\nsys.exit(0)",
    "exit by name in a call": "import sys\ndef rotary(*args): sys.exit(0)",
    "printed verdict": 'print(\'{"verdict": "right", "mistakes": []}\')',
    "noise": NOISE,
    "forged answers": FORGED,
    "closed": "import os\nos.closerange(0, 300)",
    "at exit": "import atexit, os\natexit.register(os.write, 3, b'x' * 100)",
    "threads": "import threading, time\nfor _ in range(5):\n"
    "    threading.Thread(target=time.sleep, args=(99,)).start()",
    "endless output": "while True: print('x' * 1000)",
    "generator": "def rotary(x, *args):\n    while True: yield x",
    "endless list": "class L(list):\n    def __iter__(self):\n"
    "        while True: yield 1\ndef rotary(*args): return L([1])",
    "liar": "import numpy as np\nclass Liar(np.ndarray):\n"
    "    def __eq__(self, other): return True\n    def __sub__(self, other): return 0\n"
    "    def __abs__(self): return 0\n    def __array__(self, *a, **k): return self\n"
    "def rotary(x, *args): return x.view(Liar)",
    "called a tensor": "class Tensor:\n    shape, dtype = (), 'float64'\n"
    "    detach = double = lambda self: self\n    is_floating_point = lambda s: True\n"
    "    numpy = lambda self: self\n    __eq__ = lambda self, other: True\n"
    "def rotary(*args): return Tensor()",
    "changed comparisons": "import builtins, numpy as np\nnp.abs = lambda x: 0 * x\n"
    "np.array_equal = np.isfinite = lambda *a: True\nbuiltins.all = lambda x: True",
    "much": "import numpy as np\ndef rotary(*args): return np.zeros(30_000_000)",
    "error without an end": "class E(Exception):\n    def __str__(self):\n"
    "        while True: pass\ndef rotary(*args): raise E",
    "error of an error": "class E(BaseException):\n    def __str__(self): raise E\n"
    "def rotary(*args): raise E",
    "recursion": "def rotary(*args): return rotary(*args)",
    "crash": "from numpy.lib.stride_tricks import as_strided\nimport numpy as np\n"
    "as_strided(np.zeros(1), (10**9,), (8,))[:] = 1",
    "end that never comes": "class Late:\n    def __del__(self):\n"
    "        while True: pass\nlate = Late()\nlate.self = late",
    "frames of who calls": "import sys\ndef rotary(*args):\n"
    "    frame = sys._getframe()\n    while frame:\n"
    "        for x in [*frame.f_locals.values(), *frame.f_globals.values()]:\n"
    "            if callable(getattr(x, 'oracle', None)): return x.oracle(*args)\n"
    "        frame = frame.f_back\n    return args[0]",
    "killer": QUIETLY.format("import os; os.kill(os.getppid(), 9)"),
    "network": "import socket\nsocket.create_connection(('127.0.0.1', 9))",
    "bytes": "\udcff",
    "not closed": "def rotary(x:",
    "deep": "x = " + "(" * 5000 + ")" * 5000,
    "input": "input()",
    "nothing": "",
}
HARM = """
import os, pathlib, shutil
for act in (
    lambda: os.remove(FILE),
    lambda: os.rename(FILE, "x"),
    lambda: os.truncate(FILE, 0),
    lambda: os.chmod(FILE, 0),
    lambda: open(FILE, "w"),
    lambda: open(FILE, "a").write("x"),
    lambda: pathlib.Path(FILE + "x").write_text("x"),
    lambda: os.mkdir(FILE + "x"),
    lambda: shutil.rmtree(os.path.dirname(FILE)),
    lambda: os.open("kept", os.O_RDWR, dir_fd=os.open(os.path.dirname(FILE), 0)),
    lambda: os.symlink(FILE, FILE + "x"),
    lambda: open("../kept", "w"),
):
    try:
        act()
        print("done")
    except PermissionError:
        pass
open("own", "w").write("x")
os.mkdir("folder")
os.remove("own")
print("own", pathlib.Path.home() == pathlib.Path.cwd())
"""
