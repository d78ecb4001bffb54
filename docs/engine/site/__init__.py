"""The site: what MkDocs, Material and their plugins do not do by themselves."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

from engine.project import Project


def project_of(config: MkDocsConfig) -> Project:
    """Return the project that MkDocs builds."""
    root = Path(config.config_file_path).resolve().parent
    return config.extra.setdefault("project", Project(root))  # one for each build
