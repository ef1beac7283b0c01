"""Data URIs and result markers: taken out of a text, so that no model reads them and no person sees them.

What becomes of the payloads is the caller's affair: the end of a turn makes attachments of them, what people paste is
stored and sent to a model as a note. Linear in the text's length.
"""

from __future__ import annotations

import binascii
import html
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import NoReturn, cast
from urllib.parse import unquote, unquote_to_bytes

from denizen.domain.json import JsonObject
from denizen.domain.markup import Span, replace_spans
from denizen.domain.record import record

MAX_BYTES = 8 * 1024 * 1024

# A colon is no part of a parameter, so that a run of beginnings without an end is read once only.
_HEAD = (
    r"data:(?:(?:application|audio|chemical|font|image|message|model|multipart|text|video)/[\w.+-]++"
    r"|(?=;[^:,]{0,80}base64,))(?:;[\w.+-]++(?:=[^:;,\s\"'()<>]*+)?+)*+,"
)
_LINKED = rf"""
    {_HEAD}(?:
        (?<=;base64,)[\w+/=%\s-]*+(?=[)>"'])
      | \s*+<svg(?:(?!</svg>|data:).)*+</svg>
      | (?:[^\s()<>]++|\([^\s()]*+\))*+
    )
"""
_URI = re.compile(
    rf"""
      !?\[(?P<label>[^\[\]\n]*+)\]\([ ]?<?(?P<linked>{_LINKED})>?(?:\s*+(?:"[^"\n]*+"|'[^'\n]*+'))?\s?\)?
    | <img\b(?P<attributes>(?:[^<>"']++|"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))*+)(?:>|\Z)
    | (?<=")(?P<double>{_HEAD}[^"\n]++)(?=")
    | (?<=')(?P<single>{_HEAD}[^'\n]++)(?=')
    | (?<!\w)(?P<bare>{_HEAD}[^\s<>"'`()\[\]{{}}|]*(?<![.,;:!?*~]))
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_PARTS = re.compile(rf"(?P<head>{_HEAD})(?P<payload>.*)", re.DOTALL | re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""(?<![\w:-])([\w:-]++)\s*+=\s*+(?:"([^"]*+)"?|'([^']*+)'?|([^\s"'>]++))""")
_FRAME = "\U0001f5bc"
_MARKER = re.compile(rf"{_FRAME}(?:\ufe0f?[A-Z][A-Z0-9_]*+{_FRAME})++\ufe0f?[ \t]*+(?:\n[ \t]*+(?=\{{))?")
_MARKER_BEGUN = re.compile(rf"{_FRAME}(?:\ufe0f?[A-Z][A-Z0-9_]*+{_FRAME})*+\ufe0f?(?:[A-Z][A-Z0-9_]*+)?")
_ENDINGS = {"jpeg": "jpg", "svg+xml": "svg", "plain": "txt", "mpeg": "mp3", "octet-stream": "bin", "x-icon": "ico"}
_SHOWN = frozenset({"image", "audio", "video"})
_SAYS_NOTHING = re.compile(
    r"(?:(?:an?|the|your|alt|base64|data|embedded|generated|inline)\W+)*"
    r"(?:alt|data|figure|graphic|image|img|photo|pic|picture|text|uri|url)?\W*\d*(?:\.\w{2,5})?",
    re.IGNORECASE,
)


@record
class DataUri:
    """A payload with its media type, without parameters, and a file name that is unique in its text."""

    media_type: str
    data: bytes
    name: str


@record
class ExtractedUris:
    """A text and what was taken out. `dropped` counts what was too large, `malformed` what could not be decoded."""

    text: str
    uris: tuple[DataUri, ...] = ()
    dropped: int = 0
    malformed: int = 0


@record
class StrippedText:
    """A text without result markers, and the objects that stood behind them, in order."""

    text: str
    results: tuple[JsonObject, ...] = ()


def extract_data_uris(text: str, *, max_bytes: int = MAX_BYTES) -> ExtractedUris:
    """Takes out data URIs: markdown images and links, `<img>`, in quotes, and bare ones, also within code.

    Of an image or a link its own words stay, unless they say nothing (`image`). What is malformed or larger than
    `max_bytes` is taken out as well.
    """
    edits: list[tuple[Span, str]] = []
    uris: list[DataUri] = []
    names: dict[str, int] = {}
    dropped = malformed = 0
    for span, uri, words in _find_uris(text):
        edits.append((span, words))
        media_type, data = _decode(uri, max_bytes)
        if data is None:
            dropped += 1
        elif not data:
            malformed += 1
        else:
            uris.append(DataUri(media_type, data, _choose_name(words, media_type, names)))
    return ExtractedUris(replace_spans(text, edits), tuple(uris), dropped, malformed)


def describe_data_uris(text: str) -> str:
    """Returns the text with a short note in place of each data URI: its words, media type and size."""
    edits: list[tuple[Span, str]] = []
    for span, uri, words in _find_uris(text):
        media_type, data = _decode(uri, MAX_BYTES)
        size = "too large" if data is None else f"{len(data)} bytes" if data else "unreadable"
        edits.append((span, f"{words} [{media_type}, {size}]".lstrip()))
    return replace_spans(text, edits)


