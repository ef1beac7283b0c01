"""Files that people attach, as a transcript shows them: a head, and below it what a text file says. Pure.

The bytes of a block must not change, so a text is cut once, when it is archived, and an address has no signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from denizen.domain.data_uri import describe_data_uris
from denizen.domain.message import FilePart
from denizen.domain.room import Attachment, Post

MAX_FILE_CHARS = 16_000
"""The limit for the files of one message together: half of the tail that a participant is guaranteed."""

TEXT_FOLLOWS = "]\n> "
"""Stands between the head of a file and its text: what holds it may hold the text of a file."""

_WITHOUT_TEXT = ("image/", "video/", "audio/")


def may_have_text(file: Attachment) -> bool:
    """Whether it is worth looking into."""
    return not file.media_type.startswith(_WITHOUT_TEXT)


def add_file_texts(post: Post, files: Iterable[FilePart]) -> Post:
    """Returns the post with the texts of its files, cut to the limit."""
    texts = {file.url: file.text for file in files}
    shown = shorten_texts([texts.get(file.url, "") for file in post.attachments])
    known = zip(post.attachments, shown, strict=True)
    return replace(post, attachments=tuple(replace(file, text=text or file.text) for file, text in known))


def keep_file_texts(files: Sequence[Attachment], known: Iterable[Attachment]) -> tuple[Attachment, ...]:
    """Returns the files with the texts that were read before."""
    texts = {file.address: file.text for file in known}
    return tuple(replace(file, text=file.text or texts.get(file.address, "")) for file in files)


def shorten_texts(texts: Iterable[str]) -> list[str]:
    """Returns the texts of one message, of which the limit leaves the first characters."""
    shown: list[str] = []
    left = MAX_FILE_CHARS
    for text in map(describe_data_uris, texts):
        cut = len(text) - left
        shown.append(f"{text[:left]}\n[{cut} more characters]".lstrip() if cut > 0 else text)
        left = max(-cut, 0)
    return shown


def show_file(file: Attachment) -> str:
    """Returns the head of a file, which is one line whatever it is called, and below it its text."""
    told = [file.name, file.media_type or "unknown type", f"{file.size_bytes} bytes", file.address]
    head = f"[{', '.join(' '.join(each.split()) for each in told if each)}]"
    return f"{head}\n{quote_text(file.text)}" if file.text else head


def quote_text(text: str) -> str:
    """Returns the text with a mark in front of each line, so that none of them reads as somebody's words."""
    return "\n".join(f"> {line}" for line in text.splitlines())
