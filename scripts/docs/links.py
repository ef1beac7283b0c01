"""Links between pages and into the repository, and paths of the repository that pages name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from scripts.docs.markdown import Page

_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")
_PATH = re.compile(r"(?:src|scripts|tests|docs|locks|benchmarks)/[\w./-]+")
_MODULE = re.compile(r"(?:domain|ports|skill|builtin_skills|engine|adapters|web|app|cli|testing)/[\w./-]*")


def find_broken_links(pages: Sequence[Page], root: Path) -> Iterator[str]:
    """One line for each link or path that leads nowhere. Addresses of other sites are not looked at."""
    anchors = {page.path.resolve(): page.anchors for page in pages}
    for page in pages:
        for link in page.links:
            if not _ELSEWHERE.match(link.target):
                yield from _check(page, link.line, link.target, anchors)
        for span in page.spans:
            if not _exists(span.text, root):
                yield f"{page.name}:{span.line}: there is no {span.text}"


def _check(page: Page, line: int, target: str, anchors: dict[Path, frozenset[str]]) -> Iterable[str]:
    name, _, anchor = target.partition("#")
    path = (page.path.parent / unquote(name)).resolve() if name else page.path.resolve()
    if not path.exists():
        return [f"{page.name}:{line}: the link {target} leads nowhere"]
    if anchor and anchor not in anchors.get(path, frozenset()):
        return [f"{page.name}:{line}: the page of the link {target} has no such heading"]
    return []


def _exists(text: str, root: Path) -> bool:
    """Whether a text that reads as a path, from the top or within the package, is one."""
    if _PATH.fullmatch(text):
        return (root / text).exists()
    if _MODULE.fullmatch(text):
        path = root / "src" / "denizen" / text
        return path.exists() or path.with_suffix(".py").exists()
    return True
