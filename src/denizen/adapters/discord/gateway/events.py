"""The events of the gateway, queued by room for the listener: messages, edits, deletions, reactions, rooms.

Every call of the listener goes through `call_listener`: it runs the code of others, so everything is caught and
logged there, and nothing ends the account.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

import anyio
import discord
from anyio.abc import TaskGroup

from denizen.adapters.discord.client.settings import PLATFORM
from denizen.adapters.discord.gateway.room_queues import ReadyGate, RoomQueues, ShardReadiness
from denizen.adapters.discord.messages.conversion import (
    get_channel,
    get_text_channel,
    is_readable,
    list_arrivals,
    list_channels,
    list_readable,
    to_incoming_message,
    to_reaction_change,
    to_room,
)
from denizen.adapters.discord.messages.wording import is_conversation
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.ids import fresh
from denizen.domain.record import record
from denizen.domain.room import Room
from denizen.ports.channel import ChannelListener, CommunityEvent, IncomingMessage
from denizen.ports.pdf import ReadPdf

_log = logging.getLogger("denizen.discord")

T = TypeVar("T")


TakeSpoken: TypeAlias = Callable[[str, IncomingMessage], IncomingMessage]
"""Takes a message of the account with its nonce, and returns it as that of the person who has said it aloud, if it is
what the account wrote down of somebody.
"""


@record
class ListenerError:
    """A call of the listener that failed, in words for the person who caused it. Internal errors show only a reference
    for a bug report.

    `is_temporary` means that something outside was unavailable.
    """

    message: str
    is_temporary: bool = False


async def call_listener(doing: str, call: Callable[[], Awaitable[T]]) -> T | ListenerError:
    """Calls the listener and returns the result or the error. `doing` names the call in the log."""
    try:
        return await call()
    except DenizenError as error:
        _log.warning("%s failed: %s", doing, error.message, extra=error.fields)
        return ListenerError(_explain(error), is_temporary=isinstance(error, Unavailable))
    except Exception:  # noqa: BLE001 - the boundary of an event: a fault here must not end the account
        reference = fresh("err")
        _log.exception("%s failed", doing, extra={"reference": reference})
        return ListenerError(f"Something went wrong inside. Reference: {reference}.")


def _explain(error: DenizenError) -> str:
    """Adds the fix only to errors that the person can correct, such as a misspelt name."""
    if isinstance(error, InvalidInput | NotFound) and error.fix:
        return f"{error.message} {error.fix}"
    return error.message


CATCH_UP_PAUSE_S = 5.0

# The most that Discord returns in one request.
_PAGE = 100
_MAX_THINKING = 500
"""Answers to commands that are thinking at the same time; the oldest are forgotten."""


class DiscordEvents:
    """The events of one login, queued by room for the listener.

    `queues` takes the calls that a room has to hear in order. `sync_commands` registers the listener's slash commands.
    """

    def __init__(
        self,
        client: discord.Client,
        listener: ChannelListener,
        tasks: TaskGroup,
        *,
        room_limit: int,
        sync_commands: Callable[[], Awaitable[object]],
        read_pdf: ReadPdf,
        take_spoken: TakeSpoken,
    ) -> None:
        self._client = client
        self._listener = listener
        self._tasks = tasks
        self._sync_commands = sync_commands
        self._read_pdf = read_pdf
        self._take_spoken = take_spoken
        self._thinking: deque[int] = deque(maxlen=_MAX_THINKING)
        gate = ReadyGate()
        self._readiness = ShardReadiness(gate, self._announce)
        self.queues = RoomQueues(tasks, gate, self._catch_up, limit=room_limit)

    async def run(self) -> None:
        """Announces each fresh login to the listener, until cancelled."""
        await self._readiness.run()

    async def _announce(self) -> None:
        async def call() -> None:
            await self._listener.on_ready(await list_readable(self._client))

        # Registering commands takes many requests; the listener must not wait for them.
        self._tasks.start_soon(call_listener, "registering slash commands", self._sync_commands)
        await call_listener("on_ready", call)

    async def _catch_up(self, room_id: str, first_id: str) -> None:
        """Reads a message and all later ones of its room from Discord, and retries while Discord is unavailable."""
        after = str(int(first_id) - 1)

        async def call() -> None:
            nonlocal after
            room = to_room(await get_channel(self._client, int(room_id)))
            while arrivals := await list_arrivals(self._client, room, after, _PAGE, self._read_pdf):
                for arrival in arrivals:
                    await call_listener("on_message", lambda arrival=arrival: self._listener.on_message(arrival))
                after = arrivals[-1].post.id

        while True:
            end = await call_listener("catching up", call)
            if not (isinstance(end, ListenerError) and end.is_temporary):
                return
            await anyio.sleep(CATCH_UP_PAUSE_S)

    def start_shard(self, shard: int, *, shards: int) -> None:
        """Notes the guilds of a shard that logged in afresh. Each is announced later, even if it is there already."""
        waited_for = [guild.id for guild in self._client.guilds if guild.shard_id == shard]
        self._readiness.begin(shard, waited_for, shards=shards)

    def finish_shard(self, shard: int) -> None:
        self._readiness.end(shard)

    def add_guild(self, guild: discord.Guild) -> None:
        """Handles a guild at a login, after an outage, or after a join; in the last two cases its past is unknown."""
        if not self._readiness.take(guild.shard_id, guild.id):
            self._readiness.repeat()

    def remove_guild(self, guild: discord.Guild) -> None:
        for channel in list_channels(guild):
            self.remove_room(channel.id, is_deleted=False)

    def add_message(self, message: discord.Message) -> None:
        """Queues a message. An answer that only shows "is thinking" is queued when its text arrives."""
        if message.flags.loading and self._is_mine(message):
            self._thinking.append(message.id)
        if is_conversation(message):
            room_id = str(message.channel.id)
            self.queues.put(room_id, lambda: self._deliver_message(message), message_id=str(message.id))

    def edit_message(self, message: discord.Message) -> None:
        """Queues an edit, or an answer that was thinking and now has its text, which counts as new.

        Discord also sends an edit when it adds the preview of a link; that is ignored.
        """
        if not is_conversation(message):
            return
        is_new = message.id in self._thinking or (self._is_mine(message) and message.edited_at is None)
        if is_new or message.edited_at is not None:
            self.queues.put(str(message.channel.id), lambda: self._deliver_message(message, is_edit=not is_new))
        if message.id in self._thinking:
            self._thinking.remove(message.id)

    def delete_messages(self, channel_id: int, message_ids: Sequence[int], guild_id: int | None) -> None:
        ids = [str(each) for each in sorted(message_ids)]

        async def call() -> None:
            await self._listener.on_delete(await self._load_room(channel_id, guild_id), ids)

        self.queues.put(str(channel_id), lambda: call_listener("on_delete", call))

    def change_reaction(self, event: discord.RawReactionActionEvent, *, is_on: bool) -> None:
        """Queues a reaction, unless the account put it there itself."""
        if self._client.user is not None and event.user_id == self._client.user.id:
            return

        async def call() -> None:
            room = await self._load_room(event.channel_id, event.guild_id)
            await self._listener.on_reaction(to_reaction_change(event, room, is_on=is_on))

        self.queues.put(str(event.channel_id), lambda: call_listener("on_reaction", call))

    def add_room(self, channel: discord.abc.GuildChannel | discord.Thread) -> None:
        """Queues a room that is new or renamed."""
        if isinstance(channel, discord.CategoryChannel) or not is_readable(channel):
            return
        room = to_room(channel)
        self.queues.put(room.id, lambda: call_listener("on_room", lambda: self._listener.on_room(room)))

    def change_room(
        self, before: discord.abc.GuildChannel | discord.Thread, after: discord.abc.GuildChannel | discord.Thread
    ) -> None:
        if before.name != after.name or is_readable(before) != is_readable(after):
            self.add_room(after)

    def add_event(self, guild: discord.Guild, kind: str, describe: Callable[[], Iterable[CommunityEvent]]) -> None:
        """Queues what happened in a guild, if anybody waits for it."""
        if not self._listener.awaits(kind):
            return
        for event in describe():
            self.queues.put(
                f"guild {guild.id}",
                lambda event=event: call_listener("on_event", lambda: self._listener.on_event(event)),
            )

    def remove_room(self, channel_id: int, *, is_deleted: bool) -> None:
        room_id = str(channel_id)

        async def call() -> None:
            await self._listener.on_room_gone(PLATFORM, room_id, is_deleted=is_deleted)

        self.queues.put(room_id, lambda: call_listener("on_room_gone", call))

    def _is_mine(self, message: discord.Message) -> bool:
        return self._client.user is not None and message.author.id == self._client.user.id

    async def _deliver_message(self, message: discord.Message, *, is_edit: bool = False) -> None:
        async def call() -> None:
            me = self._client.user
            if me is None:
                return
            if isinstance(message.channel, discord.PartialMessageable):
                message.channel = await get_text_channel(self._client, message.channel.id)
            arrived = to_incoming_message(message, me, self._read_pdf, is_edit=is_edit)
            if arrived.is_mine and message.nonce is not None:
                arrived = self._take_spoken(str(message.nonce), arrived)
            await self._listener.on_message(arrived)

        await call_listener("on_message", call)

    async def _load_room(self, channel_id: int, guild_id: int | None) -> Room:
        """Returns the room, or a bare one if it is not known any more: its deletions count all the same."""
        try:
            return to_room(await get_channel(self._client, channel_id))
        except (NotFound, NotAllowed):
            return Room(PLATFORM, str(channel_id), "", guild=str(guild_id or ""))
