"""Google Drive. https://developers.google.com/workspace/drive/api/reference/rest/v3"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from denizen.adapters.google.client import DRIVE, UPLOAD, GoogleClient, GoogleRequest, Row, get_text, list_rows
from denizen.domain.errors import InvalidInput
from denizen.ports.google import DriveFile

_FIELDS = "id,name,mimeType,modifiedTime,size,webViewLink"
_EXPORTS = {
    "application/vnd.google-apps.document": "text/plain",
    "application/vnd.google-apps.presentation": "text/plain",
    "application/vnd.google-apps.spreadsheet": "text/csv",
}
"""The form in which the text of Google's own documents is had."""
_TEXTS = ("text/", "application/json", "application/xml", "application/yaml", "application/x-yaml")
_KEY = "denizenKey"
_SHARED = {"supportsAllDrives": "true"}


class RestGoogleDrive:
    """Implements `ports.google.GoogleDrive`."""

    def __init__(self, client: GoogleClient) -> None:
        self._client = client

    async def find(self, words: str = "", *, folder: str = "", limit: int = 20) -> Sequence[DriveFile]:
        terms = ["trashed = false"]
        if words.strip():
            word = _literal(words.strip())
            terms.append(f"(name contains {word} or fullText contains {word})")
        if folder.strip():
            terms.append(f"{_literal(folder.strip())} in parents")
        # A search in texts is in the order of its own, and refuses another one.
        order = {} if words.strip() else {"orderBy": "modifiedTime desc"}
        return await self._find(" and ".join(terms), limit, order)

    async def read(self, file: str) -> tuple[DriveFile, str]:
        path = f"/files/{quote(file, safe='')}"
        asked = GoogleRequest(api=DRIVE, path=path, doing="read a file", params=_SHARED | {"fields": _FIELDS})
        found = _read_file(await self._client.ask(asked))
        if form := _EXPORTS.get(found.media_type):
            request = GoogleRequest(api=DRIVE, path=f"{path}/export", doing="read a file", params={"mimeType": form})
        elif found.media_type.startswith(_TEXTS):
            request = GoogleRequest(api=DRIVE, path=path, doing="read a file", params=_SHARED | {"alt": "media"})
        else:
            raise InvalidInput(
                f"{found.name} has no text that can be read: it is of the type {found.media_type or 'unknown'}.",
                code="drive_no_text",
                fix=f"Open it in a browser: {found.url}" if found.url else "",
            )
        return found, (await self._client.read(request)).decode("utf-8-sig", "replace")

    async def upload(self, name: str, data: bytes, *, key: str, media_type: str, folder: str = "") -> DriveFile:
        if key and (made := await self._find(_made_with(key), 1)):
            return made[0]
        about: dict[str, Any] = {"name": name, "mimeType": media_type, "appProperties": {_KEY: key} if key else {}}
        if folder.strip():
            about["parents"] = [folder.strip()]
        mark = f"part-{secrets.token_hex(16)}"
        body = b"".join(
            [
                f"--{mark}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode(),
                json.dumps(about).encode(),
                f"\r\n--{mark}\r\nContent-Type: {media_type}\r\n\r\n".encode(),
                data,
                f"\r\n--{mark}--\r\n".encode(),
            ]
        )
        asked = GoogleRequest(
            method="POST",
            api=UPLOAD,
            path="/files",
            doing="upload a file",
            params=_SHARED | {"uploadType": "multipart", "fields": _FIELDS},
            content=(body, f"multipart/related; boundary={mark}"),
        )
        return _read_file(await self._client.ask(asked))

    async def find_address(self) -> str:
        """Returns the address of the account."""
        asked = GoogleRequest(api=DRIVE, path="/about", doing="look at Drive", params={"fields": "user(emailAddress)"})
        return get_text(await self._client.ask(asked), "user", "emailAddress")

    async def _find(self, query: str, limit: int, order: dict[str, str] | None = None) -> list[DriveFile]:
        params = _SHARED | {
            "q": query,
            "pageSize": str(limit),
            "fields": f"files({_FIELDS})",
            "includeItemsFromAllDrives": "true",
            **(order or {}),
        }
        found = await self._client.ask(GoogleRequest(api=DRIVE, path="/files", doing="find files", params=params))
        return [_read_file(row) for row in list_rows(found, "files")]


def _made_with(key: str) -> str:
    return f"appProperties has {{ key='{_KEY}' and value={_literal(key)} }}"


def _literal(text: str) -> str:
    """Returns the text as the language of the search writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _read_file(row: Row) -> DriveFile:
    size = get_text(row, "size")
    return DriveFile(
        id=get_text(row, "id"),
        name=get_text(row, "name"),
        media_type=get_text(row, "mimeType"),
        changed_at=get_text(row, "modifiedTime"),
        size_bytes=int(size) if size.isdecimal() else 0,
        url=get_text(row, "webViewLink"),
    )
