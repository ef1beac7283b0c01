"""The words of messages as models read them, whatever the protocol."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.message import FilePart, ImagePart, Part, TextPart

HIDDEN_IMAGE = "(an image that cannot be shown here)"
EMPTY_MESSAGE = "(empty message)"
_NOTE = "system-note"


def read_part(part: Part) -> str:
    """Returns a part in words; empty when it says nothing."""
    match part:
        case TextPart(text):
            return text if text.strip() else ""
        case FilePart(name, media_type, size_bytes, text):
            head = f"[file {name}, {media_type or 'unknown type'}, {size_bytes} bytes]"
            return f"{head}\n{text}" if text else head
        case ImagePart():
            return HIDDEN_IMAGE
        case _:
            return ""


def join_parts(parts: Sequence[Part]) -> str:
    """Returns the words of all parts, a line or more for each."""
    return "\n".join(text for part in parts if (text := read_part(part)))


def write_note(parts: Sequence[Part]) -> str:
    """Returns a note of the system for providers that take no system message within a conversation."""
    return f"<{_NOTE}>\n{join_parts(parts)}\n</{_NOTE}>"


def unforge(text: str) -> str:
    """Returns text from outside in a form that cannot pose as a note of ours."""
    return text.replace(_NOTE, "system note") if _NOTE in text else text
