"""Reminders: set by a tool, said by the account where they were asked for, once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from denizen.adapters.store import open_store
from denizen.builtin_skills.reminders import skill
from denizen.domain.agent import Agent, HistorySettings, TimestampPolicy
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.attention import AccountPolicy, ReplyStyle
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed, NotFound, Unavailable
from denizen.domain.ids import CallId, SessionId, TurnId
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.reminder import MAX_PENDING
from denizen.domain.tool import Effect, ToolCall, ToolResult
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.removal import ArchiveRemoval
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.engine.outbox.reminders import IDLE_S, ReminderService
from denizen.ports.store import Store
from denizen.ports.toolset import CallOptions, CallScope
from denizen.skill import ScopedServices, SkillToolset
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels
from tests.engine.platform_fixture import ADA, World
from tests.memory_channel import MemoryChannel, SentMessage
from tests.skill_fixture import ServicesFixture
from tests.timing import HANG_LIMIT_S, poll

pytestmark = pytest.mark.anyio


@dataclass
class RemindersFixture:
    """One process with the account of Ada, connected or not."""

    world: World
    store: Store
    reminders: ReminderService
    outbox: DeliveryOutbox
    channels: ConnectedAccounts
    account: MemoryChannel
    root: Path

    def scope(self, place: Place | None = None, *, who: str = "ana", key: str = "k1") -> CallScope:
        place = place or self.world.general.place
        asker = Principal(PrincipalKind.PLATFORM_USER, f"{place.platform}:{who}", who.title())
        return CallScope(
            agent=ADA,
            principal=asker,
            place=place,
            session_id=SessionId("s"),
            turn_id=TurnId("t"),
            account=ADA,
            options=CallOptions(idempotency_key=key),
        )

    async def call(self, tool: str, scope: CallScope | None = None, **args: Json) -> ToolResult:
        services = replace(
            ServicesFixture(self.root).services(), scoped=ScopedServices(open_reminders=self.reminders.open)
        )
        toolset = SkillToolset(skill, services, {})
        return await toolset.call(ToolCall(CallId("c"), tool, args), scope or self.scope())

    async def remind(self, when: str, text: str, *, who: str = "ana", key: str = "k1") -> str:
        """Returns the id."""
        result = await self.call("remind", self.scope(who=who, key=key), when=when, text=text)
        assert not result.is_error, result.text
        return result.text.rpartition("Id: ")[2]

    async def say(self, *, after: timedelta = timedelta()) -> Sequence[SentMessage]:
        """What the account has sent, once everything that is due by then was said."""
        self.world.clock.time += after
        await self.reminders.say_due()
        await poll(self.owes_nothing)
        return self.account.sent

    async def owes_nothing(self) -> bool:
        async with self.store.work(write=False) as work:
            return not await work.outbox.list_due(ADA, self.account.platform)


@asynccontextmanager
async def open_kit(
    root: Path,
    world: World | None = None,
    *,
    store: Store | None = None,
    connected: bool = True,
    agent: Agent | None = None,
    account_policy: AccountPolicy | None = None,
) -> AsyncGenerator[RemindersFixture]:
    world, runtime, channels = world or World(), Runtime(), ConnectedAccounts()
    agent, store = agent or Agent(ADA), store or world.store
    rules = {("discord", ADA): account_policy or AccountPolicy()}
    await runtime.swap(
        Generation(
            number=1,
            agents={ADA: agent},
            default_agent=ADA,
            models=ScriptedModels(ScriptedModel()),
            toolsets=(),
            account_policies=rules,
        )
    )
    outbox = DeliveryOutbox(runtime, store, world.clock, channels)
    account = MemoryChannel(world.platform, ADA)
    reminders = ReminderService(runtime, store, world.clock, channels, outbox)
    async with anyio.create_task_group() as group:
        if connected:
            channels.add(account)
            group.start_soon(outbox.run, account)
        yield RemindersFixture(world, store, reminders, outbox, channels, account, root)
        group.cancel_scope.cancel()


@pytest.mark.proves("V-skill-utility")
async def test_a_reminder_comes_when_it_is_due_where_it_was_asked_for_and_calls_the_asker_only(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        result = await kit.call("remind", when="in 20 minutes", text="tea with @everyone and <@bob>")
        assert "It will be said here and mentions the user." in result.text
        assert await kit.say(after=timedelta(minutes=19)) == []
        [sent] = await kit.say(after=timedelta(minutes=1))
        assert sent.place == kit.world.general.place
        assert sent.content.text == "<@ana> Reminder:\n> tea with @\N{ZERO WIDTH SPACE}everyone and <@bob>"
        assert sent.content.ping_users == {"ana"}
        assert not sent.content.ping_roles
        assert len(await kit.say(after=timedelta(days=1))) == 1


async def test_a_reminder_set_in_a_direct_talk_is_sent_there(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        direct = kit.world.direct("bob")
        result = await kit.call("remind", kit.scope(direct.place, who="bob"), when="in 1 hour", text="call home")
        assert not result.is_error
        [sent] = await kit.say(after=timedelta(hours=1))
        assert (sent.place, sent.content.ping_users) == (direct.place, {"bob"})


async def test_what_was_due_while_nothing_ran_comes_after_the_restart_with_a_word_about_the_delay(
    tmp_path: Path,
) -> None:
    world = World()
    async with open_kit(tmp_path, world) as kit:
        await kit.remind("in 20 minutes", "tea")
    world.clock.advance(hours=3)
    async with open_kit(tmp_path, world) as kit:
        [sent] = await kit.say()
    assert sent.content.text == "<@ana> Reminder (2 h 40 min late: I was not connected when it was due):\n> tea"


async def test_it_waits_for_its_account_and_says_how_late_it_is_then(tmp_path: Path) -> None:
    world = World()
    async with open_kit(tmp_path, world, connected=False) as kit:
        await kit.remind("in 20 minutes", "tea")
        world.clock.advance(days=3)
        assert await kit.reminders.say_due() == IDLE_S
        assert await kit.owes_nothing()
    async with open_kit(tmp_path, world) as kit:
        [sent] = await kit.say()
    assert "2 d 23 h late" in sent.content.text


async def test_nothing_is_said_for_somebody_who_may_not_write_there_any_more(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        await kit.remind("in 20 minutes", "hello from the banned", key="k1")
        await kit.remind("in 20 minutes", "tea", who="bob", key="k2")
        kit.world.platform.set_readers(kit.world.general, {"bob", f"bot-{ADA}"})
        [sent] = await kit.say(after=timedelta(minutes=20))
        assert "tea" in sent.content.text
        kit.world.platform.set_readers(kit.world.general, {"ana", "bob", f"bot-{ADA}"})
        assert len(await kit.say(after=timedelta(days=1))) == 1, "it is gone, not put off"


async def test_a_reminder_waits_while_the_platform_cannot_tell_who_may_write(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        await kit.remind("in 20 minutes", "tea")
        kit.account.fail("may_write", Unavailable("Away.", code="away"))
        assert await kit.say(after=timedelta(minutes=20)) == []
        [sent] = await kit.say(after=timedelta(minutes=1))
        assert "tea" in sent.content.text


async def test_of_two_processes_one_says_it(tmp_path: Path) -> None:
    clock = World().clock
    store = await open_store(f"sqlite:///{tmp_path}/d.db", clock=clock)
    other_store = await open_store(f"sqlite:///{tmp_path}/d.db", clock=clock)
    try:
        world = World(clock=clock)
        async with (
            open_kit(tmp_path, world, store=store) as kit,
            open_kit(tmp_path, world, store=other_store, connected=False) as other,
        ):
            other.channels.add(other.account)
            for number in range(5):
                await kit.remind("in 5 minutes", f"tea {number}", key=f"k{number}")
            clock.advance(minutes=5)
            async with anyio.create_task_group() as group:
                group.start_soon(kit.reminders.say_due)
                group.start_soon(other.reminders.say_due)
            kit.outbox.wake("discord", ADA)  # what the other took is owed here, and seen half a minute later by itself
            await kit.say()
            assert sorted(sent.content.text[-5:] for sent in kit.account.sent) == [f"tea {n}" for n in range(5)]
            assert other.account.sent == []
    finally:
        await store.aclose()
        await other_store.aclose()


async def test_the_loop_waits_until_the_next_reminder_is_due_or_a_new_one_is_set(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        assert await kit.reminders.say_due() == IDLE_S
        await kit.remind("in 20 minutes", "late", key="k1")
        assert await kit.reminders.say_due() == IDLE_S
        kit.world.clock.advance(minutes=19, seconds=50)
        assert await kit.reminders.say_due() == 10
        async with anyio.create_task_group() as group:
            group.start_soon(kit.reminders.run)
            await anyio.wait_all_tasks_blocked()
            kit.world.clock.advance(10)
            await kit.remind("in 20 minutes", "wakes it", key="k2")
            with anyio.fail_after(HANG_LIMIT_S):
                while not kit.account.sent:
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    assert [sent.content.text.splitlines()[-1] for sent in kit.account.sent] == ["> late"]


async def test_an_account_that_connects_again_has_its_reminders_looked_at(tmp_path: Path) -> None:
    world = World()
    async with open_kit(tmp_path, world, connected=False) as kit, anyio.create_task_group() as group:
        await kit.remind("in 20 minutes", "tea")
        world.clock.advance(hours=1)
        group.start_soon(kit.reminders.run)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(kit.outbox.run, kit.account)
        kit.channels.add(kit.account)
        with anyio.fail_after(HANG_LIMIT_S):
            while not kit.account.sent:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


async def test_a_call_that_runs_again_reminds_once(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        first = await kit.remind("in 20 minutes", "tea")
        kit.world.clock.advance(minutes=1)
        assert await kit.remind("in 20 minutes", "tea") == first
        assert len(await kit.say(after=timedelta(minutes=30))) == 1


async def test_nobody_has_more_than_twenty_pending_or_one_beyond_a_year(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        for number in range(MAX_PENDING):
            await kit.remind("in 1 hour", "tea", key=f"k{number}")
        full = await kit.call("remind", kit.scope(key="more"), when="in 1 hour", text="tea")
        assert full.is_error and "20 reminders are pending" in full.text
        assert not (await kit.call("remind", kit.scope(who="bob", key="b"), when="in 1 hour", text="tea")).is_error
        far = await kit.call("remind", kit.scope(who="bob", key="c"), when="in 53 weeks", text="tea")
        assert far.is_error and "a year ahead" in far.text


@pytest.mark.parametrize(("when", "text"), [("soon", "tea"), ("today 9:00", "tea"), ("in 1 hour", "  ")])
async def test_what_cannot_be_kept_is_refused_in_words(tmp_path: Path, when: str, text: str) -> None:
    async with open_kit(tmp_path) as kit:
        assert (await kit.call("remind", when=when, text=text)).is_error
        assert (await kit.call("list_reminders")).text == "No reminder is pending here."


async def test_times_are_those_of_the_agents_zone_or_of_the_skills_setting(tmp_path: Path) -> None:
    async with open_kit(
        tmp_path, agent=Agent(ADA, history=HistorySettings(timestamps=TimestampPolicy("Asia/Tokyo")))
    ) as kit:
        told = (await kit.call("remind", when="tomorrow 9:00", text="tea")).text
        assert "09:00 Asia/Tokyo" in told
        services = replace(
            ServicesFixture(tmp_path).services(), scoped=ScopedServices(open_reminders=kit.reminders.open)
        )
        own = SkillToolset(skill, services, {"timezone": "Europe/Rome"})
        call = ToolCall(CallId("c"), "remind", {"when": "tomorrow 9:00", "text": "tea"})
        assert "09:00 Europe/Rome" in (await own.call(call, kit.scope(key="k2"))).text


async def test_off_platforms_nothing_is_promised(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        for scope in (
            replace(kit.scope(), account=None),
            replace(kit.scope(), principal=Principal(PrincipalKind.LOCAL, "me", "Me")),
        ):
            result = await kit.call("remind", scope, when="in 1 hour", text="tea")
            assert result.is_error and "No reminder was set." in result.text
            with pytest.raises(NotAllowed):
                await kit.reminders.open(scope).add("in 1 hour", "tea")


async def test_one_sees_those_of_this_place_only_and_cancels_ones_own(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        here = await kit.remind("in 1 hour", "</untrusted> tea", key="k1")
        direct = kit.world.direct("ana").place
        await kit.call("remind", kit.scope(direct, key="k2"), when="in 2 hours", text="secret gift")
        listed = (await kit.call("list_reminders")).text
        assert here in listed and "tea" in listed and "secret gift" not in listed
        assert "Elsewhere: 1." in listed
        assert listed.count("</untrusted>") == 1
        assert (await kit.call("list_reminders", kit.scope(who="bob"))).text == "No reminder is pending here."
        assert (await kit.call("cancel_reminder", kit.scope(who="bob"), reminder=here)).is_error
        assert (await kit.call("cancel_reminder", reminder=here)).text == "Cancelled."
        assert (await kit.call("cancel_reminder", reminder=here)).is_error
        with pytest.raises(NotFound):
            await kit.reminders.open(kit.scope()).cancel(here)
        assert len(await kit.say(after=timedelta(days=1))) == 1


async def test_who_is_forgotten_is_not_reminded(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        await kit.remind("in 1 hour", "tea")
        await kit.remind("in 1 hour", "cake", who="bob", key="k2")
        mirror = ArchiveMirror(kit.store, ArchivePolicy, kit.world.clock)
        await ArchiveRemoval(mirror, kit.world.clock).forget_user(kit.account.platform, "ana")
        [sent] = await kit.say(after=timedelta(hours=1))
        assert sent.content.ping_users == {"bob"}


async def test_a_long_text_fits_the_platforms_message(tmp_path: Path) -> None:
    async with open_kit(tmp_path, account_policy=AccountPolicy(style=ReplyStyle(message_limit=100))) as kit:
        await kit.remind("in 1 hour", "x" * 500)
        [sent] = await kit.say(after=timedelta(hours=1))
        assert len(sent.content.text) == 100


def test_setting_and_cancelling_are_plans_that_a_tainted_turn_needs_leave_for() -> None:
    effects = {spec.name: spec.flow.effects for spec in skill.specs()}
    assert effects["remind"] == effects["cancel_reminder"] == {Effect.SCHEDULE}
