"""From the bytes of an answer to text."""

from __future__ import annotations

import codecs
import re

_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_WITHOUT_TEXT = ("image/", "audio/", "video/", "font/")
_NOT_FOR_THE_WEB = frozenset({"idna", "punycode", "unicode-escape", "unicode_escape", "raw-unicode-escape", "utf-7"})
_SNIFFED_BYTES = 1024


def parse_media_type(content_type: str) -> str:
    """`text/html` of `Text/HTML; charset=utf-8`; empty when there is none."""
    return content_type.partition(";")[0].strip().lower()


def has_text(media_type: str) -> bool:
    """False for pictures, sound and the like, whose bytes are not worth reading."""
    return media_type.endswith("+xml") or not media_type.startswith(_WITHOUT_TEXT)


def decode_text(data: bytes, content_type: str) -> str:
    """By byte-order mark, the header's charset, the page's own word, or UTF-8, and else as Western European.

    Bytes that do not fit become U+FFFD; data that is no text (NUL bytes without a 16-bit charset) is empty.
    """
    named = _find_header_charset(content_type) or _find_byte_order_mark(data) or _find_declared_charset(data)
    if not named and b"\0" in data[:_SNIFFED_BYTES]:
        return ""
    if named:
        return data.decode(named, errors="replace")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _find_byte_order_mark(data: bytes) -> str:
    return next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "")


def _find_header_charset(content_type: str) -> str:
    found = re.search(r"charset\s*=\s*[\"']?\s*([\w:.-]{1,40})", content_type, re.IGNORECASE)
    return _find_codec(found[1]) if found else ""


def _find_declared_charset(data: bytes) -> str:
    found = _META_CHARSET.search(data[:_SNIFFED_BYTES])
    return _find_codec(found[1].decode("ascii")) if found else ""


def _find_codec(charset: str) -> str:
    """The codec's name; empty for a charset that Python lacks, or whose codec is not for text of the web."""
    try:
        name = codecs.lookup(charset).name
        b"a".decode(name, errors="replace")
    except (LookupError, UnicodeError):
        return ""
    return "" if name in _NOT_FOR_THE_WEB else name
