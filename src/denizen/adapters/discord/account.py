"""`DiscordAccount`: one login of one agent. Start reading here.

`run` logs in, connects and stays until it is cancelled; everything that happens meanwhile runs in its one task group.
What arrives goes from `client` through `events` and `interactions` into `room_queues`, and from there to the listener.
What the engine wants done goes to `sending`, or is asked of `intake` and `audience`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

import anyio
import anyio.lowlevel
import discord
from anyio.abc import TaskGroup

from denizen.adapters.discord import audience, intake
from denizen.adapters.discord.acting.table import perform
from denizen.adapters.discord.application import (
    Application,
    content_missing,
    intents_of,
    intents_refused,
    load_application,
)
from denizen.adapters.discord.client import GatewayClient
from denizen.adapters.discord.command_sync import CommandSync
from denizen.adapters.discord.deleted import find_deleted
from denizen.adapters.discord.endpoints import set_gateway, use_endpoints
from denizen.adapters.discord.events import Events
from denizen.adapters.discord.faults import RESPONSE_TIMEOUT_S, VENDOR_ERRORS, fault_of, token_refused
from denizen.adapters.discord.hearing import hear
from denizen.adapters.discord.interactions import Interactions
from denizen.adapters.discord.openness import is_open
from denizen.adapters.discord.readiness import Gate, Readiness
from denizen.adapters.discord.room_queues import RoomQueues
from denizen.adapters.discord.sending import Sender
from denizen.adapters.discord.settings import PLATFORM, AccountSettings
from denizen.adapters.discord.typing import show_typing
from denizen.domain.action import Action, Warrant
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.delivery import Content
from denizen.domain.errors import Conflict, DenizenError, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal
from denizen.domain.room import Post, Room
from denizen.ports.channel import IncomingMessage, Listener, MentionNames

_log = logging.getLogger("denizen.discord")

_CLOSING_TIMEOUT_S = 5.0
_AUTHENTICATION_FAILED = 4004

_EVENT_FAULTS = (ValueError, TypeError, AttributeError, LookupError, AssertionError, RuntimeError)
"""What discord.py raises when an event has not the form that it expects; it has closed the connection by then."""


@dataclass(frozen=True, slots=True)
class _Link:
    """What exists while the account is logged in."""

    client: discord.Client
    tasks: TaskGroup
    sender: Sender
    commands: CommandSync
    listener: Listener


class DiscordAccount:
    """Implements `ports.channel.Channel`.

    While it is not logged in nothing can be done: that is Unavailable. What may be unknown is unknown then.
    """

    def __init__(self, settings: AccountSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._user_id = ""
        self._is_running = False
        self._link: _Link | None = None

    @property
    def platform(self) -> str:
        return PLATFORM

    @property
    def agent(self) -> AgentName:
        return self._settings.agent

    @property
    def user_id(self) -> str:
        """Empty before the first login."""
        return self._user_id

    @property
    def is_connected(self) -> bool:
        return self._link is not None

    async def run(self, listener: Listener) -> None:
        """Stays until it is cancelled; may be called again after it has ended.

        discord.py comes back by itself after lost connections. Raises NeedsAttention when the operator has to do
        something (`discord_token_refused`, `discord_intents_refused`), Unavailable when trying again later may help,
        InvalidInput while accounts on another server run, Conflict while it runs already.
        """
        if self._is_running:
            raise Conflict("The account is running already.", code="discord_account_running")
        self._is_running = True
        try:
            with use_endpoints(self._settings.endpoints):
                application = await load_application(self._settings)
                self._user_id = application.user_id
                await self._stay(application, listener)
        finally:
            self._is_running = False

    async def sync_commands(self) -> int:
        """Registers what the listener offers now, and returns how many writes it took. Raises the errors of a channel,
        and InvalidInput for a command that cannot be registered; the others are registered all the same.
        """
        link = self._get_link()
        return await link.commands.sync(link.listener.commands)

    async def post(self, place: Place, content: Content, *, nonce: str, reply_to: str = "", ticket: str = "") -> str:
        return await self._get_link().sender.post(place, content, nonce=nonce, reply_to=reply_to, ticket=ticket)

    async def edit(self, place: Place, message_id: str, content: Content) -> None:
        await self._get_link().sender.edit(place, message_id, content)

    async def delete(self, place: Place, message_id: str) -> None:
        await self._get_link().sender.delete(place, message_id)

    async def react(self, place: Place, message_id: str, emoji: str, *, on: bool = True) -> None:
        await self._get_link().sender.react(place, message_id, emoji, on=on)

    def typing(self, place: Place) -> AbstractAsyncContextManager[None]:
        link = self._link
        if link is None:
            return nullcontext()
        return show_typing(link.tasks, lambda: link.sender.show_typing(place))

    async def open_thread(self, place: Place, message_id: str, title: str) -> Room:
        return await self._get_link().sender.open_thread(place, message_id, title)

    async def list_posts(self, room_id: str, *, before: str = "", after: str = "", limit: int = 100) -> Sequence[Post]:
        return await intake.list_posts(self._get_link().client, room_id, before, after, limit)

    async def list_arrivals(self, room: Room, *, after: str, limit: int = 100) -> Sequence[IncomingMessage]:
        return await intake.list_arrivals(self._get_link().client, room, after, limit)

    async def find_deleted(self, rooms: Sequence[Room]) -> frozenset[str]:
        return await find_deleted(self._get_link().client, rooms)

    async def find_names(self, place: Place, text: str) -> MentionNames:
        return await audience.find_names(self._link.client, place, text) if self._link else MentionNames()

    async def visible_rooms(self, place: Place, principal: Principal) -> frozenset[str]:
        if self._link is None:
            return frozenset({place.thread or place.channel})
        return await audience.visible_rooms(self._link.client, place, principal)

    async def find_roles(self, room_id: str, user_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
        await anyio.lowlevel.checkpoint()
        return audience.find_roles(self._get_link().client, room_id, user_ids)

    async def act(self, action: Action, warrant: Warrant) -> JsonObject:
        return await perform(self._get_link().client, action, warrant)

    async def is_open(self, room: Room) -> bool:
        return is_open(self._get_link().client, room)

    async def may_write(self, place: Place, principal: Principal) -> bool:
        return await audience.may_write(self._get_link().client, place, principal)

    async def may_moderate(self, room_id: str, principal: Principal) -> bool:
        return self._link is not None and await audience.may_moderate(self._link.client, room_id, principal)

    def _get_link(self) -> _Link:
        if self._link is None:
            raise Unavailable(
                f"The Discord account of '{self.agent}' is not connected.",
                code="discord_not_connected",
                fix="Wait until it is; `denizen doctor` says what is wrong when it stays so.",
            )
        return self._link

    async def _stay(self, application: Application, listener: Listener) -> None:
        """Connected until cancelled, or until `discord.py` gives up: then the reason is raised, plain."""
        if not application.content:
            note = {"code": "discord_content_missing", "fix": content_missing(application)}
            _log.warning("the account of '%s' does not see what is written to others", self.agent, extra=note)
        ended: DenizenError = _closed("It was stopped.")
        async with anyio.create_task_group() as tasks:
            client = GatewayClient(intents_of(application, self._settings), self._settings, tasks)
            link = self._make_link(client, application, listener, tasks)
            try:
                ended = await self._converse(client, application, link)
            finally:
                self._link = None
                with anyio.move_on_after(_CLOSING_TIMEOUT_S, shield=True):
                    await client.close()
            tasks.cancel_scope.cancel()
        raise ended

    def _make_link(
        self, client: GatewayClient, application: Application, listener: Listener, tasks: TaskGroup
    ) -> _Link:
        """Everything that exists for this login, wired together."""
        gate = Gate()
        events = Events(client, listener)
        commands = CommandSync(
            client, application.id, guild=self._settings.commands_guild, owned=self._settings.owned_commands
        )

        async def announce() -> None:
            tasks.start_soon(hear, "registering slash commands", self.sync_commands)
            await events.announce()

        readiness = Readiness(gate, announce)
        queues = RoomQueues(tasks, gate, events.catch_up, limit=self._settings.room_limit)
        events.connect(queues, readiness)
        client.tell(events, Interactions(client, listener, queues, tasks))
        tasks.start_soon(readiness.run)
        return _Link(client, tasks, Sender(client, self._clock), commands, listener)

    async def _converse(self, client: GatewayClient, application: Application, link: _Link) -> DenizenError:
        """Returns why it ended: discord.py comes back from everything else."""
        try:
            await self._log_in(client)
            self._link = link
            await client.connect()
        except discord.LoginFailure:
            return token_refused(self._settings.token_setting)
        except discord.PrivilegedIntentsRequired:
            return intents_refused(client.intents, application)
        except discord.ConnectionClosed as error:
            if error.code == _AUTHENTICATION_FAILED:
                return token_refused(self._settings.token_setting)
            return _closed(f"Discord closed it with {error.code}.")
        except VENDOR_ERRORS as error:
            return fault_of(error, "connect")
        except _EVENT_FAULTS as error:
            _log.exception("discord.py does not understand what Discord sent")
            return _closed(f"discord.py does not understand an event: {type(error).__name__}.")
        return _closed("It ended.")

    async def _log_in(self, client: GatewayClient) -> None:
        with anyio.fail_after(RESPONSE_TIMEOUT_S):
            await client.login(self._settings.token)
            endpoints = self._settings.endpoints
            if endpoints.are_own and not endpoints.gateway_url:
                set_gateway((await client.http.get_bot_gateway())[1])


def _closed(why: str) -> Unavailable:
    return Unavailable("The connection to Discord ended.", code="discord_closed", why=why, fix="Connect again later.")
