"""Asks Linux to hold a process to some files: Landlock, in kernels from 5.13 on.

What Python's audit hook does not see, such as a file that torch's own code opens, the
kernel refuses: reading elsewhere, writing, starting programs, connecting, signals.
"""

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

CREATE, ADD, RESTRICT = 444, 445, 446  # the system calls, the same on all processors
READ, READ_FOLDER, WRITE, TRUNCATE = 1 << 2, 1 << 3, 1 << 1, 1 << 14
# How many rights over files there are, by the version of Landlock; others from 4 on.
RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
SYSTEM = """/usr /lib /lib64 /etc /opt /nix/store /dev/urandom /proc/cpuinfo
/sys/devices/system"""


def hold_to(own: str, beside: Iterable[str], package: Path) -> bool:
    """Let this process read what Python needs, and write into its own folder, no more.

    Args:
        own: the folder in which it may do all but start programs.
        beside: folders that it may read, too.
        package: a folder that it may not read, wherever it lies in the others.

    Returns:
        Whether the kernel does it.
    """
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):
        call = ctypes.CDLL(None, use_errno=True).syscall
        call.restype = ctypes.c_long
        version = call(CREATE, None, ctypes.c_size_t(0), 1)
        if version < 1:
            return False
        every = (1 << RIGHTS.get(version, 16)) - 1
        wanted = (every, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
        size = 8 * (1 + (version >= 4) + (version >= 6))
        rules = (ctypes.c_uint64 * 3)(*wanted)
        ruleset = call(CREATE, rules, ctypes.c_size_t(size), 0)
        roots = {sys.prefix, sys.base_prefix, sys.exec_prefix, *SYSTEM.split(), *beside}
        places = dict.fromkeys((*sys.path, *roots), READ | READ_FOLDER)
        for place, rights in (
            places | {own: every & ~1, os.devnull: READ | WRITE}
        ).items():
            for path in _around(Path(place).resolve(), package):
                _allow(call, ruleset, path, rights & every)
        ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # no new privileges
        done: int = call(RESTRICT, ruleset, 0)
        os.close(ruleset)
        return done == 0
    return False


def _around(root: Path, package: Path) -> Iterator[Path]:
    """Cover a folder except for one in it."""
    if not package.is_relative_to(root):
        if not root.is_relative_to(package):
            yield root
        return
    with suppress(OSError):
        for path in root.iterdir():
            if path.is_symlink():
                continue  # what it leads to stands in another folder
            yield from _around(path, package)


def _allow(
    call: "ctypes._NamedFuncPointer", ruleset: int, path: Path, rights: int
) -> None:
    with suppress(OSError):
        handle = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
        if not path.is_dir():
            rights &= READ | WRITE | TRUNCATE
        rule = rights.to_bytes(8, sys.byteorder) + handle.to_bytes(4, sys.byteorder)
        call(ADD, ruleset, 1, ctypes.c_char_p(rule), 0)
        os.close(handle)
