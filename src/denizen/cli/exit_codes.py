"""The one table from error families to exit codes. The numbers are a fixed interface."""

from __future__ import annotations

from denizen.domain import errors

DONE = 0
BUG = 1
INVALID = 2
NOT_ALLOWED = 3
UNAVAILABLE = 4
EXHAUSTED = 5
INTERRUPTED = 130

EXIT_CODES: dict[str, int] = {
    errors.InvalidInput.__name__: INVALID,
    errors.NotFound.__name__: INVALID,
    errors.Conflict.__name__: INVALID,
    errors.NeedsAttention.__name__: INVALID,
    errors.NotAllowed.__name__: NOT_ALLOWED,
    errors.NeedsApproval.__name__: NOT_ALLOWED,
    errors.Unavailable.__name__: UNAVAILABLE,
    errors.LimitExceeded.__name__: EXHAUSTED,
}


def exit_code(family: str) -> int:
    """Returns the exit code of an error family; an unknown one counts as a bug."""
    return EXIT_CODES.get(family, BUG)
