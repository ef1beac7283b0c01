"""What a person with a linked Discord account may read and do in the web chat: what the member may at that moment."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import pytest

from denizen.builtin_skills import load_builtin
from denizen.domain.errors import Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.principal import RoleName
from denizen.domain.user import IdentityProfile, User
from denizen.domain.verdict import Decision
from denizen.engine.accounts.members import KEPT_S
from denizen.engine.archive.lookup import ArchiveLookups
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.ports.chats import ChatChanges
from denizen.skill import ScopedServices, SkillToolset
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform
from tests.skill_fixture import ServicesFixture
from tests.web.people import SignedIn, add_user, sign_in
from tests.web_fixture import WebFixture, open_web

pytestmark = pytest.mark.anyio

SECRET = "The staff door code is 4711."
RULES = (ToolRule("weather", Decision.DENY, roles=frozenset({"role:muted"}), reason="You are muted."),)


@dataclass
class Harbour:
    """A server with a guild: #general for all, #staff for those with the role. Bea and Kim have accounts on the web."""

    web: WebFixture
    platform: MemoryPlatform
    account: MemoryChannel
    bea: SignedIn
    kim: SignedIn

    def __post_init__(self) -> None:
        self.staff = next(room for room in self.platform.rooms.values() if room.name == "staff")

    async def link(self, who: SignedIn, member: str) -> None:
        profile = IdentityProfile(
            provider="discord", site="Discord", subject=member, login=member, name=member, email=""
        )
        await self.web.users.registration.link(profile, who.user)

    async def ask(self, who: SignedIn, tool: str = "search_archive", session: str = "s", **args: str) -> str:
        """What the tool told the model in a chat of that person."""
        wanted = args or {"words": "door code"}
        asked = len(self.web.model.requests)
        self.web.model.script(ScriptedReply(calls=[call(tool, **wanted)]), ScriptedReply("Done."))
        answer = await who.client.post("/api/chat", json={"message": "Tell me.", "session": session})
        assert answer.status_code == 200, answer.text
        return str(self.web.model.requests[asked + 1].messages[-1])

    async def share(self, who: SignedIn, *, is_public: bool, chat: str = "s") -> httpx2.Response:
        await who.client.post("/api/chats", json={"id": chat})
        return await who.client.patch(f"/api/chats/{chat}/share", json={"is_public": is_public})

    async def sees_secret(self, who: SignedIn, **options: str) -> bool:
        return SECRET in await self.ask(who, **options)


@asynccontextmanager
async def open_harbour(root: Path, rules: Sequence[ToolRule] = ()) -> AsyncGenerator[Harbour]:
    def archive_skill(lookups: ArchiveLookups) -> SkillToolset:
        services = replace(ServicesFixture(root).services(), scoped=ScopedServices(open_archive=lookups.open))
        return SkillToolset(load_builtin("archive"), services)

    policy = GatePolicy(rules=tuple(rules))
    async with open_web(ScriptedModel(), archive_tools=[archive_skill], policy=policy) as web:
        platform = MemoryPlatform()
        account = MemoryChannel(platform, AgentName("denizen"))
        for name in ("bea", "kim"):
            platform.add_person(name, name.title())
        general = platform.add_room("general")
        staff = platform.add_room("staff", readers=["bea", account.user_id])
        direct = platform.open_direct("bea", account.user_id)
        platform.write(general, "kim", "Which door is open?")
        platform.write(staff, "bea", SECRET)
        platform.write(direct, "bea", "My own door code is 1.")
        await web.mirror.rooms(list(platform.rooms.values()))
        for room in (general, staff, direct):
            await web.mirror.keep(platform.list_posts(room.id))
        web.channels.add(account)
        await add_user(web, "olga")
        people: list[User] = [await add_user(web, name) for name in ("bea", "kim")]
        async with sign_in(web, people[0]) as bea, sign_in(web, people[1]) as kim:
            yield Harbour(web, platform, account, bea, kim)


