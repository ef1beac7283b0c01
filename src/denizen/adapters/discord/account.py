"""`DiscordAccount`: one login of one agent on Discord. Start reading here.

`run` logs in, connects and stays until it is cancelled. Everything that happens meanwhile runs in its one task
group. Events go from `gateway.client` through `gateway.events` and `interactions` into the room queues, and from
there to the listener. The engine's requests go to `messages.sending`, or are answered by `messages.conversion` and
`guild.audience`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import discord
from anyio.abc import TaskGroup

from denizen.adapters.discord.actions.registry import check_action, perform_action
from denizen.adapters.discord.client.application import (
    DiscordApplication,
    choose_intents,
    explain_missing_content,
    explain_missing_members,
    explain_refused_intents,
    load_application,
)
from denizen.adapters.discord.client.errors import (
    RESPONSE_TIMEOUT_S,
    VENDOR_ERRORS,
    explain_refused_token,
    translate_error,
)
from denizen.adapters.discord.client.http import set_gateway, use_endpoints
from denizen.adapters.discord.client.settings import PLATFORM, DiscordAccountSettings
from denizen.adapters.discord.commands import CommandSync
from denizen.adapters.discord.gateway.client import GatewayClient
from denizen.adapters.discord.gateway.events import DiscordEvents
from denizen.adapters.discord.gateway.tolerance import UNREADABLE
from denizen.adapters.discord.guild import audience
from denizen.adapters.discord.guild.audience import find_deleted, is_open
from denizen.adapters.discord.interactions import DiscordInteractions
from denizen.adapters.discord.messages import conversion
from denizen.adapters.discord.messages.sending import MessageSender, show_typing
from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.clock import Clock
from denizen.domain.cloud_event import JOIN
from denizen.domain.conversation import Place
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import Conflict, DenizenError, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.room import Post, Room
from denizen.ports.channel import ChannelListener, EnterRoom, IncomingMessage, MembershipList, MentionNames
from denizen.ports.pdf import ReadPdf

if TYPE_CHECKING:  # the packages of the extra `voice` may be missing
    from denizen.adapters.discord.voice.session import VoiceServices

_log = logging.getLogger("denizen.discord")

# A close handshake with a dead gateway would never end.
_CLOSING_TIMEOUT_S = 5.0
# The close code of the gateway for a wrong token.
_AUTHENTICATION_FAILED = 4004


@record
class _Login:
    """The objects that exist while the account is logged in."""

    client: GatewayClient
    tasks: TaskGroup
    sender: MessageSender
    commands: CommandSync
    listener: ChannelListener


class DiscordAccount:
    """The Discord account of one agent. Implements `ports.channel.Channel`.

    Methods raise Unavailable while the account is not logged in, except those that may answer "unknown".
    """

    def __init__(
        self, settings: DiscordAccountSettings, clock: Clock, read_pdf: ReadPdf, voice: VoiceServices | None = None
    ) -> None:
        self._settings = replace(settings, has_voice=voice is not None)
        self._voice = voice
        self._clock = clock
        self._read_pdf = read_pdf
        self._user_id = ""
        self._is_running = False
        self._login: _Login | None = None

    @property
    def platform(self) -> str:
        return PLATFORM

    @property
    def agent(self) -> AgentName:
        return self._settings.agent

    @property
    def user_id(self) -> str:
        """The account's user id; empty before the first login."""
        return self._user_id

    @property
    def is_connected(self) -> bool:
        return self._login is not None

    @property
    def is_listening(self) -> bool:
        """Whether events come in now. discord.py may be reconnecting while the account is logged in."""
        return self._login is not None and self._login.client.is_listening

    @property
    def shards(self) -> tuple[int, int] | None:
        """How many shards are connected, and of how many; None while it is not logged in."""
        return None if self._login is None else self._login.client.count_shards()

    async def run(self, listener: ChannelListener) -> None:
        """Connects, and stays connected until it is cancelled. It may be called again after it has ended.

        discord.py reconnects by itself after lost connections. Raises NeedsAttention when the operator has to do
        something (`discord_token_refused`, `discord_intents_refused`), Unavailable when a later try may succeed,
        InvalidInput while accounts on another server run, and Conflict while it runs already.
        """
        if self._is_running:
            raise Conflict("The account is running already.", code="discord_account_running")
        self._is_running = True
        try:
            with use_endpoints(self._settings.endpoints):
                application = await load_application(self._settings)
                self._user_id = application.user_id
                if not application.content:
                    note = {"code": "discord_content_missing", "fix": explain_missing_content(application)}
                    _log.warning("the account of '%s' does not see what is written to others", self.agent, extra=note)
                if listener.awaits(JOIN) and not choose_intents(application, self._settings).members:
                    note = {"code": "discord_members_missing", "fix": explain_missing_members(application)}
                    _log.warning("the account of '%s' does not see who comes and leaves", self.agent, extra=note)
                ended: DenizenError = _make_closed_error("It was stopped.")
                async with anyio.create_task_group() as tasks:
                    login = self._make_login(application, listener, tasks)
                    try:
                        ended = await self._connect(application, login)
                    finally:
                        self._login = None
                        with anyio.move_on_after(_CLOSING_TIMEOUT_S, shield=True) as closing:
                            await login.client.close()
                        if closing.cancelled_caught:  # what it waited for comes before its connections
                            with anyio.CancelScope(shield=True):
                                await login.client.http.close()
                    tasks.cancel_scope.cancel()
                raise ended
        finally:
            self._is_running = False

    async def sync_commands(self) -> int:
        """Registers the commands that the listener offers now, and returns the number of writes. Raises the errors of a
        channel, and InvalidInput for a command that cannot be registered; the others are registered all the same.
        """
        login = self._get_login()
        return await login.commands.sync(login.listener.commands)

    async def post(
        self,
        place: Place,
        content: MessageContent,
        *,
        nonce: str,
        reply_to: str = "",
        ticket: str = "",
        goes_on: bool = False,
        is_preview: bool = False,
    ) -> str:
        """Posts, and speaks what it posts where it talks with the people of a voice channel."""
        login = self._get_login()
        posted = await login.sender.post(place, content, nonce=nonce, reply_to=reply_to, ticket=ticket, goes_on=goes_on)
        if login.client.voice is not None and not is_preview and not place.thread:
            login.client.voice.speak_answer(place.channel, content.text)
        return posted

    async def edit(self, place: Place, message_id: str, content: MessageContent) -> None:
        await self._get_login().sender.edit(place, message_id, content)

    async def delete(self, place: Place, message_id: str) -> None:
        await self._get_login().sender.delete(place, message_id)

    async def react(self, place: Place, message_id: str, emoji: str, *, on: bool = True) -> None:
        await self._get_login().sender.react(place, message_id, emoji, on=on)

    def typing(self, place: Place) -> AbstractAsyncContextManager[None]:
        login = self._login
        if login is None:
            return nullcontext()
        return show_typing(login.tasks, lambda: login.sender.show_typing(place))

    async def open_thread(self, place: Place, message_id: str, title: str) -> Room:
        return await self._get_login().sender.open_thread(place, message_id, title)

    async def open_direct(self, user_id: str) -> Place:
        return await self._get_login().sender.open_direct(user_id)

    async def list_posts(self, room_id: str, *, before: str = "", after: str = "", limit: int = 100) -> Sequence[Post]:
        return await conversion.list_posts(self._get_login().client, room_id, before, after, limit)

    async def list_arrivals(self, room: Room, *, after: str, limit: int = 100) -> Sequence[IncomingMessage]:
        return await conversion.list_arrivals(self._get_login().client, room, after, limit, self._read_pdf)

    async def find_deleted(self, rooms: Sequence[Room]) -> frozenset[str]:
        return await find_deleted(self._get_login().client, rooms)

    async def find_names(self, place: Place, text: str) -> MentionNames:
        return await audience.find_names(self._login.client, place, text) if self._login else MentionNames()

    async def visible_rooms(self, place: Place, principal: Principal) -> frozenset[str]:
        if self._login is None:
            return frozenset({place.thread or place.channel})
        return await audience.list_visible_rooms(self._login.client, place, principal)

    async def list_memberships(self, user_id: str) -> MembershipList:
        if self._login is None:
            return MembershipList(is_complete=False)
        return await audience.list_memberships(self._login.client, user_id)

    async def find_roles(self, room_id: str, user_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
        await anyio.lowlevel.checkpoint()
        return audience.find_roles(self._get_login().client, room_id, user_ids)

    async def act(self, action: PlatformAction, warrant: OnBehalfOf, *, enter: EnterRoom) -> JsonObject:
        return await perform_action(self._get_login().client, action, warrant, enter=enter)

    async def check_action(self, action: PlatformAction, warrant: OnBehalfOf) -> None:
        await check_action(self._get_login().client, action, warrant)

    async def is_open(self, room: Room) -> bool:
        return is_open(self._get_login().client, room)

    async def may_write(self, place: Place, principal: Principal) -> bool:
        return await audience.may_write(self._get_login().client, place, principal)

    async def may_post(self, place: Place, *, in_new_thread: bool = False) -> bool:
        await anyio.lowlevel.checkpoint()
        return self._login is None or audience.may_post(self._login.client, place, in_new_thread=in_new_thread)

    async def may_moderate(self, room_id: str, principal: Principal) -> bool:
        return self._login is not None and await audience.may_moderate(self._login.client, room_id, principal)

    def _get_login(self) -> _Login:
        if self._login is None:
            raise Unavailable(
                f"The Discord account of '{self.agent}' is not connected.",
                code="discord_not_connected",
                fix="Wait until it is; `denizen doctor` says what is wrong when it stays so.",
            )
        return self._login

    def _make_login(self, application: DiscordApplication, listener: ChannelListener, tasks: TaskGroup) -> _Login:
        settings = self._settings
        client = GatewayClient(
            choose_intents(application, settings),
            settings,
            tasks,
            lambda client: self._make_handlers(client, listener, tasks),
        )
        commands = CommandSync(client, application.id, guild=settings.commands_guild, owned=settings.owned_commands)
        if self._voice is not None:
            from denizen.adapters.discord.voice.desk import VoiceDesk

            client.voice = VoiceDesk(client, self._voice, tasks)
        return _Login(client, tasks, MessageSender(client, self._clock), commands, listener)

    def _take_spoken(self, nonce: str, message: IncomingMessage) -> IncomingMessage:
        voice = self._login.client.voice if self._login is not None else None
        return message if voice is None else voice.take_spoken(nonce, message)

    def _make_handlers(
        self, client: discord.Client, listener: ChannelListener, tasks: TaskGroup
    ) -> tuple[DiscordEvents, DiscordInteractions]:
        events = DiscordEvents(
            client,
            listener,
            tasks,
            room_limit=self._settings.room_limit,
            sync_commands=self.sync_commands,
            read_pdf=self._read_pdf,
            take_spoken=self._take_spoken,
        )
        tasks.start_soon(events.run)
        return events, DiscordInteractions(client, listener, events.queues, tasks)

    async def _connect(self, application: DiscordApplication, login: _Login) -> DenizenError:
        """Connects, and returns the reason for which the connection ended for good."""
        client, endpoints = login.client, self._settings.endpoints
        try:
            with anyio.fail_after(RESPONSE_TIMEOUT_S):
                await client.login(self._settings.token)
                if endpoints.are_own and not endpoints.gateway_url:
                    set_gateway((await client.http.get_bot_gateway())[1])
            self._login = login
            await client.connect()
        except discord.LoginFailure:
            return explain_refused_token(self._settings.token_setting)
        except discord.PrivilegedIntentsRequired:
            return explain_refused_intents(client.intents, application)
        except discord.ConnectionClosed as error:
            if error.code == _AUTHENTICATION_FAILED:
                return explain_refused_token(self._settings.token_setting)
            return _make_closed_error(f"Discord closed it with {error.code}.")
        except VENDOR_ERRORS as error:
            return translate_error(error, "connect")
        except UNREADABLE as error:  # in the first event of a connection, which cannot be left out
            _log.exception("discord.py does not understand what Discord sent")
            return _make_closed_error(f"discord.py does not understand an event: {type(error).__name__}.")
        return _make_closed_error("It ended.")


def _make_closed_error(why: str) -> Unavailable:
    return Unavailable("The connection to Discord ended.", code="discord_closed", why=why, fix="Connect again later.")
