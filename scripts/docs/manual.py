"""The pages of the documentation that Denizen shows itself, at `/help`: the tutorial, the how-to pages, the reference.

They are copied into the package, since `docs` is no part of it. Links between them lead to `/help`, other links within
the repository stay as words.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

MANUAL = "src/denizen/web/manual"
_WRITTEN = ("tutorial", "how-to")
"""The folders of what people wrote; the reference is generated."""
_LEFT_OUT = frozenset({"requirements.md"})
_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\(([^()\s]+)\)")


def build_manual(root: Path, generated: Mapping[str, str]) -> dict[str, str]:
    """Returns the pages by their paths in the package. `generated` pages are taken as they will be written."""
    written = [path for folder in _WRITTEN for path in (root / "docs" / folder).glob("*.md")]
    names = {path.relative_to(root).as_posix() for path in written} | set(generated)
    kept = sorted(name for name in names if Path(name).name not in _LEFT_OUT)
    pages: dict[str, str] = {}
    for name in kept:
        text = generated[name] if name in generated else (root / name).read_text(encoding="utf-8")
        pages[f"{MANUAL}/{name.removeprefix('docs/')}"] = _rewrite(name, text, kept)
    return pages


def _rewrite(name: str, text: str, kept: list[str]) -> str:
    def replace(match: re.Match[str]) -> str:
        words, target = match.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path:
            return match[0]
        found = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        if found not in kept:
            return words
        return f"[{words}](/help/{Path(found).stem}{'#' if anchor else ''}{anchor})"

    return _LINK.sub(replace, text)
