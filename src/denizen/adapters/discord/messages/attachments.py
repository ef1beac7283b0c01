"""Reads the attachments of a question: pictures for models that see, and the text of text files and PDFs.

It never fails: a file that cannot be read is named in the question, with its URL and the reason. Limits are per
file.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

import anyio
import discord

from denizen.adapters.discord.client.errors import VENDOR_ERRORS
from denizen.adapters.discord.messages.wording import (
    find_replied_message,
    find_reply_reference,
    format_size,
    get_media_type,
    list_attachments,
    quote_message,
    quote_replied_message,
)
from denizen.domain.message import FilePart, ImagePart, Part, TextPart
from denizen.domain.record import record
from denizen.ports.pdf import MAX_PDF_BYTES, ReadPdf

MAX_IMAGES = 10
MAX_IMAGE_BYTES = 8 * 1024 * 1024
MAX_TEXT_BYTES = 256 * 1024
MAX_TEXTS_CHARS = 2 * MAX_TEXT_BYTES
"""The limit for all files of one question together."""

_DOWNLOAD_TIMEOUT_S = 20.0
_FETCH_TIMEOUT_S = 10.0
# Each file is held in memory until it is read.
_SIDE_BY_SIDE = 3
_PDF = "application/pdf"
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_TEXTS = frozenset(
    "application/" + each
    for each in (
        *("json", "ld+json", "x-ndjson", "xml", "yaml", "x-yaml", "toml", "sql", "graphql", "rtf", "x-tex"),
        *("javascript", "x-javascript", "typescript", "ecmascript", "x-sh", "x-httpd-php", "x-python"),
    )
)
_TEXT_ENDINGS = frozenset(
    "." + each
    for each in (
        *("txt", "text", "md", "markdown", "rst", "adoc", "org", "tex", "log", "csv", "tsv", "diff", "patch", "srt"),
        *("json", "jsonl", "ndjson", "json5", "yaml", "yml", "toml", "ini", "cfg", "conf", "env", "properties", "xml"),
        *("html", "htm", "css", "scss", "less", "svg", "js", "mjs", "cjs", "jsx", "ts", "tsx", "vue", "svelte", "py"),
        *("pyi", "rb", "php", "pl", "lua", "r", "jl", "go", "rs", "c", "h", "cc", "cpp", "hpp", "cs", "java", "kt"),
        *("kts", "scala", "swift", "m", "dart", "ex", "exs", "erl", "hs", "ml", "clj", "lisp", "el", "vim", "sql"),
        *("sh", "bash", "zsh", "fish", "ps1", "bat", "cmd", "dockerfile", "tf", "nix", "gradle", "cmake", "proto"),
    )
)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
# Control characters that do not occur in text; escape does, in colored logs.
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\b\x1b")


@record
class _AttachmentContent:
    """The content of one attachment. `note` says what could not be read, and why."""

    part: Part | None = None
    note: str = ""


async def load_parts(
    message: discord.Message, me: discord.ClientUser, question: str, read_pdf: ReadPdf
) -> tuple[Part, ...]:
    """Returns the question as text, below a line that quotes the message it replies to, and the files of both messages.

    Pictures (png, jpeg, gif, webp; ten of at most 8 MB) go by URL, text files of at most 256 KB and PDFs as text,
    other files by name only.
    """
    quoted, original = quote_replied_message(message, me), find_replied_message(message)
    if original is None and (original := await _fetch_original(message)) is not None:
        quoted = quote_message(original, me)
    files = {each.id: each for each in list_attachments(message)}
    if original is not None:
        files |= {each.id: each for each in list_attachments(original)}
    read = _within_bounds(await _read_all(list(files.values()), read_pdf))
    notes = [each.note for each in read if each.note]
    words = "\n".join(filter(None, (quoted, question, *notes)))
    return (*((TextPart(words),) if words else ()), *(each.part for each in read if each.part is not None))


def decode_text(data: bytes) -> str | None:
    """Decodes by byte-order mark, as UTF-8, or as Latin-1. None for binary data."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data.decode(name, errors="replace")
    sample = data[:8192]
    if b"\0" in data or sum(byte in _CONTROLS for byte in sample) > len(sample) // 50:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


async def _fetch_original(message: discord.Message) -> discord.Message | None:
    """Fetches the message that this one replies to, in one try. None when it is gone or does not arrive in time."""
    reference = find_reply_reference(message)
    if reference is None or reference.message_id is None or reference.resolved is not None:
        return None
    with anyio.move_on_after(_FETCH_TIMEOUT_S):
        try:
            return await message.channel.fetch_message(reference.message_id)
        except VENDOR_ERRORS:
            return None
    return None