async def test_a_member_reads_in_the_web_chat_what_they_read_on_the_platform_from_the_link_to_its_end(
    tmp_path: Path,
) -> None:
    async with open_harbour(tmp_path) as harbour:
        assert not await harbour.sees_secret(harbour.bea)
        await harbour.link(harbour.bea, "bea")
        assert await harbour.sees_secret(harbour.bea)
        assert "My own door code" not in await harbour.ask(harbour.bea)
        await harbour.web.users.accounts.unlink(harbour.bea.user, "discord")
        assert not await harbour.sees_secret(harbour.bea)


async def test_whoever_may_not_read_the_channel_there_never_reads_it_here(tmp_path: Path) -> None:
    async with open_harbour(tmp_path) as harbour:
        await harbour.link(harbour.bea, "bea")
        assert not await harbour.sees_secret(harbour.kim)
        await harbour.link(harbour.kim, "kim")
        found = await harbour.ask(harbour.kim)
        assert ("Which door is open?" in found, SECRET in found) == (True, False)
        for room in ("staff", harbour.staff.id):
            assert SECRET not in await harbour.ask(harbour.kim, words="door", room=room)
        # A session of the same name is one of their own.
        assert await harbour.sees_secret(harbour.bea, session="shared")
        assert not await harbour.sees_secret(harbour.kim, session="shared")


async def test_a_right_that_is_taken_away_on_the_platform_ends_here_within_seconds(tmp_path: Path) -> None:
    async with open_harbour(tmp_path) as harbour:
        await harbour.link(harbour.bea, "bea")
        assert await harbour.sees_secret(harbour.bea)
        harbour.platform.set_readers(harbour.staff, [harbour.account.user_id])
        harbour.web.clock.advance(KEPT_S + 1)
        assert not await harbour.sees_secret(harbour.bea)
        assert "Which door" in await harbour.ask(harbour.bea)


async def test_nothing_of_the_archive_is_read_in_a_shared_chat_until_its_sharing_ends(tmp_path: Path) -> None:
    async with open_harbour(tmp_path) as harbour:
        await harbour.link(harbour.bea, "bea")
        await harbour.share(harbour.bea, is_public=True)
        assert "The archive is closed in a shared chat." in await harbour.ask(harbour.bea)
        assert await harbour.sees_secret(harbour.bea, session="other")
        await harbour.share(harbour.bea, is_public=False)
        assert await harbour.sees_secret(harbour.bea)


async def test_a_chat_with_an_answer_from_the_archive_cannot_be_shared(tmp_path: Path) -> None:
    async with open_harbour(tmp_path) as harbour:
        await harbour.link(harbour.bea, "bea")
        assert await harbour.sees_secret(harbour.bea)
        refused = await harbour.share(harbour.bea, is_public=True)
        shown = (await harbour.bea.client.get("/api/chats/s")).json()["chat"]
    assert (refused.status_code, refused.json()["error"]["code"], shown["share_token"]) == (
        409,
        "chat_shows_others",
        "",
    )


async def test_an_answer_from_the_archive_that_comes_while_a_chat_is_being_shared_is_not_in_what_others_read(
    tmp_path: Path,
) -> None:
    async with open_harbour(tmp_path) as harbour:
        await harbour.link(harbour.bea, "bea")
        token = (await harbour.share(harbour.bea, is_public=True)).json()["share_token"]
        await harbour.ask(harbour.bea, "weather", city="Rome")
        await harbour.share(harbour.bea, is_public=False)
        assert await harbour.sees_secret(harbour.bea)
        async with harbour.web.store.work() as work:  # as if the turn had looked before the chat was shared
            [chat] = await work.chats.list_chats(f"web_user:{harbour.bea.user.id}")
            await work.chats.change(chat.conversation_id, ChatChanges(share_token=token))
        shared = await harbour.web.client().get(f"/api/shared/{token}")
    assert [row["text"] for row in shared.json()["messages"]] == ["Tell me.", "Done."]


