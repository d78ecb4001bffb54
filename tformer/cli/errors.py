"""Errors at the command line: a sentence on stderr, and an exit code."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

FAILED = 1  # what was asked for could not be done; the message says why
USAGE = 2  # the command line itself is wrong; typer says so
INTERRUPTED = 130  # Ctrl-C, as shells count it: 128 + SIGINT


@contextmanager
def explained() -> Iterator[None]:
    """Turn the errors that a user can put right into a sentence, without traceback.

    With TFORMER_TRACEBACK=1 in the environment, the traceback is shown as well.
    """
    as_before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        yield
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(FAILED) from None
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        if os.environ.get("TFORMER_TRACEBACK") or not _can_be_put_right(error):
            raise
        message = str(error)
        if _of_the_compiler(error):
            first = message.partition("\n")[0]
            message = f"torch.compile failed: {first}. Train without --compile"
        if _of_memory(error):
            message = f"there is not enough memory: {message.partition(chr(10))[0]}"
        sys.stderr.write(f"error: {message}\n")
        raise SystemExit(FAILED) from error
    finally:
        warnings.formatwarning = as_before


def _can_be_put_right(error: Exception) -> bool:
    """Tell a user's mistake, or a full disk, from a mistake of ours."""
    from tformer.runs.folder import RunError
    from tformer.training.distributed import ProcessLostError

    kinds = (RunError, ProcessLostError, FloatingPointError, OSError, ImportError)
    known = isinstance(error, (*kinds, ValueError))
    return known or _of_memory(error) or _of_the_compiler(error)


def _of_memory(error: Exception) -> bool:
    """Tell an error of a full memory; that of a CPU has no class of its own."""
    import torch

    full = isinstance(error, (MemoryError, torch.OutOfMemoryError))
    return full or "can't allocate memory" in str(error)


def _of_the_compiler(error: Exception) -> bool:
    """Tell an error of torch.compile, such as that no C++ compiler is there."""
    return type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))
