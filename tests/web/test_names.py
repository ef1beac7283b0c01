"""Pages call persons and rooms as people do, with the id where a pointer stays, and only for who may see the room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.audit import AuditEvent, AuditKind
from denizen.domain.conversation import Place
from denizen.domain.event_listener import ActionKind, EventAction, EventListener
from denizen.domain.ids import AgentName
from denizen.domain.room import RoomKind
from denizen.engine.inspection.names import NameDirectory
from denizen.engine.inspection.rooms import RoomInspection
from denizen.ports.events import EventSettings
from denizen.web.pages import audit, events, questions
from tests.clock import NOON
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform
from tests.web.admin_pages_fixture import ask, read
from tests.web.knowledge_web_fixture import OWNER
from tests.web.people import add_user
from tests.web.question_fixture import QUESTION
from tests.web_fixture import ADA, open_web

pytestmark = pytest.mark.anyio

GENERAL, STAFF, TALK = "71", "72", "73"


async def test_the_audit_log_names_who_did_it_with_the_key_for_a_pointer() -> None:
    async with open_web(keys=[OWNER]) as web:
        bea = await add_user(web, "bea")
        async with web.store.work() as work:
            await work.audit.add([AuditEvent(AuditKind.ACCOUNT, NOON, bea.key, "platform_user:discord:7", {})])
        page = (await ask(web, "olga", "GET", audit.PATH)).text
    assert f'<span title="{bea.key}">Bea</span>' in page
    assert "platform_user:discord:7" in page  # nobody knows a name


async def test_rooms_have_names_for_who_may_see_them() -> None:
    listeners = [
        EventListener(
            name=f"to-{room}",
            on=("site.*",),
            action=EventAction(
                kind=ActionKind.POST, agent=AgentName("denizen"), message="x", platform="discord", channel=room
            ),
        )
        for room in (GENERAL, "999")
    ]
    settings = EventSettings(listeners={each.key: each for each in listeners})
    async with open_web(keys=[OWNER, ADA], events=settings) as web:
        harbour = MemoryPlatform()
        account = MemoryChannel(harbour, AgentName("denizen"))
        harbour.add_room("<i>general", room_id=GENERAL)
        harbour.add_room("staff", room_id=STAFF, readers=[account.user_id])
        harbour.add_room("talk", RoomKind.DIRECT, room_id=TALK, readers=[account.user_id])
        await web.mirror.rooms([*harbour.rooms.values()])
        web.channels.add(account)
        async with web.store.work() as work:
            await work.questions.add(replace(QUESTION, place=Place("discord", GENERAL)))
        inbox = (await read(web, "olga", questions.PATH)).text
        page = (await ask(web, "olga", "GET", events.PATH)).text
        names = NameDirectory(web.store, RoomInspection(web.runtime, web.store, web.channels))
        places = [Place("discord", room) for room in (GENERAL, STAFF, TALK, "999")]
        owners, admins = [await names.load_rooms(each.principal, places) for each in (OWNER, ADA)]
    assert f'in <span title="{GENERAL}">Harbour · #&lt;i&gt;general</span>' in page and "in 999" in page
    assert "Where Harbour · #<i>general on discord, the turn" in inbox
    assert owners == {GENERAL: "Harbour · #<i>general", STAFF: "Harbour · #staff"}
    assert admins == {GENERAL: "Harbour · #<i>general"}
