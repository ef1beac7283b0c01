"""Documents of one Discord server: those who manage it add, read and remove them on its page, inside a limit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from denizen.domain.audit import AuditKind
from denizen.domain.principal import RoleName
from denizen.domain.source import GuildSourceLimits, Source, SourceKind
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.guild_sources import CHANGES, READ_AGAIN
from denizen.engine.knowledge.index import DocumentSearch
from denizen.ports.store import AuditSearch
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.temporary_store import TemporaryStore
from denizen.web.http.dependencies import KnowledgeServices
from denizen.web.pages.guilds import PATH
from tests.clock import ManualClock
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, give_way, write
from tests.timing import HANG_LIMIT_S
from tests.web.knowledge_web_fixture import build_knowledge_services
from tests.web.people import SignedIn, add_user, sign_in
from tests.web.test_guild_pages import FOREIGN, GENERAL, HARBOUR, ISLAND, STAFF, TwoGuilds, open_guilds

pytestmark = pytest.mark.anyio

SITE = "https://docs.example"
MAP = f"{SITE}/sitemap.xml"
SECRET = "THE VAULT OPENS AT NOON"


@dataclass
class ServerDocuments:
    """Two servers with a library, and a web site that may be read."""

    at: TwoGuilds
    engine: KnowledgeFixture

    async def add(self, who: SignedIn, guild: str = HARBOUR, location: str = MAP, **form: str) -> int:
        form = {"kind": "sitemap", "location": location, **form}
        return (await who.submit(f"{PATH}/{guild}/sources", **form)).status_code

    async def press(self, who: SignedIn, button: str, source: str, guild: str = HARBOUR) -> int:
        return (await who.submit(f"{PATH}/{guild}/sources/{source}/{button}")).status_code

    async def ids(self) -> list[str]:
        return [each.source.id for each in await self.engine.catalog.list_known()]

    async def page(self, who: SignedIn, guild: str = HARBOUR) -> str:
        return (await who.client.get(f"{PATH}/{guild}")).text

    async def wait(self) -> None:
        """Until no sync runs any more."""
        with anyio.fail_after(HANG_LIMIT_S):
            while self.engine.sync._begun:
                await give_way()

    async def limit(self, limits: GuildSourceLimits) -> None:
        current = self.at.web.runtime.current
        settings = replace(current.knowledge, guild_sources=limits)
        await self.at.web.runtime.swap(replace(current, number=current.number + 1, knowledge=settings))
        self.engine.reading._guild_limits = lambda: limits

    async def audited(self) -> list[tuple[str, str, Mapping[str, object]]]:
        async with self.at.web.store.work(write=False) as work:
            found = await work.audit.search(AuditSearch(kind=AuditKind.SETTINGS, words=f"guild:discord:{HARBOUR}"))
        return [(each.event.subject, each.event.actor, each.event.details) for each in reversed(found)]


@asynccontextmanager
async def open_server_documents(root: Path) -> AsyncGenerator[ServerDocuments]:
    engines: list[KnowledgeFixture] = []

    def make(store: TemporaryStore, durable: MemoryDurable, clock: ManualClock) -> KnowledgeServices:
        engines.append(KnowledgeFixture(root, store=store, durable=durable, clock=clock))
        return build_knowledge_services(engines[0], {})

    async with open_guilds(make) as at:
        [engine] = engines
        engine.web.put(MAP, f"<urlset><url><loc>{SITE}/a.html</loc></url></urlset>", kind="text/xml")
        engine.web.put(f"{SITE}/a.html", SECRET)
        yield ServerDocuments(at, engine)


async def test_an_owner_adds_a_web_site_sees_it_read_and_removes_it(tmp_path: Path) -> None:
    async with open_server_documents(tmp_path) as kit:
        bea = kit.at.bea
        assert "0 of 3 sources" in await kit.page(bea)
        assert await kit.add(bea, label="<b>Handbook") == 303
        await kit.wait()
        page = await kit.page(bea)
        assert ("&lt;b&gt;Handbook" in page, "<b>Handbook" in page) == (True, False)
        assert ("fine" in page, "1 of 3 sources" in page, MAP in page) == (True, True, True)
        [source] = [each.source for each in await kit.engine.catalog.list_known()]
        assert (source.guild, source.kind, source.id) == (HARBOUR, SourceKind.SITEMAP, f"{HARBOUR}-sitemap.xml")
        assert [path for path, text in kit.engine.files().items() if SECRET in text] == [
            f"guild-{HARBOUR}/sitemap.xml/a.html.md"
        ]
        await kit.engine.indexing.catch_up()
        search = DocumentSearch(kit.engine.store, kit.engine.library, BudgetedEmbedder())
        found = {guild: len(await search("vault noon", guild=guild)) for guild in (HARBOUR, ISLAND, "")}
        assert found == {HARBOUR: 1, ISLAND: 0, "": 0}
        assert await kit.press(bea, "remove", source.id) == 303
        assert (await kit.ids(), kit.engine.files()) == ([], {})
        assert f"removed {source.id}" in await kit.page(bea)
        who = f"web_user:{bea.user.id}"
        told = [(subject, actor, details["done"]) for subject, actor, details in await kit.audited()]
    assert told == [(f"guild:discord:{HARBOUR}", who, done) for done in ("add_source", "remove_source")]


async def test_the_page_asks_again_only_while_a_source_is_read(tmp_path: Path) -> None:
    async with open_server_documents(tmp_path) as kit:
        bea = kit.at.bea
        assert await kit.add(bea) == 303
        await kit.wait()
        done = await kit.page(bea)
        kit.engine.web.silent.add(f"{SITE}/a.html")
        assert await kit.add(bea) == 303
        reading = await kit.page(bea)
    assert ("fine" in done, "hx-trigger" in done) == (True, False)
    assert 'hx-trigger="every 3s" hx-target="#sources"' in reading


async def test_nobody_who_does_not_manage_the_server_touches_its_sources(tmp_path: Path) -> None:
    async with open_server_documents(tmp_path) as kit:
        bea, kim, web = kit.at.bea, kit.at.kim, kit.at.web
        assert await kit.add(bea) == 303
        await kit.wait()
        mine = f"{HARBOUR}-sitemap.xml"
        admin = await add_user(web, "adam", RoleName.ADMIN)
        key, _ = await web.users.accounts.create_key(bea.user.principal(bea.user.role), "mine", user=bea.user)
        async with sign_in(web, admin) as adam:
            answers = [
                await kit.add(kim),  # a member
                await kit.add(bea, ISLAND),  # a stranger
                await kit.add(adam),
                await kit.add(kim, "999"),
                *[await kit.press(who, button, mine) for who in (kim, adam) for button in ("read", "remove")],
                # a source of another server by the own one's page
                *[await kit.press(kim, button, mine, ISLAND) for button in ("read", "remove")],
            ]
        async with web.client(**{"x-api-key": key}) as program:
            by_key = await program.post(f"{PATH}/{HARBOUR}/sources/{mine}/remove")
        forged = await bea.client.post(f"{PATH}/{HARBOUR}/sources/{mine}/remove", headers={"x-csrf-token": "no"})
        seen = [await kit.page(kim), await kit.page(kim, ISLAND)]
        assert answers == [404] * 10
        assert (by_key.status_code, forged.status_code) == (403, 403)
        assert [MAP in each for each in seen] == [False, False]
        assert await kit.ids() == [mine]
        assert len(await kit.engine.sync.list_runs()) == 1
        kit.at.harbour.set_managers([])
        web.clock.advance(3600)
        assert await kit.press(bea, "remove", mine) == 404


@pytest.mark.parametrize(
    ("kind", "location"),
    [
        ("folder", "/etc"),
        ("git", "/etc"),
        ("git", "file:///etc"),
        ("git", "http://localhost/docs.git"),
        ("git", "https://127.0.0.1/docs.git"),
        ("git", "https://0x7f000001/docs.git"),
        ("git", "git@host:docs.git"),
        ("git", "ssh://git@host/docs.git"),
        ("git", "https://user:secret@host/docs.git"),
        ("git", "--upload-pack=touch"),
        ("sitemap", "http://docs.example/sitemap.xml"),
        ("sitemap", "https://localhost/sitemap.xml"),
        ("youtube", "@somebody"),
        ("archive", f"discord:{FOREIGN}"),
        ("archive", f"discord:{STAFF}"),
        ("archive", "discord:404"),
        ("archive", "github:1"),
        ("sitemap", ""),
    ],
)
async def test_nothing_is_read_of_the_machine_of_other_servers_or_of_channels_that_are_not_theirs(
    tmp_path: Path, kind: str, location: str
) -> None:
    async with open_server_documents(tmp_path) as kit:
        status = await kit.add(kit.at.bea, location=location, kind=kind)
        assert (status, await kit.ids(), await kit.audited()) == (400, [], [])


async def test_a_channel_of_the_server_is_read_where_everybody_there_may_read_it(tmp_path: Path) -> None:
    async with open_server_documents(tmp_path) as kit:
        link = f"https://discord.com/channels/{HARBOUR}/{GENERAL}"
        assert await kit.add(kit.at.bea, location=link, kind="archive") == 303
        assert await kit.ids() == [f"{HARBOUR}-{GENERAL}"]


async def test_the_operator_bounds_how_much_servers_add_and_switches_it_off(tmp_path: Path) -> None:
    async with open_server_documents(tmp_path) as kit:
        bea = kit.at.bea
        await kit.limit(GuildSourceLimits(sources=2))
        assert [await kit.add(bea) for _ in range(3)] == [303, 303, 429]
        assert await kit.ids() == [f"{HARBOUR}-sitemap.xml", f"{HARBOUR}-sitemap.xml-2"]
        assert await kit.add(kit.at.kim, ISLAND) == 303  # each server has its own
        await kit.wait()
        await kit.limit(GuildSourceLimits(sources=0))
        assert await kit.add(bea) == 429
        assert "lets servers add no sources" in await kit.page(bea)


async def test_sources_of_a_server_together_keep_no_more_than_they_may(tmp_path: Path) -> None:
    async with open_server_documents(tmp_path) as kit:
        bea = kit.at.bea
        await kit.limit(GuildSourceLimits(size_bytes=len(SECRET) + 5))
        for _ in range(2):
            assert await kit.add(bea) == 303
            await kit.wait()
        states = [each.state for each in await kit.engine.catalog.list_known()]
        assert [state.error_code for state in states if state] == ["", "guild_sources_large"]
        assert "too large" in await kit.page(bea)
        await kit.limit(GuildSourceLimits(size_bytes=5))
        kit.at.web.clock.advance(READ_AGAIN.total_seconds() + 1)
        assert await kit.add(bea) == 303
        await kit.wait()
        last = (await kit.engine.catalog.list_known())[-1].state
        assert last is not None
        assert last.error_code == "source_too_large"


async def test_nobody_wears_the_machine_out_by_buttons(tmp_path: Path) -> None:
    async with open_server_documents(tmp_path) as kit:
        bea = kit.at.bea
        assert await kit.add(bea) == 303
        await kit.wait()
        mine = f"{HARBOUR}-sitemap.xml"
        assert await kit.press(bea, "read", mine) == 429
        kit.at.web.clock.advance(READ_AGAIN.total_seconds() + 1)
        assert await kit.press(bea, "read", mine) == 303
        await kit.wait()
        await kit.limit(GuildSourceLimits(sources=100))
        statuses = [await kit.add(bea) for _ in range(CHANGES.calls)]
    assert statuses == [303] * (CHANGES.calls - 1) + [429]


async def test_what_the_operator_added_for_a_server_is_listed_there_without_its_place(tmp_path: Path) -> None:
    async with open_server_documents(tmp_path) as kit:
        folder = write(tmp_path / "private place", {"a.md": "Words."})
        source: Source = await kit.engine.add(folder, "handbook", guild=HARBOUR, label="Seafarers")
        page = await kit.page(kit.at.bea)
        assert ("Seafarers" in page, "added by whoever runs Denizen" in page, "private place" in page) == (
            True,
            True,
            False,
        )
        assert [await kit.press(kit.at.bea, button, source.id) for button in ("read", "remove")] == [404, 404]
        assert "Seafarers" not in await kit.page(kit.at.kim, ISLAND)
