"""Files that people attach to their chats: where they are stored, and how messages name them. Pure.

The path of an upload is `<owner>/<chat>/<name>-<8 hex>.<ending>`: the hex digits are the beginning of the hash of its
content, so the same file twice is stored once. No part of a path is written by people as it is.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from denizen.domain.chat import ChatId, is_chat_id
from denizen.domain.errors import NotFound
from denizen.domain.record import record

MAX_UPLOAD_BYTES = 8_000_000
MAX_NAME_CHARS = 60
MAX_IMAGE_EDGE = 2048
WEBP_QUALITY = 80
SCHEME = "upload:"
"""An address with this scheme stands in a message for a file that was uploaded to its chat."""

WEBP, PDF, CSV = "image/webp", "application/pdf", "text/csv"
ENDINGS = {WEBP: "webp", PDF: "pdf", CSV: "csv"}
MEDIA_TYPES = {ending: media_type for media_type, ending in ENDINGS.items()}

_OUTSIDE = re.compile(r"[^A-Za-z0-9_-]+")
_FILE = re.compile(rf"([A-Za-z0-9_-]{{1,{MAX_NAME_CHARS}}})-([0-9a-f]{{8}})\.({'|'.join(ENDINGS.values())})")
_OWNER = re.compile(r"[A-Za-z0-9_-]{1,40}-[0-9a-f]{16}")


@record
class UploadPath:
    """The three segments of a path."""

    owner: str
    chat: ChatId
    file: str

    @property
    def text(self) -> str:
        return f"{self.owner}/{self.chat}/{self.file}"

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES[self.file.rpartition(".")[2]]


def owner_folder(owner: str) -> str:
    """Returns the folder of a principal key: readable, and another one for each key."""
    digest = hashlib.sha256(owner.encode()).hexdigest()[:16]
    return f"{_plain(owner, 40) or 'user'}-{digest}"


def choose_path(owner: str, chat: ChatId, name: str, media_type: str, data: bytes) -> UploadPath:
    """Returns the path of a file with that content, whatever its name holds."""
    stem = _plain(name.replace("\\", "/").rpartition("/")[2].rpartition(".")[0] or name, MAX_NAME_CHARS) or "file"
    digest = hashlib.sha256(data).hexdigest()[:8]
    return UploadPath(owner_folder(owner), chat, f"{stem}-{digest}.{ENDINGS[media_type]}")


def parse_path(text: str) -> UploadPath:
    """Returns the path. Raises NotFound for a text that is none, such as one that leads elsewhere."""
    owner, _, rest = text.partition("/")
    chat, _, file = rest.partition("/")
    if _OWNER.fullmatch(owner) is None or not is_chat_id(chat) or _FILE.fullmatch(file) is None:
        raise upload_missing()
    return UploadPath(owner, ChatId(chat), file)


def upload_missing() -> NotFound:
    return NotFound("You have no such upload.", code="upload_not_found")


def find_upload_path(url: str) -> str | None:
    """Returns the path in the address of an upload; None for another address."""
    return url.removeprefix(SCHEME) if url.startswith(SCHEME) else None


def shown_name(path: str) -> str:
    """Returns the name of a file without the digits that its content gave it."""
    file = path.rpartition("/")[2]
    found = _FILE.fullmatch(file)
    return f"{found[1]}.{found[3]}" if found else file


def _plain(text: str, limit: int) -> str:
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return _OUTSIDE.sub("-", ascii_text).strip("-_")[:limit].strip("-_")
