"""`/schedules` on a real configuration: on a platform, in chats and at the terminal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from denizen.app.build import Denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.app.schedule_configuration import HomeSchedules
from denizen.app.terminal import TerminalService
from denizen.domain.attention import AccountPolicy, AccountStaff, assign_roles
from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.room import Room, RoomKind
from denizen.domain.schedule import DeliveryRoute, Schedule, ScheduleDelivery
from denizen.engine.commands.chat_commands import ChatCommand, ChatCommands, CommandDone
from denizen.engine.commands.command import CallerContext, CommandDeps
from denizen.engine.commands.dispatch import CommandDispatcher
from denizen.ports.channel import CommandReply
from tests.app.home_folder import Home, open_home
from tests.app.test_schedules import DISCORD, ROOM, TEXT
from tests.engine.commands.command_fixture import (
    ADA,
    ANA,
    BEN,
    ZOE,
    Person,
    RecordingUserData,
    command_call,
    find_names,
)

pytestmark = pytest.mark.anyio

POLICY = AccountPolicy(staff=AccountStaff(owners=frozenset({ZOE.id}), admins=frozenset({BEN.id})))
"""Zoe is an owner, Ben an admin, Ana neither."""
DIRECT = Room("discord", "77", "Zoe", kind=RoomKind.DIRECT)


async def _open_no_turn(*_: object, **__: object) -> None:
    raise AssertionError("no command about schedules opens a turn")


@dataclass
class Server:
    """A home folder with an account on Discord whose commands are given by hand."""

    home: Home
    denizen: Denizen
    commands: CommandDispatcher

    @property
    def text(self) -> str:
        return self.home.config.read_text(encoding="utf-8")

    def schedule(self, name: str) -> Schedule:
        return self.denizen.runtime.current.schedules[name]

    async def give(self, text: str, who: Person = ZOE, room: Room = ROOM) -> str:
        """As a message that begins with a slash. Returns the reply."""
        typed = self.commands.parse_text(text)
        assert typed is not None
        return (await self.slash(typed.group, typed.options, who, room)).text

    async def slash(
        self, group: str, options: Mapping[str, str], who: Person = ZOE, room: Room = ROOM, key: str = ""
    ) -> CommandReply:
        call = command_call("schedules", group, options, who=who, room=room)
        call = replace(call, id=key or call.id)
        return await self.commands.run(call, self.caller(who))

    def caller(self, who: Person) -> CallerContext:
        principal = Principal(
            PrincipalKind.PLATFORM_USER, f"discord:{who.id}", who.name, assign_roles(who.id, who.roles, POLICY.staff)
        )
        return CallerContext(
            account=self.denizen.runtime.current.default_agent,
            account_policy=POLICY,
            principal=principal,
            find_session_place=lambda agent: ROOM.place,
            find_names=find_names,
        )


@asynccontextmanager
async def open_server(home: Home) -> AsyncGenerator[Server]:
    home.add_file("secrets.env", "TOKEN=very-secret-token\n", 0o600)
    async with open_home(home, TEXT + DISCORD) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        denizen.own_schedules.open_configuration(HomeSchedules(denizen.schedule_catalog, files))
        async with denizen.services.store.work() as work:
            await work.archive.put_room(ROOM)
        commands = CommandDispatcher(
            CommandDeps(
                runtime=denizen.runtime,
                services=denizen.services,
                open_turn=_open_no_turn,
                lock_session=denizen.turns.hold,
                user_data=RecordingUserData(),
                catalogs=denizen.catalogs,
            )
        )
        yield Server(home, denizen, commands)


@pytest.mark.proves("T33-command")
async def test_an_owner_adds_sees_switches_runs_and_removes_a_schedule_where_they_are(home: Home) -> None:
    async with open_server(home) as server:
        added = await server.give("/schedules add tea when: every Monday at 9 prompt: Tell what is new: all of it.")
        assert added.startswith("Added.\n- tea  every Monday at 9 (0 9 * * mon)  next Mon ")
        made = server.schedule("tea")
        assert (made.prompt, made.agent, made.owner) == ("Tell what is new: all of it.", "denizen", "")
        assert made.conduct.delivery == ScheduleDelivery(DeliveryRoute.CHANNEL, "discord", "12")
        assert server.text.startswith(TEXT.partition("schedules")[0]) and "# Every morning." in server.text
        listed = await server.give("/schedules list")
        assert [line.split()[1] for line in listed.splitlines()] == ["news", "tea"]
        assert "off" in await server.give("/schedules off tea")
        assert not server.schedule("tea").enabled and "enabled: false" in server.text
        assert "next Mon" in await server.give("/schedules on tea")
        assert "begins in a moment" in await server.give("/schedules run tea")
        assert "runs at the moment" in await server.give("/schedules run tea")
        assert "  tea  waiting  asked for by platform_user:discord:9" in await server.give("/schedules history tea")
        assert (await server.give("/schedules remove tea")).startswith("tea is removed.")
        assert server.text == TEXT + DISCORD
        once = await server.give("/schedules add once when: in 3 hours prompt: Tea. deliver: nowhere")
        assert "stay in its session" in once and server.schedule("once").at is not None
        assert server.schedule("once").conduct.delivery == ScheduleDelivery()


async def test_in_a_direct_message_the_answers_go_to_the_person(home: Home) -> None:
    async with open_server(home) as server:
        await server.give("/schedules add tea when: 0 9 * * * prompt: Tea.", room=DIRECT)
        assert server.schedule("tea").conduct.delivery == ScheduleDelivery(DeliveryRoute.DIRECT, "discord", ZOE.id)


async def test_on_github_where_nothing_is_delivered_the_answers_stay_in_the_session(home: Home) -> None:
    async with open_server(home) as server:
        issue = Room("github", "acme/boats#7", "Boats", guild="acme/boats")
        added = await server.give("/schedules add tea when: 0 9 * * * prompt: Tea.", room=issue)
        assert added.startswith("Added. Its answers stay in its session.")
        assert server.schedule("tea").conduct.delivery == ScheduleDelivery()


async def test_admins_see_and_run_schedules_owners_alone_change_them_and_others_see_none(home: Home) -> None:
    async with open_server(home) as server:
        for group, options in (("list", {}), ("history", {}), ("run", {"name": "news"})):
            assert not (await server.slash(group, options, BEN)).is_failure
            assert "for admins only" in (await server.slash(group, options, ANA)).text
        changes = {"on": {"name": "news"}, "off": {"name": "news"}, "remove": {"name": "news"}}
        changes["add"] = {"name": "tea", "when": "@daily", "prompt": "Tea."}
        for group, options in changes.items():
            for who in (ANA, BEN):
                assert f"/schedules {group} is for owners only" in (await server.slash(group, options, who)).text
        call = command_call("schedules", "off", {}, who=BEN, room=ROOM)
        assert await server.commands.suggest(call, "name", "ne", server.caller(BEN)) == []
        assert await server.commands.suggest(call, "name", "ne", server.caller(ZOE)) == ["news"]
        assert server.text == TEXT + DISCORD


async def test_no_text_of_a_command_names_a_variable_of_the_environment(home: Home) -> None:
    async with open_server(home) as server:
        for option in ("when", "zone", "agent", "name"):
            options = {"name": "tea", "when": "@daily", "prompt": "x", option: "${TOKEN}"}
            reply = await server.slash("add", options)
            assert reply.is_failure and "very-secret-token" not in reply.text
        added = await server.slash("add", {"name": "tea", "when": "@daily", "prompt": "Say ${TOKEN} and $${TOKEN}."})
        assert not added.is_failure
        assert server.schedule("tea").prompt == "Say ${TOKEN} and $${TOKEN}."
        assert server.schedule("tea").written.prompt == "Say $${TOKEN} and $$${TOKEN}."


async def test_what_cannot_run_is_refused_with_the_reason_and_the_same_run_is_asked_for_once(home: Home) -> None:
    async with open_server(home) as server:
        wrong = {
            "/schedules add tea when: every 5 hours prompt: x": "5 hours do not divide 24",
            "/schedules add news when: @daily prompt: x": "There is a schedule 'news' already",
            "/schedules add tea when: @daily": "`prompt` is missing",
            "/schedules off nws": "Did you mean 'news'?",
            "/schedules pause news": "/schedules has no 'pause'",
        }
        for typed, why in wrong.items():
            assert why in await server.give(typed)
        assert server.text == TEXT + DISCORD
        for _ in range(2):
            assert not (await server.slash("run", {"name": "news"}, key="once")).is_failure
        assert len(await server.denizen.schedule_catalog.list_runs("news")) == 1


async def test_it_is_given_in_chats_of_the_web_where_answers_stay_in_the_session(home: Home) -> None:
    async with open_server(home) as server:
        denizen = server.denizen
        commands = ChatCommands(denizen.runtime, denizen.services, denizen.turns, denizen.chats, denizen.catalogs)
        roles = frozenset({RoleName.OWNER, RoleName.ADMIN, RoleName.MEMBER})
        olga = Principal(PrincipalKind.WEB_USER, "user_olga", "Olga", roles)
        typed = ChatCommand(
            text="/schedules add tea when: every day at 9 prompt: Tea.", caller=olga, session="s", key="k"
        )
        [done] = [each async for each in commands.run(typed)]
        assert isinstance(done, CommandDone) and "Its answers stay in its session." in done.reply.text
        assert server.schedule("tea").conduct.delivery == ScheduleDelivery()


async def test_it_is_given_at_the_terminal(home: Home) -> None:
    async with open_server(home) as server:
        terminal = TerminalService(server.denizen)
        assert (await terminal.run_schedules("", ADA)).startswith("- news  0 9 * * *  next ")
        await terminal.run_schedules("add tea when: every day at 9 prompt: Say ${TOKEN}.", "denizen")
        assert (server.schedule("tea").prompt, server.schedule("tea").agent) == ("Say ${TOKEN}.", "denizen")
        with pytest.raises(InvalidInput, match="`when` is missing"):
            await terminal.run_schedules("add tea", "denizen")
        with pytest.raises(DenizenError, match="There is no schedule"):
            await terminal.run_schedules("remove nothing", "denizen")
        await terminal.run_schedules("remove tea", "denizen")
        assert server.text == TEXT + DISCORD


async def test_a_time_zone_in_a_variable_stays_unnamed_in_lists_and_does_not_break_them(home: Home) -> None:
    home.add_file("secrets.env", "ZONE=Asia/Tokyo\n", 0o600)
    async with open_home(home, TEXT.replace("# at nine\n", "# at nine\n    zone: ${ZONE}\n")) as denizen:
        listed = await TerminalService(denizen).run_schedules("list", "denizen")
        assert " 09:00 ${ZONE}" in listed and "Tokyo" not in listed
