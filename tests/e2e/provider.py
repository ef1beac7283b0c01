"""A model provider for other processes: `denizen.testing.model_server` in a thread; its requests can be awaited."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from denizen.testing.model_server import (
    DelayedAnswer,
    ModelAnswer,
    ModelServer,
    RecordedRequest,
    ScriptEntry,
    model_server,
)
from tests.timing import HANG_LIMIT_S


class RecordedRequests(list[RecordedRequest]):
    """The requests in order; tells who waits when one arrives."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()

    def append(self, item: RecordedRequest, /) -> None:
        with self._changed:
            super().append(item)
            self._changed.notify_all()

    def await_count(self, count: int) -> None:
        with self._changed:
            arrived = self._changed.wait_for(lambda: len(self) >= count, HANG_LIMIT_S)
        assert arrived, f"{len(self)} requests, not {count}"


@dataclass(frozen=True, slots=True)
class HeldAnswer:
    """An answer that the provider holds back."""

    portal: BlockingPortal
    entry: DelayedAnswer

    def release(self) -> None:
        self.portal.call(self.entry.until.set)


class Provider:
    """The server, and what only its own thread may touch."""

    def __init__(self, server: ModelServer, portal: BlockingPortal) -> None:
        self._portal = portal
        self.server = server
        self.requests = RecordedRequests()
        server.requests = self.requests

    def script(self, *entries: ScriptEntry) -> None:
        self.server.script(*entries)

    def hold(self, answer: ModelAnswer) -> HeldAnswer:
        """Adds an answer to the script that waits for `release`."""
        entry = DelayedAnswer(answer, self._portal.call(anyio.Event), self._portal.call(anyio.Event))
        self.server.script(entry)
        return HeldAnswer(self._portal, entry)


@contextmanager
def open_provider(host: str = "127.0.0.1") -> Generator[Provider]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(model_server(host=host)) as server:
        yield Provider(server, portal)
