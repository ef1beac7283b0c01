"""A finding of `denizen doctor` about something that has to work."""

from __future__ import annotations

from enum import StrEnum

from denizen.domain.record import record


class Severity(StrEnum):
    """How much a diagnosis matters."""

    OK = "ok"
    WARNING = "warning"
    """It works, but not all of it."""
    ERROR = "error"
    """It does not work."""


@record
class Diagnosis:
    """`what` is so; `fix` says what to do, empty where nothing is wrong. `code` names what is wrong without a name or
    a word of anybody.
    """

    severity: Severity
    what: str
    fix: str = ""
    code: str = ""
