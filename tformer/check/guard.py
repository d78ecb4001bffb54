"""What a reader's file may not do while it is checked, and what it may use up.

The file runs in a process of its own. This keeps it from other processes, the network,
files that are not its own, and the specs: an audit hook of Python, and limits of the
system. It stops mistakes and tricks in Python; code that brings machine code of its own
is stopped by the kernel alone, where `limits` may ask it.
"""

import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import cast

MEMORY = 2 << 30  # bytes, beside what Python and torch have taken
FILES = 16 << 20  # bytes of a file

REFUSED = (
    *("os.fork", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.startfile"),
    *("os.kill", "os.chdir", "os.fchdir", "os.link", "os.symlink", "os.chmod"),
    *("os.chown", "os.lchown", "os.chflags", "os.lchflags", "os.lockf", "os.setxattr"),
    *("os.removexattr", "os.utime", "os.truncate", "os.add_dll", "pty.spawn"),
    *("subprocess.", "socket.", "urllib.", "http.", "ftplib.", "smtplib.", "poplib."),
    *("imaplib.", "telnetlib.", "nntplib.", "webbrowser.", "sqlite3.", "syslog."),
    *("ctypes.", "gc.", "winreg.", "_winapi.", "msvcrt.", "resource.", "signal."),
    *("sys._current", "sys.setprofile", "sys.settrace"),
)
OWN_ONLY = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree")
SYSTEM = ("/proc", "/sys", "/dev/shm", "/dev/mem", "/dev/tty", "/dev/pts")
NO_MODULES = ("tformer", "_posixsubprocess")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


_Paths = tuple[str, ...]
_Words = tuple[
    str, str, _Paths, _Paths, _Paths, _Paths, int, frozenset[tuple[int, int]]
]
_Uses = tuple[
    Callable[[str], os.stat_result],
    Callable[[object], str],
    Callable[[int], bool],
    Callable[[object], object],
    type[str],
    type[bytes],
    type[int],
    type[OSError],
]


def guard(folder: str, package: Path) -> None:
    """Refuse what a file that is checked may not do, from now on, for good.

    Args:
        folder: where it may write.
        package: the folder of tformer, of which it may read nothing.
    """
    for name in [x for x in sys.modules if x.partition(".")[0] in NO_MODULES]:
        del sys.modules[name]
    if subprocess := sys.modules.get("subprocess"):
        vars(subprocess).pop("_fork_exec", None)
    # numpy.testing and matplotlib import it, and need nothing of it.
    harmless = ModuleType("_posixsubprocess")
    vars(harmless)["fork_exec"] = None
    sys.modules["_posixsubprocess"] = harmless
    words = (folder + os.sep, os.devnull, REFUSED, OWN_ONLY, SYSTEM, NO_MODULES)
    decode = cast(Callable[[object], str], bytes.decode)
    uses: _Uses = os.stat, decode, stat.S_ISDIR, type, str, bytes, int, OSError
    sys.addaudithook(partial(_hook, (*words, WRITING, _hidden(package)), uses))


def _hidden(package: Path) -> frozenset[tuple[int, int]]:
    """List the files of a folder, as the system numbers them, whatever they are called.

    Nothing is gained by a link, or by another name of the folder.
    """
    found = [path.stat() for path in package.rglob("*")]
    return frozenset((each.st_dev, each.st_ino) for each in found)


def _hook(words: _Words, uses: _Uses, event: str, args: tuple[object, ...]) -> None:
    """Refuse an event.

    A reader's code can change what a module or a class holds, and cells of functions.
    So all that decides comes in `words` and `uses`, which are tuples.
    """
    inside, null, refused, own_only, system, no_modules, writing, hidden = words
    look, decode, is_folder, kind, text, data, number, no_file = uses
    if event == "import":
        if text(args[0]).partition(".")[0] in no_modules:
            said = "is not there for a file that is checked: torch and numpy are"
            raise ImportError(f"{args[0]} {said}")
        return
    if event == "object.__setattr__" and args[1] == "__code__":
        raise PermissionError(f"a file that is checked may not do this: {event}")
    opens = event == "open"
    if not opens and not event.startswith(own_only):
        if event.startswith(refused):
            raise PermissionError(f"a file that is checked may not do this: {event}")
        return
    if opens and kind(args[0]) is number:  # a file that is open already
        return
    for path in args[:2] if event == "os.rename" else args[:1]:
        if kind(path) is not text and kind(path) is not data:
            raise PermissionError(f"a file that is checked may not do this: {event}")
        name = text(path) if kind(path) is text else decode(path)
        own = name.startswith(inside) or not name.startswith(("/", "\\"))
        own = own and ".." not in name and name[1:2] != ":"
        writes = not opens or (args[2] & writing and name != null)  # type: ignore[operator]
        if writes and not own:
            raise PermissionError(f"a file that is checked may not write {name}")
        if opens:
            barred = name.startswith(system) and name != "/proc/cpuinfo"
            try:
                found = look(name)
                barred = barred or (found.st_dev, found.st_ino) in hidden
                barred = barred or (is_folder(found.st_mode) and not own)
            except no_file:
                pass
            if barred or "tformer/check" in name:
                raise PermissionError(f"a file that is checked may not read {name}")


def limit(seconds: int) -> None:
    """Bound time, memory, files, and what is kept of a crash, where the system can."""
    with suppress(ImportError):
        import resource

        taken = 0
        with suppress(OSError):
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            taken = pages * resource.getpagesize()
        bounds = {
            resource.RLIMIT_CPU: seconds,
            resource.RLIMIT_FSIZE: FILES,
            resource.RLIMIT_NOFILE: 256,
            resource.RLIMIT_CORE: 0,
        }
        if taken:
            bounds[resource.RLIMIT_AS] = taken + MEMORY
        for bound, value in bounds.items():
            with suppress(OSError, ValueError):
                resource.setrlimit(bound, (value, value))
