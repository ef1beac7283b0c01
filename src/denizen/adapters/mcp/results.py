"""From a server's result to ours: text for the model, pictures, sound and files for people (`domain/extras`). Pure."""

from __future__ import annotations

import json
import mimetypes
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from denizen.domain.json import Json
from denizen.domain.tool import ToolResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult, EmbeddedResource, ResourceLink

MAX_DATA_CHARS = 16_000_000
"""Of what one result shows to people, as it is recorded."""


def to_result(result: CallToolResult) -> ToolResult:
    """`isError` is failure (inventory LW6). Structured content stands in where there is no text."""
    read = _ResultReader()
    for block in result.content:
        read.take(block)
    text = "\n".join(read.texts)
    if not read.has_text and result.structured_content is not None:
        text = "\n".join([json.dumps(result.structured_content, ensure_ascii=False), *read.texts])
    if not text:
        text = "The tool failed and did not say why." if result.is_error else "Done; the tool returned nothing."
    return ToolResult(
        text, is_error=bool(result.is_error), data={name: rows for name, rows in read.data.items() if rows}
    )


class _ResultReader:
    """What was read of a result so far."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.has_text = False
        self.data: dict[str, list[Json]] = {"images": [], "files": [], "embeds": []}
        self._chars = 0

    def take(self, block: object) -> None:
        from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent

        match block:
            case TextContent():
                self._say(block.text)
            case ImageContent():
                self._show("images", block.mime_type, block.data, f"image-{len(self.data['images']) + 1}")
            case AudioContent():
                self._show("files", block.mime_type, block.data, f"audio-{len(self.data['files']) + 1}")
            case EmbeddedResource():
                self._take_resource(block)
            case ResourceLink():
                self._link(block)
            case _:
                self.texts.append("[something of a kind that is not known here was left out]")

    def _say(self, text: str) -> None:
        if text:
            self.texts.append(text)
            self.has_text = True

    def _take_resource(self, block: EmbeddedResource) -> None:
        """A text is read by the model; anything else is shown to people."""
        from mcp_types import TextResourceContents

        resource = block.resource
        name = _file_name(resource.uri, resource.mime_type or "")
        if not isinstance(resource, TextResourceContents):
            media_type = resource.mime_type or "application/octet-stream"
            kind = "images" if media_type.startswith("image/") else "files"
            self._show(kind, media_type, resource.blob, name)
            return
        self._say(f"[{resource.uri}]\n{resource.text}")

    def _show(self, kind: str, media_type: str, encoded: str, name: str) -> None:
        if self._chars + len(encoded) > MAX_DATA_CHARS:
            self.texts.append(f"[{name} was left out: it is too large]")
            return
        self._chars += len(encoded)
        media_type = media_type.partition(";")[0].strip()
        if "." not in name:
            name += _ending(media_type)
        self.data[kind].append({"url": f"data:{media_type};base64,{encoded}", "name": name})
        self.texts.append(f"[{name} ({media_type}) is shown to the user]")

    def _link(self, link: ResourceLink) -> None:
        title = link.title or link.name
        about = link.description or ""
        if link.uri.startswith(("https://", "http://")):
            self.data["embeds"].append({"title": title, "text": about, "url": link.uri})
        self.texts.append(" ".join(f"[resource: {title} {link.uri} {about}".split()) + "]")


def _file_name(uri: str, media_type: str) -> str:
    """The last part of the address, which is only a name."""
    parts = urlsplit(uri)
    last = unquote(parts.path or parts.netloc).rstrip("/").rpartition("/")[2] or "resource"
    return last if "." in last or not media_type else f"{last}{_ending(media_type)}"


def _ending(media_type: str) -> str:
    plain = media_type.rpartition("/")[2].removeprefix("x-")
    usual = f".{plain}" if plain.isascii() and plain.isalnum() and len(plain) <= 5 else ".bin"
    return mimetypes.guess_extension(media_type) or usual


def read_progress(progress: float, total: float | None, message: str | None) -> str:
    """One line for people of how far a call is."""
    text = " ".join((message or "").split())[:200]
    done = f"{progress / total:.0%}" if total and 0 <= progress <= total else ""
    return f"{text} ({done})" if text and done else text or done
