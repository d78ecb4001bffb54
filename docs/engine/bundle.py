"""A copy of the package inside a notebook, so that the notebook runs alone."""

import base64
import io
import textwrap
import zipfile
from collections.abc import Iterable
from pathlib import Path

from engine.project import Project

_CELL = '''\
# {package}, as far as this notebook needs it, for where it is not installed.
try:
    import {package}
except ImportError:
    import base64
    import io
    import sys
    import tempfile
    import zipfile

    folder = tempfile.mkdtemp()
    sys.path.insert(0, folder)
    zipfile.ZipFile(
        io.BytesIO(
            base64.b64decode(
                """
{copy}
"""
            )
        )
    ).extractall(folder)'''


def loading_cell(project: Project, files: Iterable[Path]) -> str:
    """Return a cell that makes the package importable, from a copy of `files`."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as copy:
        for path in sorted(files):
            # No date: the same files give the same notebook.
            entry = zipfile.ZipInfo(project.relative(path))
            entry.compress_type = zipfile.ZIP_DEFLATED
            copy.writestr(entry, path.read_bytes())
    text = base64.b64encode(archive.getvalue()).decode("ascii")
    return _CELL.format(
        package=project.package, copy="\n".join(textwrap.wrap(text, 88))
    )


def needed_data(project: Project, sources: Iterable[str]) -> list[Path]:
    """Return the data files of the package that code in `sources` may read.

    That is every file whose own name, or the name of whose folder, is written there.
    """
    code = "\n".join(sources)
    data = (path for path in project.package_files() if path.suffix != ".py")
    package = project.root / project.package
    return [
        path
        for path in data
        if path.name in code
        or (path.parent != package and f'"{path.parent.name}"' in code)
    ]
