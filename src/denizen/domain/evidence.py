"""Evidence: which places of documents a tool has read, as it says in the data of its result. Pure.

The tool that reads says so (`search_docs`, `read_knowledge`, the shell); what it prints says nothing about where it is
from. The record stays with the call and with the message of its result, so that later turns can cite what they still
remember.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from denizen.domain.citation import DocumentRef
from denizen.domain.json import Json
from denizen.domain.record import record

READ = "read"
"""In the data of a result, and in the meta of a message of results by call: the places that were read."""
MAX_PLACES = 300
"""The limit of one record; more files are told by their folders."""


def describe_reading(places: Iterable[DocumentRef]) -> dict[str, Json]:
    """Returns the record as the data of a result has it. A path that ends with `/` is a folder with all that is below
    it, `/` alone everything.
    """
    told = list(dict.fromkeys(places))
    if len(told) > MAX_PLACES:
        told = list(dict.fromkeys(DocumentRef(_above(each.path)) for each in told))
    rows: list[Json] = [
        [each.path, each.first_line, each.last_line] if each.first_line else [each.path] for each in told[:MAX_PLACES]
    ]
    return {READ: rows} if rows else {}


def read_places(data: Json) -> tuple[DocumentRef, ...]:
    """Returns the places of the record in the data of a result; none where there is no record."""
    rows = data.get(READ) if isinstance(data, Mapping) else None
    return places_from_json(rows)


def places_from_json(rows: Json) -> tuple[DocumentRef, ...]:
    found: list[DocumentRef] = []
    for row in rows if isinstance(rows, Sequence) and not isinstance(rows, str) else ():
        match row:
            case [str(path), int(first), int(last)]:
                found.append(DocumentRef(path, first, last))
            case [str(path)]:
                found.append(DocumentRef(path))
            case _:
                pass
    return tuple(found)


@record
class ReadResult:
    """The text of a result, and the places that it was read from."""

    text: str
    places: tuple[DocumentRef, ...] = ()

    def covers(self, path: str) -> bool:
        """Whether the document was read for it, by itself or with its folder."""
        return any(each.path == path or is_below(path, each.path) for each in self.places)


def is_below(path: str, folder: str) -> bool:
    return folder == "/" or (folder.endswith("/") and path.startswith(folder))


def _above(path: str) -> str:
    folder = path.rstrip("/").rpartition("/")[0]
    return f"{folder}/"


def readings_from_meta(value: Json) -> Mapping[str, Json] | None:
    """Returns the records of a stored message of results by call; None for one that was stored without any."""
    return cast("Mapping[str, Json]", value) if isinstance(value, Mapping) else None