def _within_bounds(read: Sequence[_AttachmentContent]) -> list[_AttachmentContent]:
    """Keeps the texts of the first files up to the limit for all together, and notes the others."""
    bounded: list[_AttachmentContent] = []
    room = MAX_TEXTS_CHARS
    for each in read:
        part = each.part
        if isinstance(part, FilePart) and len(part.text) > room:
            note = f"[{part.name} is not shown: together the files are too long]"
            bounded.append(_AttachmentContent(replace(part, text=""), "\n".join(filter(None, (each.note, note)))))
            continue
        if isinstance(part, FilePart):
            room -= len(part.text)
        bounded.append(each)
    return bounded


async def _read_all(files: Sequence[discord.Attachment], read_pdf: ReadPdf) -> list[_AttachmentContent]:
    """Reads the files a few at a time, and returns them in order."""
    read: dict[int, _AttachmentContent] = {}
    limiter = anyio.CapacityLimiter(_SIDE_BY_SIDE)
    images = [index for index, each in enumerate(files) if get_media_type(each) in _IMAGES]

    async def read_one(index: int, attachment: discord.Attachment) -> None:
        async with limiter:
            read[index] = await _read_file(attachment, read_pdf)

    async with anyio.create_task_group() as group:
        for index, attachment in enumerate(files):
            if index in images:
                read[index] = _read_image(attachment, is_too_many=index in images[MAX_IMAGES:])
            else:
                group.start_soon(read_one, index, attachment)
    return [read[index] for index in range(len(files))]


def _read_image(attachment: discord.Attachment, *, is_too_many: bool) -> _AttachmentContent:
    if is_too_many:
        return _AttachmentContent(note=_note(attachment, f"only {MAX_IMAGES} pictures are looked at"))
    if attachment.size > MAX_IMAGE_BYTES:
        return _AttachmentContent(note=_note(attachment, "the picture is too large to be looked at"))
    return _AttachmentContent(ImagePart(attachment.url, get_media_type(attachment)))


async def _read_file(attachment: discord.Attachment, read_pdf: ReadPdf) -> _AttachmentContent:
    media_type = get_media_type(attachment)
    if attachment.is_voice_message():
        return _AttachmentContent(_file(attachment))
    is_pdf = media_type == _PDF or attachment.filename.lower().endswith(".pdf")
    if not is_pdf and not _is_text(attachment, media_type):
        return _AttachmentContent(_file(attachment), _note(attachment))
    if attachment.size > (MAX_PDF_BYTES if is_pdf else MAX_TEXT_BYTES):
        return _AttachmentContent(_file(attachment), _note(attachment, "too large to be read"))
    data = await _download(attachment)
    if data is None:
        return _AttachmentContent(_file(attachment), _note(attachment, "it could not be downloaded"))
    if is_pdf:
        pdf = await read_pdf(data)
        return _AttachmentContent(_file(attachment, pdf.text), _note(attachment, pdf.missing) if pdf.missing else "")
    text = decode_text(data)
    if text is None:
        return _AttachmentContent(_file(attachment), _note(attachment, "it is no text"))
    return _AttachmentContent(_file(attachment, text))


async def _download(attachment: discord.Attachment) -> bytes | None:
    with anyio.move_on_after(_DOWNLOAD_TIMEOUT_S):
        try:
            return await attachment.read()
        except VENDOR_ERRORS:
            return None
    return None


def _is_text(attachment: discord.Attachment, media_type: str) -> bool:
    if media_type.startswith("text/") or media_type.endswith(("+json", "+xml", "+yaml")) or media_type in _TEXTS:
        return True
    path = PurePath(attachment.filename.lower())
    return path.suffix in _TEXT_ENDINGS or f".{path.name.lstrip('.')}" in _TEXT_ENDINGS


def _file(attachment: discord.Attachment, text: str = "") -> FilePart:
    return FilePart(attachment.filename, get_media_type(attachment), attachment.size, text, attachment.url)


def _note(attachment: discord.Attachment, why: str = "") -> str:
    """Returns the name, type, size and URL of a file, and why it was not read."""
    about = f"{attachment.filename} ({get_media_type(attachment)}, {format_size(attachment.size)}) {attachment.url}"
    return f"[attached: {about} - {why}]" if why else f"[attached: {about}]"
