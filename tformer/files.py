"""Files that stay whole if the process is killed: written beside, then renamed.

Where a file or a folder cannot be read or written, each function raises an OSError.
"""

import errno
import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import UnionType
from typing import IO, Any, TypeAlias

Json: TypeAlias = dict[str, Any]  # an object, as it is read from a file
SEAL = "sha256_of_the_rest"
MOST_JSON = 2**27  # bytes; the largest indexes and vocabularies have a few millions


def beside(path: Path) -> Path:
    """Name the file that is written first, to be renamed to `path` when it is whole."""
    return path.with_name(f"{path.name}.new")


def open_new(path: Path) -> IO[bytes]:
    """Open a file to be written that is not there: what has its name is removed first.

    A folder may come from a stranger. Of a link that lies where we write only the link
    goes, and what it points to stays as it was.
    """
    path.unlink(missing_ok=True)
    return path.open("xb")  # which follows no link


def wait_for_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk, not on the way."""
    folder = path.is_dir()
    if folder and os.name == "nt":  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folders(path: Path) -> list[Path]:
    """Make a folder and those that it lies in; return the new ones, innermost first."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)  # which raises if it is a file
    for folder in missing:
        with suppress(PermissionError):  # to read a folder is another right
            wait_for_disk(folder.parent)
    return missing


def check_has_end(path: Path) -> None:
    """Raise an OSError if reading might never end, as from a pipe, or from /dev/zero.

    A link in the folder of a stranger may lead to one.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # of a folder open() tells
        raise OSError(errno.EINVAL, "is not a regular file", str(path))


def read_whole(path: Path, most: int) -> bytes:
    """Read a file that may come from a stranger.

    Raises:
        OSError: it is missing, has no end, or is larger than `most` bytes.
    """
    check_has_end(path)
    with path.open("rb") as file:
        data = file.read(min(most, path.stat().st_size) + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"is larger than {most:,} bytes", str(path))
    return data


def unchanged(path: Path, seen: os.stat_result) -> bool:
    """Tell whether a file is the one that was seen, and was not written to since."""
    try:
        now = path.stat()
    except OSError:
        return False
    names = ("st_dev", "st_ino", "st_size", "st_mtime_ns")
    return all(getattr(now, name) == getattr(seen, name) for name in names)


def write_json_beside(path: Path, values: Mapping[str, object]) -> Path:
    """Write an object under the name `beside(path)`, and wait until it is there.

    Returns:
        That name. If it cannot be written, nothing is left of it.

    Raises:
        UnicodeEncodeError: a text is not Unicode, such as a file's name can be.
    """
    new = beside(path)
    data = (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()
    try:
        with open_new(new) as file:
            file.write(data)
        wait_for_disk(new)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return new


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Write an object: a kill leaves the old file or this one, and never a half."""
    os.replace(write_json_beside(path, values), path)
    wait_for_disk(path.parent)


def read_json(
    path: Path,
    *,
    format: str | tuple[str, ...] = (),
    types: Mapping[str, type | UnionType] | None = None,
) -> Json:
    """Read an object of this "format", or one of these, with values of these types.

    Raises:
        ValueError: it is truncated, or is something else. The message names it.
    """
    data = read_whole(path, MOST_JSON)
    try:
        values = json.loads(data.decode())
    except (ValueError, RecursionError) as error:  # of JSON, of UTF-8, of 10,000 [
        raise ValueError(f"{path} is not JSON, or truncated: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} does not hold an object")
    allowed = (format,) if isinstance(format, str) else format
    if allowed and values.get("format") not in allowed:
        found, wanted = values.get("format"), " or ".join(map(repr, allowed))
        raise ValueError(f"{path}: format ({found!r}) must be {wanted}")
    for name, kind in (types or {}).items():
        if name not in values:
            raise ValueError(f"{path} lacks {name!r}")
        value = values[name]
        if not isinstance(value, kind) or isinstance(value, bool):  # no true for a 1
            raise ValueError(f"{path}: {name} ({value!r}) has a wrong type")
    return values


def finite_or_null(values: Mapping[str, object]) -> dict[str, object]:
    """Put None in the place of what is not finite: JSON has no word for it."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def sealed(values: Mapping[str, object]) -> Json:
    """Add to an object the SHA-256 of all that it holds.

    Returns:
        The object as it will be read from JSON: a tuple is a list, each name a text.
    """
    kept = json.loads(json.dumps(values))
    return {**kept, SEAL: _digest(kept)}


def check_sealed(path: Path, values: Mapping[str, object]) -> None:
    """Raise a ValueError unless an object, read from a file, is as it was sealed."""
    try:
        intact = values.get(SEAL) == _digest(values)
    except RecursionError:  # so deep that it could be read, and not be written
        intact = False
    if not intact:
        raise ValueError(f"{path} was changed: it is not what its {SEAL} is of")


def _digest(values: Mapping[str, object]) -> str:
    rest = {name: value for name, value in values.items() if name != SEAL}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def sha256_of(path: str | Path) -> str:
    """Compute the SHA-256 of a file, in hexadecimal."""
    check_has_end(Path(path))
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
