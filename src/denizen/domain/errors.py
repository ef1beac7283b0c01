"""Every error that Denizen raises on purpose, named by who has to act next.

One root and eight families. Each surface (HTTP, command line, Discord, jobs) has one table that maps a family to its
own form; no surface looks at messages. Configuration, model, security and skill errors are kinds
within these families, told apart by `code`.
"""

from __future__ import annotations

from typing import NamedTuple


class Explanation(NamedTuple):
    """The parts of an explained error. Reason and remedy may be empty."""

    message: str
    why: str = ""
    fix: str = ""


class DenizenError(Exception):
    """The root. `message` is safe to show to anybody; `why` and `fix` tell the reader what happened and what to do.

    `context` is structured data for the log. It must not hold secrets, and is never shown to users.
    """

    code = "error"

    def __init__(
        self, message: str, *, code: str | None = None, why: str = "", fix: str = "", **context: object
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.why = why
        self.fix = fix
        self.context = context

    @property
    def family(self) -> str:
        """The name of the family: the class right below the root that this error belongs to."""
        lineage = type(self).__mro__
        return lineage[lineage.index(DenizenError) - 1].__name__ if type(self) is not DenizenError else "DenizenError"

    @property
    def fields(self) -> dict[str, object]:
        """For `extra=` of a line in the log: code, family, reason, remedy and context, as far as they are there."""
        told = {"code": self.code, "family": self.family, "why": self.why, "fix": self.fix, "context": self.context}
        return {name: value for name, value in told.items() if value}

    def __str__(self) -> str:
        return self.message

    def explain(self) -> str:
        """Message, reason and remedy on up to three lines, for people."""
        lines = [self.message]
        if self.why:
            lines.append(f"why: {self.why}")
        if self.fix:
            lines.append(f"fix: {self.fix}")
        return "\n".join(lines)


def read_explanation(text: str) -> Explanation:
    """Returns the parts of what `explain` wrote, for who has only its text: the result of a tool that failed. A text of
    another origin is all message.
    """
    rest, _, fix = text.partition("\nfix: ")
    message, _, why = rest.partition("\nwhy: ")
    return Explanation(message, why, fix)


def list_fields(error: BaseException) -> dict[str, object]:
    """Returns the fields of an error that Denizen raised; none of another one, such as a time-out."""
    return error.fields if isinstance(error, DenizenError) else {}


class InvalidInput(DenizenError):
    """The input cannot be used: the caller corrects it."""

    code = "invalid_input"


class NotFound(DenizenError):
    """The thing that was named does not exist: the caller names another."""

    code = "not_found"


class Conflict(DenizenError):
    """The state has moved on: the caller looks again and repeats."""

    code = "conflict"


class NotAllowed(DenizenError):
    """Policy refuses: nobody repeats it."""

    code = "not_allowed"


class NeedsApproval(DenizenError):
    """A human has to decide first."""

    code = "needs_approval"


class Unavailable(DenizenError):
    """Something outside does not answer: try later. `retry_after_s` when the other side said when."""

    code = "unavailable"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        why: str = "",
        fix: str = "",
        retry_after_s: float | None = None,
        **context: object,
    ) -> None:
        super().__init__(message, code=code, why=why, fix=fix, **context)
        self.retry_after_s = retry_after_s


class NeedsAttention(DenizenError):
    """The operator has to do something: a key, a setting, a disk."""

    code = "needs_attention"


class LimitExceeded(DenizenError):
    """A budget or a limit is used up."""

    code = "exhausted"
