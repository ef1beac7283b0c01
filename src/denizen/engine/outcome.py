"""How a turn ended: as decided, as watchers see it, as one line in the log. Made and used by `turn.py`."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from denizen.domain.errors import DenizenError, Unavailable
from denizen.domain.events import TurnFinished
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.beside import Beside
from denizen.engine.knowledge.proof import Answer
from denizen.engine.steps import Steps

_log = logging.getLogger("denizen.turn")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A reply, or a safe sentence about the failure with the family of its error and what to do."""

    status: TurnStatus
    reply: str = ""
    failure: str = ""
    failure_code: str = ""
    failure_family: str = ""
    failure_fix: str = ""
    answer: Answer | None = None
    """What the reply was made of, with what it cites."""
    error: DenizenError | None = None
    """For the log."""


def failure_of(error: DenizenError | TimeoutError) -> Outcome:
    """What an error means for the turn that it ended."""
    if isinstance(error, TimeoutError):
        error = Unavailable("This took too long, so I stopped.", code="turn_timeout")
    text = error.message if not error.why else f"{error.message} ({error.why})"
    return Outcome(
        TurnStatus.FAILED, failure=text, failure_code=error.code, failure_family=error.family, failure_fix=error.fix,
        error=error,
    )  # fmt: skip


def finished(turn: Turn, beside: Beside | None = None) -> TurnFinished:
    """The last event of a turn, from its record and what came besides its text."""
    beside = beside or Beside()
    return TurnFinished(
        turn.id, turn.status, turn.reply, turn.failure, turn.failure_code, turn.usage, turn.failure_family,
        turn.failure_fix, beside.images, beside.thoughts,
    )  # fmt: skip


def report(turn: Turn, steps: Steps | None, duration_ms: int, error: DenizenError | None = None) -> None:
    """The canonical line: one a turn, nothing of what was said. `error` is what it failed by."""
    usage, failed = turn.usage, {"context": error.context} if error and error.context else {}
    _log.info(
        "turn",
        extra={
            "turn": turn.id, "agent": turn.agent, "model": turn.model, "status": str(turn.status),
            "failure": turn.failure_code, "route": turn.route.complexity.value if turn.route else "",
            "steps": steps.number if steps else 0,
            "calls": steps.call_count if steps else 0, "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cache_read_tokens, "output_tokens": usage.output_tokens,
            "cost_usd": None if usage.cost_usd is None else str(usage.cost_usd), "duration_ms": duration_ms,
            **failed,
        },
    )  # fmt: skip
