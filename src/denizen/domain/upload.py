"""Files that people attach to their chats: where they are stored, and how messages name them. Pure.

The path of an upload is `<owner>/<chat>/<name>-<8 hex>.<ending>`: the hex digits are the beginning of the hash of its
content, so the same file twice is stored once. No part of a path is written by people as it is.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import re
import unicodedata

from denizen.domain.chat import ChatId, is_chat_id
from denizen.domain.errors import InvalidInput, NotFound
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

SNIFFED_CHARS = 64_000
SNIFFED_LINES = 20
_DELIMITERS = ",;\t|"
_IMAGE_MARKS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_BYTE_ORDERS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1f]")

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


def find_media_type(data: bytes, name: str) -> str:
    """Returns the type under which a file is stored, from its content; its name only tells a CSV file of one column.
    Raises InvalidInput for a file that is no picture, PDF or CSV file.
    """
    if data.startswith(_IMAGE_MARKS) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
        return WEBP
    if data.startswith(b"%PDF-"):
        return PDF
    text = decode_csv(data)
    if text is not None and not text.lstrip().startswith("<") and (_has_columns(text) or name.lower().endswith(".csv")):
        return CSV
    raise InvalidInput(
        "Only pictures (PNG, JPEG, GIF, WebP), PDF and CSV files are taken.",
        code="upload_type",
        why="its content is none of these, whatever its name says",
        fix="Save it as one of these.",
    )


def decode_csv(data: bytes) -> str | None:
    """Returns the text of a CSV file, None for binary data. It is UTF-8, UTF-16 with a mark, or Latin-1."""
    for mark, encoding in _BYTE_ORDERS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if _CONTROLS.search(data):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _has_columns(text: str) -> bool:
    """Tells whether the first lines have the same number of fields, two or more."""
    lines = [line for line in text[:SNIFFED_CHARS].splitlines() if line.strip()][:SNIFFED_LINES]
    if len(text) > SNIFFED_CHARS and len(lines) > 1:
        del lines[-1]
    for delimiter in _DELIMITERS:
        try:
            counts = {len(row) for row in csv.reader(lines, delimiter=delimiter)}
        except csv.Error:
            continue
        if len(counts) == 1 and counts.pop() > 1:
            return True
    return False


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
