"""Discord's errors: HTTP status, JSON error code, message, and for bad bodies the nested `errors`.

The actions raise them for people and bots alike; REST turns them into answers, a test sees them as exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound


class RefusedError(DenizenError):
    """Discord refuses. `status` is the HTTP status and `number` Discord's own error code."""

    def __init__(self, status: int, number: int, message: str, errors: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{message} ({status}/{number})", code=f"discord_{number}", why=message)
        self.status = status
        self.number = number
        self.errors = errors
        self.text = message

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body of the answer."""
        body: dict[str, Any] = {"message": self.text, "code": self.number}
        return body | {"errors": self.errors} if self.errors else body


class ForbiddenError(RefusedError, NotAllowed):
    """Status 401 or 403: the caller may not."""


class UnknownError(RefusedError, NotFound):
    """Status 404: the thing does not exist, or the caller may not know of it."""


class UnacceptableError(RefusedError, InvalidInput):
    """Status 400 and similar: the request cannot be carried out as it stands."""


_UNKNOWN: Mapping[str, int] = MappingProxyType(
    {
        "Application": 10002,
        "Channel": 10003,
        "Guild": 10004,
        "Invite": 10006,
        "Member": 10007,
        "Message": 10008,
        "Overwrite": 10009,
        "Role": 10011,
        "User": 10013,
        "Emoji": 10014,
        "Webhook": 10015,
        "Ban": 10026,
        "Sticker": 10060,
        "Guild Scheduled Event": 10070,
        "interaction": 10062,
        "application command": 10063,
    }
)


def unknown(what: str) -> UnknownError:
    return UnknownError(404, _UNKNOWN[what], f"Unknown {what}")


def unauthorized() -> ForbiddenError:
    return ForbiddenError(401, 0, "401: Unauthorized")


def unauthorized_token() -> ForbiddenError:
    """Returns the error for a wrong webhook token, or an expired interaction token."""
    return ForbiddenError(401, 50027, "Invalid Webhook Token")


def missing_access() -> ForbiddenError:
    return ForbiddenError(403, 50001, "Missing Access")


def missing_permissions() -> ForbiddenError:
    return ForbiddenError(403, 50013, "Missing Permissions")


def forbidden(number: int, message: str) -> ForbiddenError:
    return ForbiddenError(403, number, message)


def bad(number: int, message: str) -> UnacceptableError:
    return UnacceptableError(400, number, message)


def too_large() -> UnacceptableError:
    return UnacceptableError(413, 40005, "Request entity too large")


def bad_field(path: str, code: str, message: str) -> UnacceptableError:
    """Returns the error for one wrong field. `path` is dotted, with indices: `embeds.0.title`."""
    return bad_form([(path, code, message)])


def bad_form(faults: list[tuple[str, str, str]]) -> UnacceptableError:
    """Returns 400/50035 with each (path, code, message) at its place in the nested `errors`."""
    errors: dict[str, Any] = {}
    for path, code, message in faults:
        place = errors
        for part in filter(None, path.split(".")):
            place = place.setdefault(part, {})
        place.setdefault("_errors", []).append({"code": code, "message": message})
    return UnacceptableError(400, 50035, "Invalid Form Body", errors)


EMPTY_MESSAGE = (50006, "Cannot send an empty message")
ARCHIVED = (50083, "Thread is archived")
"""The arguments of `bad` for an archived thread."""
