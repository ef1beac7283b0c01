"""The pictures of the history for a model that draws: the last few, its own among them.

Models take pictures in user messages only. A picture that the model made therefore follows its message, in a user
message that says so.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from denizen.domain.message import ImagePart, Part, Role, TextPart, list_calls
from denizen.domain.prompt import PromptMessage
from denizen.domain.room import Post
from denizen.domain.upload import SCHEME

LATEST_PICTURES = 4
_GONE = TextPart("[a picture was shown here]")
_OWN = TextPart("[the picture that you made]")


def limit_pictures(messages: Sequence[PromptMessage], limit: int = LATEST_PICTURES) -> list[PromptMessage]:
    """Returns the messages with all pictures of the last one, the question, and the newest `limit` of those before."""
    limited = list(messages[-1:])
    left = limit
    for message in reversed(messages[:-1]):
        is_own = message.role is Role.ASSISTANT
        kept: list[Part] = []
        parts: list[Part] = []
        for part in reversed(message.parts):
            is_shown = isinstance(part, ImagePart) and left > 0 and not list_calls(message.parts)
            if is_shown:
                left -= 1
                kept.insert(0, part)
            parts.insert(0, _GONE if isinstance(part, ImagePart) and (is_own or not is_shown) else part)
        if kept and is_own:
            limited.insert(0, PromptMessage(Role.USER, (_OWN, *kept), message.kind))
        limited.insert(0, replace(message, parts=tuple(parts)))
    return limited


LoadPicture = Callable[[str], Awaitable[tuple[str, bytes] | None]]
"""Returns the media type and the bytes of an uploaded picture by its address; None where it is gone."""


async def load_uploads(messages: Sequence[PromptMessage], load: LoadPicture | None) -> list[PromptMessage]:
    """Returns the messages with the pictures that were uploaded, of which messages have the addresses."""
    return [
        replace(message, parts=tuple([await _load_upload(part, load) for part in message.parts]))
        if any(isinstance(part, ImagePart) and part.url.startswith(SCHEME) for part in message.parts)
        else message
        for message in messages
    ]


async def _load_upload(part: Part, load: LoadPicture | None) -> Part:
    if not isinstance(part, ImagePart) or not part.url.startswith(SCHEME):
        return part
    found = await load(part.url) if load is not None else None
    if found is None:
        return _GONE
    media_type, data = found
    return ImagePart(f"data:{media_type};base64,{b64encode(data).decode()}", media_type)


def list_pictures(posts: Sequence[Post], since: datetime, limit: int = LATEST_PICTURES) -> list[ImagePart]:
    """Returns the newest `limit` pictures of posts after `since`. The addresses of older ones are void."""
    found = [
        ImagePart(file.url, file.media_type)
        for post in posts
        if post.created_at > since and post.changes.deleted_at is None
        for file in post.attachments
        if file.media_type.startswith("image/") and file.url
    ]
    return found[-limit:]
