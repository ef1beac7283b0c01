"""Turns the files of a source into stored objects and a manifest. Blocks; `library` calls it in a thread.

Text is kept as it is, in UTF-8 without a byte order mark; HTML and PDF are kept as their text. Text keeps its name, and
what is converted takes a free one. `domain/source` decides which kinds of files are worth reading at all.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from pathlib import PurePosixPath
from threading import Event

from denizen.adapters.library.storage import ManifestEntry, ObjectStore
from denizen.domain.errors import LimitExceeded
from denizen.domain.record import record
from denizen.domain.source import (
    DOCUMENT_SUFFIXES,
    HTML_SUFFIXES,
    PDF_SUFFIXES,
    SourceReading,
    is_plain_path,
    make_visible,
)
from denizen.ports.source import NO_MORE, ReadingLimits, ReadingProgress, ReportProgress, SourceFile

MAX_TEXT_BYTES = 5 * 1024 * 1024
MAX_PDF_BYTES = 20 * 1024 * 1024
MAX_NAMED = 20
"""How many of the files that were left out are named."""
MAX_PATH_BYTES = 2000
"""The limit for the path of a file below its source. Systems take 4096 bytes with the folders above."""

_ENDINGS = {**dict.fromkeys(PDF_SUFFIXES, ".txt"), **dict.fromkeys(HTML_SUFFIXES, ".md")}
"""The ending that a converted file gets behind its name."""
_NO_NAME = "its name cannot be kept"
_SNIFFED_BYTES = 8192
_LFS_POINTER = re.compile(rb"version https://(?:git-lfs|hawser)\.github\.com/spec/.{1,80}\n(?:.*\n)*?oid ")
_LFS_POINTER_BYTES = 1024
"""A pointer is shorter, by its specification: a longer file only begins like one."""
_TOLD_EVERY = 50


@record
class ConvertedText:
    """The text of a file. Where it is empty, `lacks` says why, if that is known."""

    text: str
    lacks: str = ""


ConvertDocument = Callable[[bytes], ConvertedText]
"""Converts a file to text. Blocks. Raises Unavailable for a fault that is not the file's, so that it is tried again."""


@record
class DocumentConverters:
    """The converters for HTML and for PDF."""

    html: ConvertDocument
    pdf: ConvertDocument


@dataclass(slots=True)
class SourceIngestion:
    """Takes in the files of one source once. Setting `stop` ends it before the next file."""

    objects: ObjectStore
    convert: DocumentConverters
    now: datetime
    stop: Event
    limits: ReadingLimits = NO_MORE
    _items: dict[str, ManifestEntry] = field(default_factory=dict[str, ManifestEntry])
    _converted: list[ManifestEntry] = field(default_factory=list[ManifestEntry])
    """By the paths of the files that they were made of."""
    _skipped: int = 0
    _left_out: list[str] = field(default_factory=list[str])
    _bytes: int = 0

    def take(self, files: Iterator[SourceFile], report: ReportProgress) -> SourceReading | None:
        """Stores all files. Returns None when it was stopped. Raises LimitExceeded for a source that is too large."""
        for number, file in enumerate(files):
            if self.stop.is_set():
                return None
            self._take(file)
            # Each report crosses a thread and may be sent to a browser.
            if number % _TOLD_EVERY == 0:
                report(ReadingProgress("keeping files", number))
            if len(self._items) + len(self._converted) > self.limits.files or self._bytes > self.limits.size_bytes:
                raise _too_much(self.limits)
        items = self._plan()
        return SourceReading(
            manifest=self.objects.put_manifest(items, self.now),
            files=len(items),
            documents=sum(PurePosixPath(item.path).suffix.lower() in DOCUMENT_SUFFIXES for item in items),
            size_bytes=sum(item.size_bytes for item in items),
            skipped=self._skipped,
            left_out=tuple(self._left_out),
        )

    def _take(self, file: SourceFile) -> None:
        suffix = PurePosixPath(file.path).suffix.lower()
        most = MAX_PDF_BYTES if suffix in PDF_SUFFIXES else MAX_TEXT_BYTES
        if file.lacks:
            return self._leave_out(file.path, file.lacks)
        if not _fits(f"{file.path}{_ENDINGS.get(suffix, '')}"):
            return self._leave_out(file.path, _NO_NAME)
        if file.path in self._items:
            return self._leave_out(file.path, "another file has its place")
        if file.size_bytes > most:
            return self._leave_out(file.path, f"larger than {most // 1024**2} MB")
        data, lacks = self._read(file, suffix)
        if data is None:
            return self._leave_out(file.path, lacks or "no text in it")
        entry = ManifestEntry(file.path, self.objects.put(data, self.now), len(data))
        if suffix in _ENDINGS:
            self._converted.append(entry)
        else:
            self._items[file.path] = entry
        self._bytes += len(data)
        return None

    def _leave_out(self, path: str, why: str) -> None:
        self._skipped += 1
        if len(self._left_out) < MAX_NAMED:
            self._left_out.append(f"{make_visible(path)} ({why})")

    def _read(self, file: SourceFile, suffix: str) -> tuple[bytes | None, str]:
        """Returns what is stored; None for a file without text, with the reason if that is known."""
        try:
            given = file.read()
        except OSError as error:  # of the source's disk; that of the library is another matter
            return None, f"it cannot be read: {error.strerror or type(error).__name__}"
        if len(given) < _LFS_POINTER_BYTES and _LFS_POINTER.match(given):
            return None, "a Git LFS pointer, not the file"
        if suffix in PDF_SUFFIXES:
            return _in_bytes(self.convert.pdf(given))
        data = to_utf8(given, is_page=suffix in HTML_SUFFIXES)
        if data is None:
            return None, "its encoding is not known"
        if b"\0" in data[:_SNIFFED_BYTES]:
            return None, ""
        return _in_bytes(self.convert.html(data)) if suffix in HTML_SUFFIXES else (data, "")

    def _plan(self) -> list[ManifestEntry]:
        """Returns the entries of the manifest by path, without files in whose place a folder is needed."""
        paths = [*self._items, *(each.path for each in self._converted)]
        folders = {above.as_posix() for path in paths for above in PurePosixPath(path).parents}
        for path in sorted(folders.intersection(self._items)):
            self._leave_out(path, "a folder has its place")
            del self._items[path]
        for each in sorted(self._converted, key=lambda each: each.path):
            name = _find_name(each.path, folders, self._items)
            if _fits(name):
                self._items[name] = replace(each, path=name)
            else:
                self._leave_out(each.path, _NO_NAME)
        return [item for _, item in sorted(self._items.items())]


