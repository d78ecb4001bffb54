"""The site: what MkDocs, Material and their plugins do not do by themselves."""

from pathlib import Path
from typing import TYPE_CHECKING

from engine.project import Project

if TYPE_CHECKING:  # what renders a page without MkDocs comes through here
    from mkdocs.config.defaults import MkDocsConfig


def project_of(config: "MkDocsConfig") -> Project:
    """Return the project that MkDocs builds."""
    root = Path(config.config_file_path).resolve().parent
    return config.extra.setdefault("project", Project(root))  # one for each build
