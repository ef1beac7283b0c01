"""Sections and links of the site that `make docs-site` builds: hooks of MkDocs.

The first page is the README. A section of `nav` that is a folder gets its pages, but for those that stand elsewhere in
`nav`. Pages link to files of the repository, which are not part of the site: such a link leads
to the repository where REPOSITORY_URL says where that is, such as `https://example.org/denizen/blob/main`, and is plain
text otherwise. One to a file that does not exist fails.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_LINK = re.compile(
    r"(?P<code>^ *```.*?^ *```|`[^`\n]*`)|\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)",
    re.DOTALL | re.MULTILINE,
)
"""A link, or code, in which nothing is a link."""
_FENCE = re.compile(r"^( *```\w+) .*$", re.MULTILINE)
"""The beginning of a block of code with a word for the tests, which MkDocs would not take for one."""
_log = logging.getLogger("mkdocs.hooks.site_links")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts pages in place of the folders in `nav`."""
    config["nav"] = fill_sections(cast("Sequence[Mapping[str, str | Sequence[str]]]", config["nav"]), DOCS)
    return config


def fill_sections(
    nav: Sequence[Mapping[str, str | Sequence[str]]], docs: Path
) -> list[Mapping[str, str | Sequence[str]]]:
    """Returns the sections with the pages of their folders, an index first."""
    listed = [pages for section in nav for pages in section.values() if not isinstance(pages, str)]
    placed = {name for pages in listed for name in pages}

    def fill(pages: str | Sequence[str]) -> str | Sequence[str]:
        if not isinstance(pages, str) or not (docs / pages).is_dir():
            return pages
        names = sorted(path.relative_to(docs).as_posix() for path in (docs / pages).glob("*.md"))
        return sorted((name for name in names if name not in placed), key=lambda name: "README" not in name)

    return [{title: fill(pages) for title, pages in section.items()} for section in nav]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the README as the first page."""
    from mkdocs.structure.files import File

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=rewrite_links(text, ROOT, DOCS)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page."""
    del config, files
    folder = (DOCS / page.file.src_uri).parent
    return rewrite_links(markdown, folder, folder)


def rewrite_links(markdown: str, folder: Path, shown_in: Path) -> str:
    """Returns the page of that folder with its links as they are seen from the folder `shown_in` of the site."""
    repository = os.environ.get("REPOSITORY_URL", "").rstrip("/")

    def rewrite(found: re.Match[str]) -> str:
        if found["code"] is not None:
            return found[0]
        text, anchor = found["text"], found["anchor"] or ""
        path = Path(os.path.normpath(folder / found["target"]))
        if not path.is_relative_to(ROOT) or not path.exists():
            _log.warning("a link leads to nothing: %s in %s", found["target"], folder.relative_to(ROOT))
            return found[0]
        if path.is_relative_to(DOCS) and path.is_file():
            return f"[{text}]({os.path.relpath(path, shown_in)}{anchor})"
        return f"[{text}]({repository}/{path.relative_to(ROOT).as_posix()}{anchor})" if repository else text

    return _LINK.sub(rewrite, _FENCE.sub(r"\1", markdown))
