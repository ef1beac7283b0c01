"""The archive on its page: what a person would find, and forgetting one after a look at what would go."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.domain.errors import Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.memory import Memory, MemoryOrigin
from denizen.web.pages.archive import PATH
from tests.app.home_folder import LAB, Home, open_home
from tests.clock import NOON
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform
from tests.web.admin_pages_fixture import PageText, ask, read
from tests.web.knowledge_web_fixture import OWNER
from tests.web_fixture import ADA, ANN, WebFixture, open_web

pytestmark = pytest.mark.anyio

BEA, KIM = "21", "22"
BEA_KEY = f"platform_user:discord:{BEA}"


@dataclass
class ArchiveWeb:
    """#general for all, #staff for Bea alone."""

    web: WebFixture
    platform: MemoryPlatform
    account: MemoryChannel


@asynccontextmanager
async def open_archive() -> AsyncGenerator[ArchiveWeb]:
    async with open_web(keys=[OWNER, ADA, ANN]) as web:
        platform = MemoryPlatform()
        account = MemoryChannel(platform, AgentName("denizen"))
        platform.add_person(BEA, "Bea")
        platform.add_person(KIM, "Kim")
        general, staff = platform.add_room("general"), platform.add_room("staff", readers=[BEA, account.user_id])
        platform.write(general, KIM, "Which <b>door</b>?")
        platform.write(staff, BEA, "The staff door is green.")
        await web.mirror.rooms(list(platform.rooms.values()))
        for room in (general, staff):
            await web.mirror.keep(platform.list_posts(room.id))
        web.channels.add(account)
        yield ArchiveWeb(web, platform, account)


def list_posts(page: PageText) -> list[str]:
    return [row[0].removesuffix(" open") for row in page.rows]


async def test_a_search_shows_what_that_person_may_read_now_and_is_in_the_audit_log() -> None:
    async with open_archive() as at:
        web = at.web
        bea = await read(web, "olga", f"{PATH}?person=bea&q=door")
        kim = await read(web, "olga", f"{PATH}?person={KIM}&q=door")
        html = (await ask(web, "olga", "GET", f"{PATH}?person=Kim&q=door")).text
        stranger = await read(web, "olga", f"{PATH}?person=77&q=door")
        newest = await read(web, "olga", f"{PATH}?person=Bea")
        hidden = await ask(web, "olga", "GET", f"{PATH}?person=Kim&q=door&room=staff")
        async with web.store.work(write=False) as work:
            entries = await work.audit.list_entries()
    assert sorted(list_posts(bea)) == ["The staff door is green.", "Which <b>door</b>?"]
    assert list_posts(kim) == ["Which <b>door</b>?"]
    assert "<b>door" not in html
    assert (list_posts(stranger), "Nothing, in 0 rooms." in stranger.text) == ([], True)
    assert list_posts(newest) == ["The staff door is green.", "Which <b>door</b>?"]
    assert (hidden.status_code, "green" in hidden.text) == (404, False)
    assert next((each.event.actor, each.event.subject) for each in entries) == ("api_key:olga", BEA_KEY)
    assert "door" not in str([each.event.details for each in entries])


async def test_while_the_platform_is_away_the_page_shows_less_and_says_so() -> None:
    async with open_archive() as at:
        at.account.fail("list_memberships", Unavailable("away"), times=1)
        page = await read(at.web, "olga", f"{PATH}?person=Bea&q=door")
    assert (list_posts(page), "does not tell everything" in page.text) == ([], True)


async def test_unknown_people_and_times_are_problems_on_the_page() -> None:
    async with open_archive() as at:
        nobody = await ask(at.web, "olga", "GET", f"{PATH}?person=nobody")
        time = await ask(at.web, "olga", "GET", f"{PATH}?person=Bea&since=someday")
    assert (nobody.status_code, "There is no such room, person or message here." in nobody.text) == (404, True)
    assert (time.status_code, "someday" in time.text) == (400, True)


async def fill_in(web: WebFixture) -> None:
    memory = Memory("mem_1", AgentName("denizen"), BEA_KEY, "Likes tea.", MemoryOrigin("discord", "7"), BEA_KEY, NOON)
    async with web.store.work() as work:
        await work.memories.add(memory)
        await work.user_settings.put(BEA_KEY, "model", "fast", now=NOON)


async def test_a_person_is_forgotten_after_a_look_at_what_is_stored_and_nothing_of_it_is_left() -> None:
    async with open_archive() as at:
        web = at.web
        await fill_in(web)
        preview = await read(web, "olga", f"{PATH}/forget?person=Bea")
        unsure = await ask(web, "olga", "POST", f"{PATH}/forget", id=BEA, name="Bea", confirm="Bea")
        kept = await read(web, "olga", f"{PATH}/forget?person={BEA}")
        done = await ask(web, "olga", "POST", f"{PATH}/forget", id=BEA, name="Bea", confirm=BEA)
        after = await read(web, "olga", f"{PATH}/forget?person={BEA}")
        await web.mirror.keep(at.platform.list_posts(next(iter(at.platform.rooms))))
        bea = await read(web, "olga", f"{PATH}?person={BEA}")
        async with web.store.work(write=False) as work:
            newest = (await work.audit.list_entries())[-2].event
    assert "Posts 1 Messages 0 Memories 1 Reminders 0 Questions to the owner 0 Settings 1" in preview.text
    assert (unsure.status_code, "Nothing was deleted." in unsure.text) == (400, True)
    assert "Posts 1" in kept.text
    assert done.status_code == 303
    assert "Posts 0 Messages 0 Memories 0 Reminders 0 Questions to the owner 0 Settings 0" in after.text
    assert list_posts(bea) == ["Which <b>door</b>?"]
    assert (newest.actor, newest.subject) == ("api_key:olga", BEA_KEY)
    assert newest.details == {"act": "forget person", "posts": 1}


async def test_retention_is_set_in_the_configuration_by_owners(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.path.mkdir()
    async with open_home(home, f"# Ours.\n{LAB}\n") as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        async with open_web(keys=[OWNER, ADA], configuration=files) as web:
            for days in ("", "-1", "x", "1.5", "99999"):
                assert (await ask(web, "olga", "POST", f"{PATH}/retention", days=days)).status_code == 400
            assert (await ask(web, "ada", "POST", f"{PATH}/retention", days="9")).status_code == 403
            done = await ask(web, "olga", "POST", f"{PATH}/retention", days="90")
        assert (done.status_code, denizen.runtime.current.archive.retention_days) == (303, 90)
    assert "# Ours." in home.config.read_text()


async def test_only_owners_look_with_others_eyes_and_forget_people() -> None:
    async with open_archive() as at:
        for who in ("ada", "ann"):
            for method, path in (("GET", PATH), ("GET", f"{PATH}/forget?person={BEA}"), ("POST", f"{PATH}/forget")):
                assert (await ask(at.web, who, method, path, id=BEA, confirm=BEA)).status_code == 403
        async with at.web.store.work(write=False) as work:
            assert (await work.archive.count_author("discord", BEA)).posts == 1


@pytest.mark.parametrize("person", ["", "x", "1 OR 1=1", "٣", "1" * 400])
async def test_what_is_no_id_of_a_person_forgets_nobody(person: str) -> None:
    async with open_archive() as at:
        answer = await ask(at.web, "olga", "POST", f"{PATH}/forget", id=person, name="x", confirm=person)
        assert answer.status_code in ((303,) if person.isascii() and person.isdecimal() else (400,))
        async with at.web.store.work(write=False) as work:
            assert (await work.archive.total("discord")) == 2
