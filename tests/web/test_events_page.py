"""Events on their page, over the API and in the SDK: the log, the failed ones, and their replay."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest

from denizen.domain.cloud_event import MAX_NESTING
from denizen.domain.event_listener import ActionKind, EventAction, EventListener
from denizen.domain.ids import AgentName
from denizen.domain.json import JsonObject
from denizen.ports.events import EventSettings
from denizen.web.pages.events import PATH, SHOWN
from denizen_sdk import DenizenClient
from denizen_sdk.errors import ApiError
from tests.web.admin_pages_fixture import PageText, ask, read
from tests.web.knowledge_web_fixture import OWNER
from tests.web_fixture import ADA, ANN, LOCAL, WebFixture, open_web

pytestmark = pytest.mark.anyio

LISTENER = EventListener(
    name="pass-on",
    on=("denizen.emitted.site.*",),
    action=EventAction(
        kind=ActionKind.POST, agent=AgentName("denizen"), message="{{host}}", platform="discord", channel="7"
    ),
)


@asynccontextmanager
async def open_events() -> AsyncGenerator[tuple[WebFixture, DenizenClient]]:
    """A server with a listener whose account is away for ever, and the client of its owner."""
    settings = EventSettings(listeners={LISTENER.key: LISTENER})
    async with open_web(keys=[OWNER, ADA, ANN], events=settings) as web:
        transport = httpx2.ASGITransport(web.app, raise_app_exceptions=False)
        async with DenizenClient(LOCAL, "key-of-olga", transport=transport) as client:
            yield web, client


async def fail(web: WebFixture) -> None:
    for _ in range(5):
        await web.bus.look()
        web.clock.advance(hours=1)


def list_types(page: PageText) -> list[str]:
    """The types of the events that a page shows."""
    return [row[1].split()[0] for row in page.rows if " by api_key:" in row[1]]


async def test_an_owner_sees_events_live_with_what_was_done_and_replays_what_failed() -> None:
    async with open_events() as (web, client):
        await client.emit_event("site.down", {"host": "<b>db1</b>"}, subject="db1")
        await client.emit_event("other", key="once")
        await client.emit_event("other", key="once")
        await fail(web)
        page = await read(web, "olga", PATH)
        html = (await ask(web, "olga", "GET", PATH)).text
        assert "<b>db1" not in html and 'hx-trigger="every 5s"' in html
        failed, other, down, listener = page.rows
        assert "failed listener:pass-on" in failed[1] and "is not connected" in failed[1]
        assert other[1] == "denizen.emitted.other /denizen by api_key:olga"
        assert down[1] == "denizen.emitted.site.down db1 /denizen by api_key:olga"
        assert listener[0] == "listener:pass-on"
        found = await read(web, "olga", f"{PATH}?type=*.other&words=denizen")
        assert list_types(found) == ["denizen.emitted.other"]
        [delivery] = await client.list_failed_deliveries()
        done = await ask(web, "olga", "POST", f"{PATH}/{delivery.id}/replay")
        assert done.status_code == 303
        assert not await client.list_failed_deliveries()
        again = await ask(web, "olga", "POST", f"{PATH}/{delivery.id}/replay")
        assert again.status_code == 409 and "Only a delivery that has failed" in again.text


async def test_programs_of_owners_list_emit_and_replay_and_nobody_else_does() -> None:
    async with open_events() as (web, client):
        event = await client.emit_event("site.down", {"host": "db1"}, subject="db1")
        assert (event.type, event.source, event.actor) == ("denizen.emitted.site.down", "/denizen", "api_key:olga")
        assert [each.listener for each in event.deliveries] == ["listener:pass-on"]
        [listed] = await client.list_events(kind="denizen.*", words="db1")
        assert listed.key == event.key and (await client.get_event(event.key)).data == {"host": "db1"}
        assert not await client.list_events(before=listed.position)
        await fail(web)
        [delivery] = await client.list_failed_deliveries()
        assert (await client.replay_delivery(delivery.id)).status == "waiting"
        assert [each.key for each in await client.list_listeners()] == ["listener:pass-on"]
        with pytest.raises(ApiError, match="cannot be the name"):
            await client.emit_event("Not A Name")
        with pytest.raises(ApiError, match="no event"):
            await client.get_event("event_none")
        for who in ("ada", "ann"):
            for path in ("/api/events", "/api/events/failed", "/api/listeners", PATH):
                assert (await ask(web, who, "GET", path)).status_code == 403


async def test_an_event_that_is_nested_too_deeply_is_refused_and_the_log_goes_on() -> None:
    async with open_events() as (_, client):
        deep: JsonObject = {}
        for _ in range(MAX_NESTING - 1):
            deep = {"a": deep}
        await client.emit_event("deep", deep)
        with pytest.raises(ApiError, match="nested too deeply") as refused:
            await client.emit_event("deeper", {"a": deep})
        assert (refused.value.status, refused.value.code) == (400, "json_nesting")
        assert [each.type for each in await client.list_events()] == ["denizen.emitted.deep"]


async def test_older_events_are_on_the_next_page_which_keeps_the_search() -> None:
    async with open_events() as (web, client):
        for number in range(SHOWN + 2):
            await client.emit_event("tick", {"number": number})
        first = await read(web, "olga", f"{PATH}?type=*.tick")
        [older] = [str(attrs["href"]) for attrs in first.all("a") if "before=" in str(attrs["href"])]
        second = await read(web, "olga", older)
        assert [len(list_types(page)) for page in (first, second)] == [SHOWN, 2]
        assert "These are the oldest." in second.text
