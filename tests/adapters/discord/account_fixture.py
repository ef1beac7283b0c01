"""A small world, a listener that writes down what it hears, and accounts that run.

async with running(sim) as (account, heard):
    sim.say("hello")
    await heard.until(lambda: heard.arrivals)
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from denizen.adapters.discord.account import DiscordAccount
from denizen.adapters.discord.client.settings import DiscordAccountSettings, DiscordEndpoints
from denizen.adapters.documents.pdf import read_pdf
from denizen.domain.clock import Clock, SystemClock
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName
from denizen.domain.room import Room
from denizen.ports.channel import (
    ButtonPress,
    CommandCall,
    CommandReply,
    CommandSpec,
    CommunityEvent,
    IncomingMessage,
    ReactionChange,
)
from denizen.testing.discord import DiscordServer, SimApplication, SimChannel, SimMessage
from tests.timing import HANG_LIMIT_S

if TYPE_CHECKING:
    from denizen.adapters.discord.voice.session import VoiceServices

Hook = Callable[..., Awaitable[None]]


class AccountFixture:
    """The guild Harbour with #general, its owner Ana, Ben, and the bot Ada."""

    def __init__(self, discord: DiscordServer) -> None:
        self.discord = discord
        self.world = discord.world
        self.ana = discord.world.add_person("Ana")
        self.ben = discord.world.add_person("Ben")
        self.guild = discord.world.add_guild("Harbour", owner=self.ana)
        self.guild.join(self.ben)
        self.general = self.guild.add_channel("general")
        self.ada = discord.world.add_application("Ada")
        self.guild.join(self.ada.user)

    def say(self, text: str, channel: SimChannel | None = None) -> SimMessage:
        return self.world.say(self.ana, channel or self.general, text)

    def place(self, channel: SimChannel | None = None) -> Place:
        return Place("discord", str((channel or self.general).id))

    def mine(self, channel: SimChannel | None = None) -> list[SimMessage]:
        """What Ada said there."""
        return [each for each in (channel or self.general).messages if each.author is self.ada.user]


class RecordingListener:
    """Implements `ports.channel.Listener`. `on` has a function for each kind of call that should do more."""

    def __init__(self, commands: Sequence[CommandSpec] = ()) -> None:
        self.commands: Sequence[CommandSpec] = commands
        self.log: list[str] = []
        self.ready: list[Sequence[Room]] = []
        self.arrivals: list[IncomingMessage] = []
        self.calls: list[CommandCall] = []
        self.presses: list[ButtonPress] = []
        self.reactions: list[ReactionChange] = []
        self.rooms: list[Room] = []
        self.awaited: frozenset[str] = frozenset()
        self.events: list[CommunityEvent] = []
        self.on: dict[str, Hook] = {}
        self.reply = CommandReply("Done.")
        self.suggestions: Sequence[str] = ()
        self._changed = anyio.Event()

    async def until(self, holds: Callable[[], object], timeout_s: float = HANG_LIMIT_S) -> None:
        with anyio.fail_after(timeout_s):
            while not holds():
                await self._changed.wait()

    def texts(self, room: str = "") -> list[str]:
        return [each.post.text for each in self.arrivals if not room or each.room.id == room]

    async def on_ready(self, rooms: Sequence[Room]) -> None:
        self.ready.append(rooms)
        await self._note("ready", rooms)

    async def on_message(self, message: IncomingMessage) -> None:
        self.arrivals.append(message)
        await self._note(f"{'edit' if message.is_edit else 'message'} {message.post.text}", message)

    async def on_delete(self, room: Room, post_ids: Sequence[str]) -> None:
        await self._note(f"delete {room.id} {' '.join(post_ids)}", room)

    async def on_reaction(self, reaction: ReactionChange) -> None:
        self.reactions.append(reaction)
        await self._note(f"{'reaction' if reaction.is_on else 'unreaction'} {reaction.emoji}", reaction)

    def awaits(self, kind: str) -> bool:
        return kind in self.awaited

    async def on_event(self, event: CommunityEvent) -> None:
        self.events.append(event)
        await self._note(f"event {event.kind}", event)

    async def on_room(self, room: Room) -> None:
        self.rooms.append(room)
        await self._note(f"room {room.name}", room)

    async def on_room_gone(self, platform: str, room_id: str, *, is_deleted: bool) -> None:
        await self._note(f"{'deleted' if is_deleted else 'gone'} {room_id}", room_id)

    async def on_command(self, call: CommandCall) -> CommandReply:
        self.calls.append(call)
        await self._note(f"command {call.name}", call)
        return self.reply

    async def on_suggest(self, call: CommandCall, option: str, typed: str) -> Sequence[str]:
        await self._note(f"suggest {option} {typed}", call)
        return self.suggestions

    async def on_press(self, press: ButtonPress) -> str:
        self.presses.append(press)
        await self._note(f"press {press.value}", press)
        return ""

    async def _note(self, line: str, subject: object) -> None:
        self.log.append(line)
        self._changed.set()
        self._changed = anyio.Event()
        kind = line.split(" ", 1)[0]
        if kind in self.on:
            await self.on[kind](subject)


def waiting_for(event: anyio.Event) -> Hook:
    async def wait(_: object) -> None:
        await event.wait()

    return wait


def settings_for(
    sim: AccountFixture, application: SimApplication | None = None, **changes: object
) -> DiscordAccountSettings:
    """Nothing waits as Discord would want it."""
    application, discord = application or sim.ada, sim.discord
    settings = DiscordAccountSettings(
        AgentName(application.name.lower()),
        application.token,
        DiscordEndpoints(discord.api_url, discord.gateway_url),
        ready_wait_s=0.05,
        identify_pause_s=0.0,
    )
    return replace(settings, **changes)


@asynccontextmanager
async def running(
    sim: AccountFixture,
    heard: RecordingListener | None = None,
    *,
    application: SimApplication | None = None,
    clock: Clock | None = None,
    voice: VoiceServices | None = None,
    **changes: object,
) -> AsyncGenerator[tuple[DiscordAccount, RecordingListener]]:
    """An account that is connected and ready, and what it hears."""
    heard = heard or RecordingListener()
    account = DiscordAccount(settings_for(sim, application, **changes), clock or SystemClock(), read_pdf, voice)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(account.run, heard)
        await heard.until(lambda: heard.ready)
        yield account, heard
        tasks.cancel_scope.cancel()