async def test_who_left_the_community_reads_nothing_of_it_any_more(tmp_path: Path) -> None:
    async with open_harbour(tmp_path) as harbour:
        await harbour.link(harbour.bea, "bea")
        del harbour.platform.people["bea"]
        assert "Which door" not in await harbour.ask(harbour.bea)


async def test_while_the_platform_is_away_nothing_of_it_is_read(tmp_path: Path) -> None:
    async with open_harbour(tmp_path) as harbour:
        await harbour.link(harbour.bea, "bea")
        harbour.account.fail("list_memberships", Unavailable("away"), times=2)  # asked for gate and archive
        assert not await harbour.sees_secret(harbour.bea)
        harbour.web.clock.advance(KEPT_S + 1)
        assert await harbour.sees_secret(harbour.bea)
        harbour.web.channels.remove(harbour.account)
        assert not await harbour.sees_secret(harbour.bea)


async def test_an_agent_without_an_account_there_looks_into_nothing_there(tmp_path: Path) -> None:
    async with open_harbour(tmp_path) as harbour:
        await harbour.link(harbour.bea, "bea")
        harbour.web.channels.remove(harbour.account)
        harbour.web.channels.add(MemoryChannel(harbour.platform, AgentName("scribe")))
        assert not await harbour.sees_secret(harbour.bea)


async def test_owners_of_the_server_read_no_more_of_a_community_than_its_members_do(tmp_path: Path) -> None:
    async with open_harbour(tmp_path) as harbour:
        admin = await add_user(harbour.web, "adam", RoleName.ADMIN)
        async with sign_in(harbour.web, admin) as adam:
            assert not await harbour.sees_secret(adam)
            await harbour.link(adam, "kim")
            assert not await harbour.sees_secret(adam)


async def test_rules_about_roles_of_the_platform_hold_for_the_linked_member(tmp_path: Path) -> None:
    async with open_harbour(tmp_path, RULES) as harbour:
        harbour.platform.add_person("bea", "Bea", roles=["muted"])
        assert "Sunny" in await harbour.ask(harbour.bea, "weather", city="Rome")
        await harbour.link(harbour.bea, "bea")
        assert "You are muted." in await harbour.ask(harbour.bea, "weather", city="Rome")
        harbour.platform.add_person("bea", "Bea")
        harbour.web.clock.advance(KEPT_S + 1)
        assert "Sunny" in await harbour.ask(harbour.bea, "weather", city="Rome")


async def test_while_roles_are_unknown_what_they_forbid_is_forbidden_and_what_they_allow_is_not_allowed(
    tmp_path: Path,
) -> None:
    async with open_harbour(tmp_path, RULES) as harbour:
        await harbour.link(harbour.bea, "bea")
        harbour.account.fail("list_memberships", Unavailable("away"), times=2)
        assert "You are muted." in await harbour.ask(harbour.bea, "weather", city="Rome")
        assert "Sunny" in await harbour.ask(harbour.kim, "weather", city="Rome")  # who has linked nobody


async def test_a_tool_for_a_role_of_the_platform_is_for_linked_members_who_have_it(tmp_path: Path) -> None:
    policy = GatePolicy(roles=(("weather", frozenset({"role:sailor"})), ("search_archive", frozenset({"owner"}))))
    async with open_harbour(tmp_path) as harbour:
        runtime = harbour.web.runtime
        await runtime.swap(replace(runtime.current, number=8, policy=policy))
        harbour.platform.add_person("bea", "Bea", roles=["sailor", "owner"])
        assert "role:sailor only" in await harbour.ask(harbour.bea, "weather", city="Rome")
        await harbour.link(harbour.bea, "bea")
        assert "Sunny" in await harbour.ask(harbour.bea, "weather", city="Rome")
        assert "owner only" in await harbour.ask(harbour.bea)  # a platform's role of that name is none of this server
        harbour.account.fail("list_memberships", Unavailable("away"), times=1)
        harbour.web.clock.advance(KEPT_S + 1)
        assert "role:sailor only" in await harbour.ask(harbour.bea, "weather", city="Rome")
