"""Uploads: files that people attach to their chats, and how models read them. Pictures of tools are kept with them.

A picture is encoded anew and reaches models as a picture, a PDF or CSV file as its text. The store has the address of
an upload only; its bytes are loaded when a model is asked.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Mapping, Sequence

from denizen.domain.attachments import MAX_IMAGES, gather_images
from denizen.domain.chat import Chat, ChatId, is_chat_id
from denizen.domain.conversation import Place
from denizen.domain.data_uri import extract_data_uris
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded
from denizen.domain.json import Json
from denizen.domain.message import FilePart, ImagePart, Part
from denizen.domain.record import record
from denizen.domain.upload import (
    CSV,
    MAX_UPLOAD_BYTES,
    PDF,
    SCHEME,
    WEBP,
    UploadPath,
    choose_path,
    decode_csv,
    find_media_type,
    find_upload_path,
    owner_folder,
    parse_path,
    shown_name,
    upload_missing,
)
from denizen.engine.chats.reading import WEB, get_chat
from denizen.ports.pdf import ReadPdf
from denizen.ports.store import Store
from denizen.ports.uploads import EncodeImage, UploadFiles

_log = logging.getLogger(__name__)

MAX_ATTACHED = 10
MAX_TEXT_CHARS = 100_000
"""The limit for the texts of all files of one message together."""
MAX_OWNER_BYTES = 500_000_000
"""The limit for all uploads of one person."""


@record
class Upload:
    """An upload with its bytes."""

    path: UploadPath
    data: bytes

    @property
    def media_type(self) -> str:
        return self.path.media_type


class ChatUploads:
    """The uploads of all chats."""

    def __init__(self, store: Store, files: UploadFiles, encode: EncodeImage, read_pdf: ReadPdf) -> None:
        self._store = store
        self._files = files
        self._encode = encode
        self._read_pdf = read_pdf

    async def put(self, owner: str, chat: ChatId, name: str, data: bytes) -> Upload:
        """Stores a file of an own chat; the same one again is stored once. Raises NotFound for another chat,
        InvalidInput for a file that is no picture, PDF or CSV file or is too large, LimitExceeded when the owner has
        too many, and as `EncodeImage` does.
        """
        async with self._store.work(write=False) as work:
            await get_chat(work, owner, chat)
        return await self._put(owner, chat, name, data)

    async def _put(self, owner: str, chat: ChatId, name: str, data: bytes) -> Upload:
        if not 0 < len(data) <= MAX_UPLOAD_BYTES:
            raise InvalidInput(
                f"An upload has 1 to {MAX_UPLOAD_BYTES:,} bytes.", code="upload_size", fix="Send a smaller file."
            )
        media_type = find_media_type(data, name)
        if media_type == WEBP:
            data = await self._encode(data)
        used = await self._files.total_bytes(owner_folder(owner))
        if used + len(data) > MAX_OWNER_BYTES:
            raise LimitExceeded(
                f"Your uploads would have more than {MAX_OWNER_BYTES:,} bytes.",
                code="uploads_full",
                fix="Delete chats with uploads, or uploads that you do not need.",
            )
        upload = Upload(choose_path(owner, chat, name, media_type, data), data)
        await self._files.write(upload.path, data)
        return upload

    async def keep_pictures(self, place: Place, data: Mapping[str, Json]) -> Mapping[str, Json]:
        """Returns what a tool shows in a place, with the addresses of uploads in place of pictures if it is a chat. A
        picture that cannot be stored stays as it is.
        """
        if place.platform != WEB or not is_chat_id(place.thread):
            return data
        data = gather_images(data)
        rows = data.get("images")
        if not isinstance(rows, list):
            return data
        images = [await self._keep_picture(place, row) for row in rows[:MAX_IMAGES]]
        return {**data, "images": images}

    async def _keep_picture(self, place: Place, row: Json) -> Json:
        if not isinstance(row, Mapping):
            return row
        url = str(row.get("url", ""))
        if find_upload_path(url) is not None:  # no tool chooses among the uploads
            return {**row, "url": ""}
        found = extract_data_uris(url).uris
        if not found or not found[0].media_type.startswith("image/"):
            return row
        try:
            upload = await self._put(place.channel, ChatId(place.thread), found[0].name, found[0].data)
        except DenizenError as error:
            _log.warning("a picture of a tool is not kept: %s", error.message, extra=error.fields)
            return row
        return {**row, "url": SCHEME + upload.path.text}

    async def get(self, owner: str, path: str) -> Upload:
        """Raises NotFound, for an upload of somebody else too."""
        found = self._check_own(owner, path)
        data = await self._files.read(found)
        if data is None:
            raise upload_missing()
        return Upload(found, data)

    async def remove(self, owner: str, path: str) -> None:
        """Raises as `get` does."""
        if not await self._files.remove(self._check_own(owner, path)):
            raise upload_missing()

    async def remove_chat(self, owner: str, chat: ChatId) -> None:
        await self._files.remove_chat(owner_folder(owner), chat)

    async def list_paths(self, owner: str) -> Sequence[str]:
        """Returns the paths of all uploads of an owner."""
        return [path.text for path in await self._files.list_paths(owner_folder(owner))]

    async def remove_owner(self, owner: str) -> None:
        """Removes all uploads of an owner."""
        await self._files.remove_owner(owner_folder(owner))

    async def load_parts(self, owner: str, chat: ChatId, paths: Sequence[str]) -> tuple[Part, ...]:
        """Returns uploads of the chat as parts of a message. Raises NotFound for others, InvalidInput for too many."""
        if len(paths) > MAX_ATTACHED:
            raise InvalidInput(f"A message has at most {MAX_ATTACHED} uploads.", code="uploads_many")
        parts: list[Part] = []
        room = MAX_TEXT_CHARS
        for path in dict.fromkeys(paths):
            upload = await self.get(owner, path)
            if upload.path.chat != chat:
                raise upload_missing()
            url = SCHEME + upload.path.text
            if upload.media_type == WEBP:
                parts.append(ImagePart(url, WEBP))
                continue
            text = await self._read_text(upload)
            cut = len(text) - room
            shown = f"{text[:room]}\n[{cut} more characters]" if cut > 0 else text
            room = max(room - len(text), 0)
            parts.append(FilePart(shown_name(path), upload.media_type, len(upload.data), shown, url))
        return tuple(parts)

    async def load_picture(self, url: str) -> tuple[str, bytes] | None:
        """Returns the type and the bytes of a picture by its address in a message; None where it was deleted."""
        path = find_upload_path(url)
        if path is None:
            return None
        found = parse_path(path)
        data = await self._files.read(found)
        return None if data is None else (found.media_type, data)

    async def load_data_uri(self, chat: Chat, url: str) -> str:
        """Returns a picture of the chat by its address as a data URI, and another address as it is. Empty where the
        picture was deleted, or is that of another chat.
        """
        path = find_upload_path(url)
        if path is None:
            return url
        found = parse_path(path)
        is_own = found.owner == owner_folder(chat.owner) and found.chat == chat.id
        data = await self._files.read(found) if is_own else None
        return "" if data is None else f"data:{found.media_type};base64,{b64encode(data).decode()}"

    async def _read_text(self, upload: Upload) -> str:
        if upload.media_type == PDF:
            pdf = await self._read_pdf(upload.data)
            return "\n".join(filter(None, (pdf.text, f"[{pdf.missing}]" if pdf.missing else "")))
        assert upload.media_type == CSV
        return decode_csv(upload.data) or ""

    def _check_own(self, owner: str, path: str) -> UploadPath:
        found = parse_path(path)
        if found.owner != owner_folder(owner):
            raise upload_missing()
        return found
