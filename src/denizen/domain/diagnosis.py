"""A finding of `denizen doctor` about something that has to work."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a diagnosis matters."""

    OK = "ok"
    WARNING = "warning"
    """It works, but not all of it."""
    ERROR = "error"
    """It does not work."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`what` is so; `fix` says what to do, empty where nothing is wrong."""

    severity: Severity
    what: str
    fix: str = ""