def _find_name(path: str, folders: Collection[str], taken: Collection[str]) -> str:
    """Returns the name for the text of a file: page.html.md, or page.html-2.md beside another page.html.md."""
    ending = _ENDINGS[PurePosixPath(path).suffix.lower()]
    names = (f"{path}{f'-{number}' if number > 1 else ''}{ending}" for number in count(1))
    return next(name for name in names if name not in folders and name not in taken)


def _in_bytes(converted: ConvertedText) -> tuple[bytes | None, str]:
    return converted.text.encode(errors="replace") or None, converted.lacks


def _fits(name: str) -> bool:
    """Returns whether a disk takes the name, with the ending that it gets and below a snapshot's folder."""
    return is_plain_path(name) and len(name.encode()) <= MAX_PATH_BYTES


def _too_much(limits: ReadingLimits) -> LimitExceeded:
    return LimitExceeded(
        "The source is too large.",
        code="source_too_large",
        why=f"It has more than {limits.files:,} files or {limits.size_bytes // 1024**2:,} MB of documents.",
        fix="Give a content path, and make several sources of it.",
    )


_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_DECLARED_WITHIN_BYTES = 1024
_DECLARABLE = ("cp", "iso8859", "koi8", "mac-", "shift_jis", "euc_", "gb", "big5", "tis-620")
"""The beginnings of codec names that a page may declare: no codec that is for something else than text."""
_MEANT = {
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "tis-620": "cp874",
}
"""The encodings that browsers use for pages that declare less."""
_LETTERS = re.compile(rb"[A-Za-z]+")
_HIGH = re.compile(rb"[\x80-\xff]+")
_FOREIGN = re.compile(rb"[\xc0-\xff]{3}")
"""Three accented letters in a row: no word of Western Europe has that, but most words in Cyrillic or Greek."""
_ACCENTED_ONE_OF = 4
"""At most one letter of so many is accented in Western European text."""


def to_utf8(data: bytes, *, is_page: bool) -> bytes | None:
    """Returns the text as UTF-8 without a byte order mark, which would stand before the first heading; None when its
    encoding is not known.

    UTF-8 with some damage is left as it is. With `is_page`, the declaration in an HTML page counts. Other text is taken
    for Western European if that is plausible: otherwise nobody would find a word with an umlaut.
    """
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # the first begins like UTF-16
        return data.decode("utf-32", errors="replace").encode()
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace").encode()
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        data.decode()
    except UnicodeDecodeError:
        declared = _find_declared(data) if is_page else ""
        if declared:
            return data.decode(declared, errors="replace").encode()
        return data if b"\0" in data or _is_damaged(data) else _from_western(data)
    return data


def _find_declared(data: bytes) -> str:
    found = _DECLARED.search(data[:_DECLARED_WITHIN_BYTES])
    try:
        name = codecs.lookup(found[1].decode("ascii")).name if found else ""
    except LookupError:
        return ""
    return _MEANT.get(name, name) if name.startswith(_DECLARABLE) else ""


def _is_damaged(data: bytes) -> bool:
    """Returns whether the data is UTF-8 except for some bytes."""
    text = data.decode(errors="replace")
    broken = text.count("\ufffd") - data.count("\ufffd".encode())
    return broken * 2 <= sum(not each.isascii() for each in text)


def _from_western(data: bytes) -> bytes | None:
    accented, plain = (sum(map(len, each.findall(data))) for each in (_HIGH, _LETTERS))
    if _FOREIGN.search(data) or accented * _ACCENTED_ONE_OF > accented + plain:
        return None
    try:
        return data.decode("cp1252").encode()
    except UnicodeDecodeError:
        return None
