"""The log of REST requests, and the faults that a test puts in their way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

FaultTime = Literal["before", "after"]


@dataclass(slots=True, eq=False)
class LoggedRequest:
    """One REST request. `status` is 0 while it is open or when its connection was dropped. `route` is the template,
    `reason` the text for the audit log, `remote` the address of the client.
    """

    method: str
    path: str
    route: str
    application_id: int | None = None
    body: Any = None
    status: int = 0
    answer: Any = None
    applied: bool = False
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    reason: str = ""
    remote: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.path} -> {self.status or 'no answer'}{'' if self.applied else ' (not applied)'}"


@dataclass(slots=True, eq=False)
class RequestFault:
    """A fault for the next `left` matching requests, before or after they are applied.

    With a `status` they are answered with it, with `drop` their connection breaks, otherwise they wait until
    `release`.
    """

    method: str
    route: re.Pattern[str]
    left: int
    when: FaultTime
    status: int | None = None
    number: int = 0
    drop: bool = False
    delay_s: float = 0
    gate: anyio.Event | None = None
    reached: anyio.Event = field(default_factory=anyio.Event)
    met: int = 0

    def matches(self, request: LoggedRequest) -> bool:
        if self.left <= 0 or self.method not in ("", request.method):
            return False
        return bool(self.route.search(request.path) or self.route.search(request.route))

    def release(self) -> None:
        """Releases what waits here, and whatever comes later."""
        self.left = 0
        if self.gate is not None:
            self.gate.set()

    async def wait_reached(self) -> None:
        """Waits until the first request has met this fault."""
        await self.reached.wait()
