"""MkDocs hooks: the atlas of mistakes, made from the specs of `tformer.check`.

Each known mistake gets a page `mistakes/SPEC/ID/` with its picture; they stand in no
navigation, and `mistakes/index.md` leads to them by what one sees and by concept.
"""

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from engine.mistakes.pages import FOLDER, Atlas
from engine.site import project_of

INDEX = f"{FOLDER}/index.md"
# What the index says where the lists go.
SYMPTOMS, CONCEPTS = "<!-- symptoms -->", "<!-- concepts -->"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures, where the index is built."""
    if files.get_file_from_path(INDEX):
        titles = {x.name: x.title for x in config.extra["chapters"]}
        atlas = Atlas(project_of(config), titles)
        config.extra["atlas"] = atlas
        hidden = InclusionLevel.NOT_IN_NAV
        for path, text in atlas.files():
            files.append(File.generated(config, path, content=text, inclusion=hidden))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Put the lists into the index."""
    if page.file.src_uri != INDEX:
        return markdown
    atlas: Atlas = config.extra["atlas"]
    markdown = markdown.replace(SYMPTOMS, atlas.symptoms())
    return markdown.replace(CONCEPTS, atlas.concepts())
