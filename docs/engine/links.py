"""Where a chapter leads: its source, its modules, its notebook and its downloads."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from engine.project import Project

# The branch that the workflow for GitHub Pages pushes docs/notebooks/ to.
NOTEBOOKS_BRANCH = "notebooks"
_COLAB = "https://colab.research.google.com/github"


def chapter_links(
    project: Project, source: str, meta: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the theme shows under the title of a chapter.

    Args:
        project: which knows the addresses.
        source: the file of the page in docs/.
        meta: its front matter.

    Returns:
        `source_url`, `module_urls` in the order of `modules`, `colab_url`, and, from
        the root of the site, `notebook`, `standalone` and `standalone_numpy`; None
        for a file that is not there.
    """
    on_github = f"{project.repo_url}/blob/HEAD"
    docs = project.relative(project.docs)
    links: dict[str, Any] = {"source_url": f"{on_github}/{docs}/{source}"}
    links["module_urls"] = [f"{on_github}/{name}" for name in meta.get("modules", [])]
    name = PurePosixPath(source).stem
    files = {
        "notebook": f"notebooks/{name}.ipynb",
        "standalone": f"downloads/{name}.py",
        "standalone_numpy": f"downloads/{name}_numpy.py",
    }
    for key, file in files.items():
        links[key] = file if (project.docs / file).is_file() else None
    repository = project.repo_url.removeprefix("https://github.com/")
    notebook = f"{_COLAB}/{repository}/blob/{NOTEBOOKS_BRANCH}/{name}.ipynb"
    links["colab_url"] = notebook if links["notebook"] else None
    return links
