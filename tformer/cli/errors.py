"""Errors of the command line: a sentence on stderr, and an exit code."""

import errno
import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FAILED = 1  # what was asked for could not be done; the message says why
USAGE = 2  # the command line itself is wrong; typer says so
INTERRUPTED = 130  # Ctrl-C, as shells count it: 128 + SIGINT
TRACEBACK = "TFORMER_TRACEBACK"


@contextmanager
def explained() -> Iterator[None]:
    """Turn whatever goes wrong into a sentence and an exit code, without traceback.

    What a user can put right is told from a mistake of ours, which the sentence calls
    so. With TFORMER_TRACEBACK=1 in the environment, the traceback is shown as well.
    """
    as_before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files go out as they came
        sys.stdout.reconfigure(errors="surrogateescape")
    try:
        yield
    except (SystemExit, GeneratorExit):  # typer has said all
        raise
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(FAILED) from None
    except KeyboardInterrupt:
        _say("\ninterrupted")
        raise SystemExit(INTERRUPTED) from None
    except BaseException as error:  # what Rust calls a panic is no Exception
        if os.environ.get(TRACEBACK):
            raise
        message = _known(error)
        if message is None:
            message = (
                f"internal: {type(error).__name__}: {_first_line(error)}. This is a "
                f"mistake of tformer's: please report it, with what {TRACEBACK}=1 in "
                "the environment shows"
            )
        _say(f"error: {message}")
        raise SystemExit(FAILED) from error
    finally:
        warnings.formatwarning = as_before


def _known(error: BaseException) -> str | None:
    """Say what a user can put right, such as a mistake or a full disk."""
    from tformer.runs.folder import RunError
    from tformer.training.distributed import ProcessLostError

    if _of_the_compiler(error):
        return f"torch.compile failed: {_first_line(error)}. Train without --compile"
    if _of_memory(error):
        return f"there is not enough memory: {_first_line(error)}"
    if isinstance(error, OSError) and error.errno == errno.EBADF:
        return "the standard output is closed"
    if isinstance(error, OSError) and error.strerror:
        place = "" if error.filename is None else f"{os.fspath(error.filename)!s}: "
        return f"{place}{error.strerror}"
    kinds = (RunError, ProcessLostError, FloatingPointError, OSError, ImportError)
    return str(error) if isinstance(error, (*kinds, ValueError)) else None


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


# How torch says that no memory is so large: the first as it tries, the others before.
_TOO_LARGE = (
    "can't allocate memory",
    "Storage size calculation overflowed",
    "numel: integer multiplication overflow",
)


def _of_memory(error: BaseException) -> bool:
    """Tell an error of a full memory; that of a CPU has no class of its own."""
    import torch

    full = isinstance(error, (MemoryError, torch.OutOfMemoryError))
    return full or any(words in str(error) for words in _TOO_LARGE)


def _of_the_compiler(error: BaseException) -> bool:
    """Tell an error of torch.compile, such as that no C++ compiler is there."""
    return type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))


def _say(sentence: str) -> None:
    with suppress(OSError):  # of a full disk, where nothing can be said any more
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()


def _replace_closed_streams() -> None:
    """Put something in the place of standard streams that are closed (`<&-`, `>&-`).

    Else the next file to be opened would get their number, and everything that is
    printed would be written into it.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)
    if sys.stdout is None:  # so that writing fails: what is asked for would be lost
        unwritable = os.open(os.devnull, os.O_RDONLY)
        sys.stdout = io.TextIOWrapper(
            io.FileIO(unwritable, "w"), encoding="utf-8", write_through=True
        )
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
