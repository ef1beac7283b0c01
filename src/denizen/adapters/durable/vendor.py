"""Three manners that DBOS has to learn: to store JSON, to read no pickle, and to be quiet.

Imported by `log`.
"""

from __future__ import annotations

import logging

from dbos import (
    Serializer,
    _serialization,  # pyright: ignore[reportPrivateUsage]
)

from denizen.adapters.durable.database import CLOSED
from denizen.adapters.durable.outcome import decode, decode_error, encode, encode_error
from denizen.domain.errors import DenizenError

_ERROR_MARK = "!"
"""Begins the text of an error; no JSON text begins so. DBOS reads values and errors with one method."""


_UNREADABLE = (ValueError, KeyError, TypeError)


class Unrecorded(Exception):  # noqa: N818 # DBOS and `log` see it, nobody else
    """Raised while a fault of the database is handled, which is its context.

    When the outcome of a step or a run cannot be written, DBOS takes that fault for the outcome and writes it instead,
    which may well succeed: a full disk has room for a short text. The fault is no outcome, so it has no text.
    """


class JsonText(Serializer):
    """Stores everything as JSON: never pickle, which would run code from the database."""

    def name(self) -> str:
        """Stored with each value; another form of storing gets another name."""
        return "denizen_json_1"

    def serialize(self, data: object) -> str:
        if isinstance(data, DenizenError):
            return _ERROR_MARK + encode_error(data)
        if isinstance(data, _UNREADABLE):
            # What DBOS read from its own tables makes no sense; it has logged that.
            return _ERROR_MARK + encode_error(DenizenError("Something inside Denizen went wrong.", code="internal"))
        if isinstance(data, BaseException):
            raise Unrecorded
        return encode(data)

    def deserialize(self, serialized_data: str) -> object:
        if serialized_data.startswith(_ERROR_MARK):
            return decode_error(serialized_data[len(_ERROR_MARK) :])
        return decode(serialized_data)


class _Noise(logging.Filter):
    """Drops what DBOS reports as trouble and is none: failures that are recorded and raised, and shutting down."""

    _EXPECTED = ("Asyncio task cancelled for workflow or step", "DBOS failed to launch", CLOSED)

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        message = record.getMessage()
        return not isinstance(error, DenizenError) and not any(text in message for text in self._EXPECTED)


_noise = _Noise()


class _NoPickle(Serializer):
    """Stands where DBOS keeps its pickle reader, which is asked for rows that say they are pickles: whoever can write
    to the database must not be able to run code with one.
    """

    def name(self) -> str:
        return "py_pickle"

    def serialize(self, data: object) -> str:
        raise TypeError("nothing is stored as pickle")

    def deserialize(self, serialized_data: str) -> object:
        raise TypeError("a pickle in the log is not read")


def forbid_pickle() -> None:
    """For the whole process."""
    _serialization.DBOSDefaultSerializer = _NoPickle()


def quieten() -> None:
    """Sends DBOS's warnings to the application's handlers. Without a handler it would add one that writes to the
    console.
    """
    logger = logging.getLogger("dbos")
    logger.setLevel(logging.WARNING)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.addFilter(_noise)