def strip_markers(text: str) -> StrippedText:
    """Takes out result markers, `🖼️NAME🖼️` and the JSON object behind each.

    Behind a marker whose object cannot be read, the rest of the line goes too.
    """
    results: list[JsonObject] = []
    edits: list[tuple[Span, str]] = []
    place = 0
    while marker := _MARKER.search(text, place):
        place = marker.end()
        if text.startswith("{", place):
            value, place = _read_object(text, place)
            results += [value] if value is not None else []
        edits.append(((marker.start(), place), ""))
    return StrippedText(replace_spans(text, edits), tuple(results))


class MarkerFilter:
    """Takes result markers out of one text that comes in pieces. `feed` them; then `finish`."""

    def __init__(self) -> None:
        self._held = ""
        self._ending = ""
        """The spaces at the end of what was returned."""

    def feed(self, piece: str) -> str:
        """Returns the text that may be shown now: what may become a marker, or stands behind one, is held back."""
        self._held += piece
        shown = ""
        while (start := self._held.find(_FRAME)) >= 0:
            shown += self._release(start)
            end = self._find_end()
            if end is None:
                return shown
            if end:
                behind = self._held[end:]
                text = behind.lstrip()
                breaks = "" if "\n" in self._ending else "\n" * behind[: len(behind) - len(text)].count("\n")
                gap = breaks or (" " if not self._ending and (text != behind or text[0].isalnum()) else "")
                self._held = gap + text
            else:
                shown += self._release(1)
        return shown + self._release(len(self._held))

    def finish(self) -> str:
        """Returns the text that was held back, without a marker."""
        held, self._held = strip_markers(self._held).text, ""
        return held

    def _release(self, end: int) -> str:
        text, self._held = self._held[:end], self._held[end:]
        seen = self._ending + text
        self._ending = seen[len(seen.rstrip()) :]
        return text

    def _find_end(self) -> int | None:
        """Returns where the marker ends with which the held text begins: 0 for none, None while that is open."""
        marker = _MARKER.match(self._held)
        if _MARKER_BEGUN.fullmatch(self._held):
            return None
        if marker is None:
            return 0
        end = marker.end()
        if self._held.startswith("{", end):
            value, end = _read_object(self._held, end)
            if value is None:  # unfinished, or no object: the whole text will tell
                return None
        return end if self._held[end:].strip() else None


def _find_uris(text: str) -> Iterator[tuple[Span, str, str]]:
    """Where each stands, with what holds it; the URI itself; and the words that it has, unless they say nothing."""
    if "data:" not in text.lower():
        return
    for match in _URI.finditer(text):
        kind = match.lastgroup or ""
        if kind == "attributes":
            values = {each[1].lower(): each[2] or each[3] or each[4] or "" for each in _ATTRIBUTE.finditer(match[kind])}
            source = values.get("src", "").strip()
            if _PARTS.match(source):
                yield match.span(), source, _choose_words(html.unescape(values.get("alt", "")).strip())
        else:
            yield match.span(), match[kind], _choose_words((match["label"] or "").strip())


def _choose_words(label: str) -> str:
    return "" if _SAYS_NOTHING.fullmatch(label) or "data:" in label.lower() else label


def _decode(uri: str, max_bytes: int) -> tuple[str, bytes | None]:
    """The media type and the bytes: none of them when they are malformed or there are none, None for too many."""
    parts = _PARTS.match(uri)
    if parts is None:
        return "", b""
    head, payload = parts["head"][5:-1].lower(), parts["payload"]
    media_type = head.split(";", 1)[0] or "text/plain"
    is_base64 = head.endswith(";base64")
    # No byte takes more than three characters, line breaks aside: this need not be decoded to be found too large.
    if len(payload) > 4 * max_bytes + 8:
        return media_type, None
    try:
        if is_base64:
            # Either alphabet is taken, with or without padding, line breaks and percent signs.
            plain = "".join((unquote(payload) if "%" in payload else payload).split()).rstrip("=")
            plain = plain.replace("-", "+").replace("_", "/")
            data = binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True)
        else:
            data = unquote_to_bytes(html.unescape(payload))
    except ValueError:
        return media_type, b""
    return media_type, data if len(data) <= max_bytes else None


def _choose_name(words: str, media_type: str, taken: dict[str, int]) -> str:
    """Letters of ASCII only: a platform would change others, and a card could no longer refer to the file."""
    kind, _, form = media_type.partition("/")
    ending = _ENDINGS.get(form, re.sub(r"[^a-z0-9]", "", form)[:8] or "bin")
    plain = unicodedata.normalize("NFKD", words.lower().removesuffix(f".{ending}")).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60] or (kind if kind in _SHOWN else "file")
    name = f"{stem}.{ending}"
    while name in taken:
        taken[stem] = taken.get(stem, 1) + 1
        name = f"{stem}-{taken[stem]}.{ending}"
    taken[name] = 1
    return name


def _read_object(text: str, start: int) -> tuple[JsonObject | None, int]:
    """The JSON object that begins here, and its end; without one the end of the line."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        end = text.find("\n", start)
        return None, end if end >= 0 else len(text)
    return cast("JsonObject", value), end


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER: json.JSONDecoder = json.JSONDecoder(parse_constant=_refuse_constant)
