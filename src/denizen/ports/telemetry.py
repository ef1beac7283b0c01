"""The port of telemetry: measured pieces of work, for those who watch the process from outside.

A span names no person, no place and nothing that was said. Who does the work fills in its end; a span that is left as
it began counts as cancelled. Measuring neither waits nor raises.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from denizen.domain.usage import Usage

CANCELLED = "cancelled"
OK = "ok"


@dataclass(slots=True, kw_only=True)
class TurnSpan:
    """A turn, from its run's beginning until it is closed, with the time in which it waits. `outcome` is its status,
    `failure` the code of the error that ended it.
    """

    turn_id: str
    agent: str
    outcome: str = CANCELLED
    failure: str = ""


@dataclass(slots=True, kw_only=True)
class RequestSpan:
    """A request to a model, with its retries and fallbacks. `outcome` is `ok`, or the code or class of the error;
    `answered_by` and `provider` are those that answered.
    """

    model: str
    outcome: str = CANCELLED
    answered_by: str = ""
    provider: str = ""
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True, kw_only=True)
class CallSpan:
    """A tool call with the gate's decision. `verdict` is `approve` or `deny`, `outcome` as `CallOutcome.state`, and
    `took_s` is without the time in which people were waited for.
    """

    tool: str
    tier: str = ""
    verdict: str = ""
    outcome: str = CANCELLED
    took_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class StoreSpan:
    """A unit of work of the store. `outcome` is `ok`, or the code or class of the error."""

    is_writing: bool
    outcome: str = CANCELLED


Span = TurnSpan | RequestSpan | CallSpan | StoreSpan


class Telemetry(Protocol):
    """Measures spans. Spans that are opened within a turn or a call, in the same task or its children, are its
    parts.
    """

    def measure(self, span: Span) -> AbstractContextManager[object]: ...


class NoTelemetry:
    """Measures nothing."""

    def measure(self, span: Span) -> AbstractContextManager[object]:
        del span
        return nullcontext()


NO_TELEMETRY = NoTelemetry()
