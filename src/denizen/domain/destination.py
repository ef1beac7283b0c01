"""Destinations that tools send to: addresses with a host, mail addresses, and places of platforms. Pure.

Programs read a malformed address in different ways, and each of them may reach another host. So a destination has a
name here only when all of it is plain, and nothing matches one that is not.
"""

from __future__ import annotations

import re
import unicodedata

_HOST = r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)+"
_URL = re.compile(
    rf"[a-z][a-z0-9+.-]*://(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<host>{_HOST}|[a-z0-9_-]+))(?::(?P<port>[0-9]{{1,5}}))?"
    r"(?:/[^\s\\\0-\x1f]*|[?#][^\s\\@\0-\x1f]*)?",
    re.IGNORECASE | re.ASCII,
)
"""Without a user name. Behind the slash after the host anything may stand, but for what some programs turn into a slash
or leave out.
"""
_MAIL = re.compile(rf"[a-z0-9._+~=&'-]+@{_HOST}", re.IGNORECASE | re.ASCII)
_BARE_HOST = re.compile(_HOST, re.IGNORECASE | re.ASCII)
_PLACE = re.compile(r"(?:[a-z]+:)?(?:[\w-]|[^\0-\xff\s])+")
"""An id or name, perhaps with its platform. A dot would make a host of it."""
_SEPARATOR = re.compile(r"[,;\s]+")
"""Between several destinations in one text."""
_ADDRESS_MARK = re.compile(r"[.:@]")
"""In a part of an address that may be an address of its own."""


def split_destinations(text: str) -> list[str]:
    """Returns the destinations in a text. An address may itself hold commas, as long as nothing behind them could be
    read as another address.
    """
    parts = _SEPARATOR.split(text)
    is_one = _URL.fullmatch(text) and not any(_ADDRESS_MARK.search(part) for part in parts[1:])
    return [text] if is_one else parts


def list_names(destination: str, platform: str) -> tuple[str, ...]:
    """Returns the names by which patterns may know the destination: its host, its mail address, or its place with and
    without the platform. None for what programs may read differently.
    """
    if (found := _URL.fullmatch(destination)) and int(found["port"] or 0) <= 65_535:
        return ((found["v6"] or found["host"]).lower(),)
    if _MAIL.fullmatch(destination) or _BARE_HOST.fullmatch(destination):
        return (destination,)
    # Normalised, characters that look like a slash or a colon are one.
    if _PLACE.fullmatch(unicodedata.normalize("NFKC", destination)):
        return (destination, f"{platform}:{destination}")
    return ()
