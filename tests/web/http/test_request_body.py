"""Bodies of those who have not shown yet who they are take a bounded part of memory."""

from __future__ import annotations

import anyio
import pytest
from starlette.requests import Request
from starlette.types import Message

from denizen.domain.errors import Unavailable
from denizen.web.http import request as body
from denizen.web.http.request import MAX_WEBHOOKS_AT_ONCE, WebhookBodyReader
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


class BodySender:
    """Sends its body when it is told to."""

    def __init__(self) -> None:
        self.asked, self.goes_on = anyio.Event(), anyio.Event()

    async def receive(self) -> Message:
        self.asked.set()
        await self.goes_on.wait()
        return {"type": "http.request", "body": b"all of it", "more_body": False}

    @property
    def request(self) -> Request:
        return Request({"type": "http", "method": "POST", "path": "/", "headers": []}, self.receive)


async def test_bodies_of_webhooks_are_read_so_many_at_a_time_and_the_others_wait() -> None:
    bodies, senders = WebhookBodyReader(), [BodySender() for _ in range(MAX_WEBHOOKS_AT_ONCE + 1)]
    read: list[bytes] = []

    async def take(sender: BodySender) -> None:
        read.append(await bodies.read(sender.request, limit=100))

    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as group:
            for sender in senders:
                group.start_soon(take, sender)
            for sender in senders[:-1]:
                await sender.asked.wait()
            await anyio.wait_all_tasks_blocked()
            assert not senders[-1].asked.is_set()
            senders[0].goes_on.set()
            await senders[-1].asked.wait()
            for sender in senders:
                sender.goes_on.set()
    assert read == [b"all of it"] * len(senders)


async def test_a_body_that_does_not_come_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "WEBHOOK_DEADLINE_S", 0.01)
    with pytest.raises(Unavailable, match="too long"):
        await WebhookBodyReader().read(BodySender().request, limit=100)
