"""Parts of a Markdown document that is written here: front matter, names of files, times. Pure.

Called by `chronicle` and `video`. All words in such a document are strangers'; none of them may end its front matter,
its line, or the name of its file.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping

_NO_WORD = re.compile(r"[\W_]+")


def front_matter(fields: Mapping[str, str | int]) -> str:
    """YAML, between its marks; texts as JSON has them, which is YAML too."""
    lines = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
    return "\n".join(("---", *lines, "---", ""))


def slug(text: str, *, max_chars: int = 50) -> str:
    """The words of a title for the name of a file, in small letters; `untitled` when there are none."""
    plain = unicodedata.normalize("NFKC", text).lower()
    return _NO_WORD.sub("-", plain).strip("-")[:max_chars].rstrip("-") or "untitled"


def one_line(text: str) -> str:
    """Without line breaks and what else does not show."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def quote_yaml(text: str) -> str:
    """As a block quote, in which nothing can look like a heading of the document around it."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines()) or ">"


def clock_time(seconds: float) -> str:
    """`12:34`, or `1:02:03` from an hour on."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
