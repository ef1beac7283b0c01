"""The memories of agents on their pages: who reads what, correcting, deleting, and what the audit log says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.ids import AgentName
from denizen.domain.memory import CORE, Memory, MemoryOrigin
from denizen.domain.room import Room
from denizen.web.pages.memory import PAGE_SIZE, PATH
from tests.clock import NOON
from tests.web.admin_pages_fixture import ask, read
from tests.web.knowledge_web_fixture import OWNER
from tests.web.people import add_user, sign_in
from tests.web_fixture import ADA, ANN, WebFixture, open_web

pytestmark = pytest.mark.anyio

ANA = "platform_user:discord:1"
OPEN = Memory("mem_open", AgentName("denizen"), ANA, "Ana likes <b>tea</b>.", MemoryOrigin("discord", "7"), ANA, NOON)
PRIVATE = replace(OPEN, id="mem_private", text="Ana is ill.", told_at=MemoryOrigin("discord", "8", private=True))
CORE_MEMORY = replace(OPEN, id="mem_core", owner=CORE, text="The door is blue.", told_at=MemoryOrigin())


async def fill(web: WebFixture, *memories: Memory) -> None:
    async with web.store.work() as work:
        await work.archive.put_room(Room("discord", "7", "general", guild="1", guild_name="Harbour"))
        for memory in memories or (OPEN, PRIVATE, CORE_MEMORY):
            await work.memories.add(memory)


async def list_texts(web: WebFixture) -> list[str]:
    async with web.store.work(write=False) as work:
        return [each.text for each in await work.memories.list_memories(history=True)]


async def list_audit(web: WebFixture) -> list[tuple[str, str, object]]:
    async with web.store.work(write=False) as work:
        entries = await work.audit.list_entries()
    return [(each.event.actor, each.event.subject, each.event.details["act"]) for each in entries]


async def test_memories_are_listed_with_where_they_were_told_and_who_may_hear_them() -> None:
    async with open_web(keys=[OWNER]) as web:
        await fill(web)
        page = await read(web, "olga", PATH)
        html = (await ask(web, "olga", "GET", PATH)).text
        tea = await read(web, "olga", f"{PATH}?q=TEA+discord:1")
        core = await read(web, "olga", f"{PATH}?about=core")
        nothing = await read(web, "olga", f"{PATH}?q=%25")
    assert [row[0] for row in page.rows] == ["The door is blue.", "Ana is ill.", "Ana likes <b>tea</b>."]
    assert [row[4] for row in page.rows] == [
        "everybody",
        "only in private talks of this person",
        "in Harbour · #general, and where all readers may see it",
    ]
    assert "<b>tea" not in html
    assert [row[0] for row in tea.rows] == ["Ana likes <b>tea</b>."]
    assert [row[0] for row in core.rows] == ["The door is blue."]
    assert "No memory fits." in nothing.text


async def test_a_long_list_comes_in_parts() -> None:
    async with open_web(keys=[OWNER]) as web:
        await fill(web, *(replace(OPEN, id=f"mem_{n}", text=f"Fact {n}.") for n in range(PAGE_SIZE + 2)))
        second = await read(web, "olga", f"{PATH}?page=2&q=fact")
    assert [row[0] for row in second.rows] == ["Fact 1.", "Fact 0."]


async def test_what_was_told_in_rooms_and_in_private_is_for_owners_alone() -> None:
    async with open_web(keys=[ADA, ANN]) as web:
        await fill(web)
        answers = [await ask(web, "ada", "GET", PATH)]
        for memory in (OPEN, PRIVATE, CORE_MEMORY):
            answers.append(await ask(web, "ada", "GET", f"{PATH}/{memory.id}"))
            answers.append(await ask(web, "ada", "POST", f"{PATH}/{memory.id}", text="Ana is well."))
            answers.append(await ask(web, "ada", "POST", f"{PATH}/{memory.id}/forget"))
        overview = (await ask(web, "ada", "GET", "/admin")).text
        texts = await list_texts(web)
    assert {each.status_code for each in answers} == {403}
    assert not [each for each in answers if "Ana" in each.text]
    assert f'href="{PATH}"' not in overview
    assert sorted(texts) == sorted([OPEN.text, PRIVATE.text, CORE_MEMORY.text])


async def test_a_corrected_memory_is_told_instead_to_the_same_people_and_goes_when_its_teller_is_forgotten() -> None:
    async with open_web(keys=[OWNER]) as web:
        await fill(web, replace(OPEN, owner=CORE))
        changed = await ask(web, "olga", "POST", f"{PATH}/mem_open", text="  Ana likes\ncoffee. ")
        async with web.store.work(write=False) as work:
            [new] = await work.memories.list_memories()
            old = await work.memories.find("mem_open")
        again = await ask(web, "olga", "POST", f"{PATH}/mem_open", text="Ana likes milk.")
        empty = await ask(web, "olga", "POST", f"{PATH}/{new.id}", text=" ")
        audit = await list_audit(web)
        async with web.store.work() as work:
            await work.memories.forget_teller(ANA)
        texts = await list_texts(web)
    assert changed.headers["location"] == f"{PATH}?done=changed"
    assert (new.text, new.told_at, new.told_by, new.owner) == ("Ana likes coffee.", OPEN.told_at, ANA, CORE)
    assert old is not None
    assert old.superseded_by == new.id
    assert (again.status_code, empty.status_code) == (409, 400)
    assert "There is nothing to remember." in empty.text
    assert audit == [("api_key:olga", "mem_open", "rewrite")]
    assert texts == []


async def test_a_forgotten_memory_goes_with_its_history_and_is_in_the_audit_log() -> None:
    async with open_web(keys=[OWNER]) as web:
        await fill(web, OPEN)
        await ask(web, "olga", "POST", f"{PATH}/mem_open", text="Ana likes coffee.")
        async with web.store.work(write=False) as work:
            [new] = await work.memories.list_memories()
        gone = await ask(web, "olga", "POST", f"{PATH}/{new.id}/forget")
        again = await ask(web, "olga", "POST", f"{PATH}/{new.id}/forget")
        texts, audit = await list_texts(web), await list_audit(web)
    assert (gone.headers["location"], again.status_code) == (f"{PATH}?done=forgotten", 404)
    assert (texts, audit[-1]) == ([], ("api_key:olga", new.id, "forget"))


async def test_members_and_pages_of_other_sites_change_no_memory() -> None:
    async with open_web(keys=[ANN]) as web:
        await fill(web, OPEN)
        refused = [await ask(web, "ann", "GET", path) for path in (PATH, f"{PATH}/mem_open")]
        refused.append(await ask(web, "ann", "POST", f"{PATH}/mem_open/forget"))
        async with sign_in(web, await add_user(web, "olga")) as olga:
            without_token = {"x-csrf-token": ""}
            refused.append(await olga.client.post(f"{PATH}/mem_open/forget", headers=without_token))
        texts = await list_texts(web)
    assert [each.status_code for each in refused] == [403] * 4
    assert texts == [OPEN.text]
