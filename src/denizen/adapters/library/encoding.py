"""From the bytes of a file to UTF-8, where it is known how they were written. Called by `intake`."""

from __future__ import annotations

import codecs
import re

_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_DECLARED_WITHIN_BYTES = 1024
_DECLARABLE = ("cp", "iso8859", "koi8", "mac-", "shift_jis", "euc_", "gb", "big5", "tis-620")
"""How the codecs begin that a page may declare: none of those that are for something else than text."""
_MEANT = {
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "tis-620": "cp874",
}
"""What pages are written in that declare less, as browsers have it."""
_LETTERS = re.compile(rb"[A-Za-z]+")
_HIGH = re.compile(rb"[\x80-\xff]+")
_FOREIGN = re.compile(rb"[\xc0-\xff]{3}")
"""Three accented letters in a row: no word of Western Europe, but most words in Cyrillic or Greek."""
_ACCENTED_ONE_OF = 4
"""Among the letters, at most."""


def to_utf8(data: bytes, *, is_page: bool) -> bytes | None:
    """None when the encoding is not known. UTF-8 with some damage is left as it is; with `is_page` the word of an HTML
    page counts. What is left is taken for Western European if it can be: nobody would find a word with an umlaut.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace").encode()
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
    """Whether it is UTF-8 but for some bytes."""
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
