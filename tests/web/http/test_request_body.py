"""Bodies of those who have not shown yet who they are take a bounded part of memory, and hold up nobody."""

from __future__ import annotations

import anyio
import pytest
from starlette.requests import Request
from starlette.types import Message

from denizen.domain.errors import Unavailable
from denizen.web.http import request as body
from denizen.web.http.request import WebhookBodyReader
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


class BodySender:
    """Sends `begun` at once, and the rest when it is told to."""

    def __init__(self, source: str = "192.0.2.1", *, begun: bytes = b"all ") -> None:
        self.asked, self.goes_on = anyio.Event(), anyio.Event()
        self.result: bytes | str = ""
        self._source = source
        self._begun = begun

    async def receive(self) -> Message:
        if begun := self._begun:
            self._begun = b""
            return {"type": "http.request", "body": begun, "more_body": True}
        self.asked.set()
        await self.goes_on.wait()
        return {"type": "http.request", "body": b"of it", "more_body": False}

    @property
    def request(self) -> Request:
        scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "client": (self._source, 1)}
        return Request(scope, self.receive)

    async def send_to(self, reader: WebhookBodyReader) -> None:
        try:
            self.result = await reader.read(self.request, limit=1000)
        except Unavailable as error:
            self.result = error.code


async def test_slow_bodies_are_read_side_by_side_whatever_their_number() -> None:
    reader, senders = WebhookBodyReader(), [BodySender() for _ in range(200)]
    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as group:
            for sender in senders:
                group.start_soon(sender.send_to, reader)
            for sender in senders:
                await sender.asked.wait()
            for sender in senders:
                sender.goes_on.set()
    assert {sender.result for sender in senders} == {b"all of it"}


async def test_the_address_that_holds_the_most_memory_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MAX_WEBHOOK_MEMORY_BYTES", 1000)
    reader = WebhookBodyReader()
    greedy = [BodySender("192.0.2.66", begun=bytes(size)) for size in (300, 400, 200)]
    modest = BodySender("192.0.2.1", begun=bytes(300))
    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as group:
            for sender in (*greedy, modest):
                group.start_soon(sender.send_to, reader)
                await anyio.wait_all_tasks_blocked()
            for sender in (*greedy, modest):
                sender.goes_on.set()
    assert [sender.result for sender in greedy] == [bytes(300) + b"of it", "webhooks_full", bytes(200) + b"of it"]
    assert modest.result == bytes(300) + b"of it"


async def test_a_body_that_does_not_come_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "WEBHOOK_DEADLINE_S", 0.01)
    with pytest.raises(Unavailable, match="too long"):
        await WebhookBodyReader().read(BodySender().request, limit=100)
