"""Errors of the client: one for what the server answered, one for a connection that failed."""

from __future__ import annotations

from denizen_sdk.records import record


@record
class ProblemDetails:
    """An error as the server tells it. `status` is the HTTP status; `reference` finds a fault in the server's log."""

    code: str
    message: str
    status: int = 500
    why: str = ""
    fix: str = ""
    reference: str = ""


class ClientError(Exception):
    """The base class of all errors of the client."""


class ApiError(ClientError):
    """The server answered with an error. `problem` tells what happened, why, and what to do."""

    def __init__(self, problem: ProblemDetails, *, turn_id: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.turn_id = turn_id
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        return self.problem.status

    @property
    def code(self) -> str:
        return self.problem.code

    @property
    def is_auth(self) -> bool:
        """Whether the key is missing, wrong, or lacks a role."""
        return self.status in {401, 403}

    @property
    def is_rate_limit(self) -> bool:
        """Whether a limit or a budget is used up."""
        return self.status == 429

    @property
    def is_server(self) -> bool:
        """Whether the fault is on the server's side."""
        return self.status >= 500

    def __str__(self) -> str:
        lines = [f"{self.problem.message} ({self.status} {self.code})"]
        if self.problem.why:
            lines.append(f"why: {self.problem.why}")
        if self.problem.fix:
            lines.append(f"fix: {self.problem.fix}")
        return "\n".join(lines)


class NetworkError(ClientError):
    """The server could not be reached, or the connection broke. `turn_id` names a turn that may still be running."""

    def __init__(self, message: str, *, turn_id: str = "") -> None:
        super().__init__(message)
        self.turn_id = turn_id
