"""The listener of one account (`ports/channel`): every event of the account comes through here.

`app/accounts` makes one for each account and runs `run` beside the account's connection. `AccountListener` only hands
events on: to `connection.py` when the account connects, to `messages.py` for a message, to `interactions.py` for
commands and buttons, to `proposals.py` for reactions.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import field

import anyio
from anyio.abc import TaskStatus

from denizen.domain.errors import DenizenError
from denizen.domain.record import record
from denizen.domain.room import Room
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.archive.backfill import Backfiller
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.commands.command import CommandCatalogs, UserDataAccess
from denizen.engine.listener.arbiter import SpeakerArbiter
from denizen.engine.listener.background import BackgroundTasks
from denizen.engine.listener.blocked_rooms import BlockedRooms
from denizen.engine.listener.connection import AccountConnection, ConnectionServices, RoomTracker
from denizen.engine.listener.context import AccountContext
from denizen.engine.listener.cursors import ReadCursors
from denizen.engine.listener.interactions import InteractionHandler, TypedCommands
from denizen.engine.listener.messages import MessageHandler, MessageServices
from denizen.engine.listener.proposals import ProposalReactions
from denizen.engine.listener.reading import MessageReader
from denizen.engine.listener.turn_display import TurnDisplay
from denizen.engine.listener.turn_start import TurnStarter
from denizen.engine.loop.services import EngineServices
from denizen.ports.channel import (
    ButtonPress,
    CommandCall,
    CommandReply,
    CommandSpec,
    CommunityEvent,
    IncomingMessage,
    ReactionChange,
)

_log = logging.getLogger("denizen.listener")


@record(kw_only=True)
class SharedServices:
    """The services that all accounts of a process share, besides the engine itself."""

    services: EngineServices
    channels: ConnectedAccounts
    mirror: ArchiveMirror
    backfiller: Backfiller
    user_data: UserDataAccess
    catalogs: CommandCatalogs
    proposals: ProposalReactions
    arbiter: SpeakerArbiter = field(default_factory=SpeakerArbiter)


class AccountListener:
    """Listens to one account. `run` has to be running while it listens."""

    def __init__(self, context: AccountContext, shared: SharedServices) -> None:
        self.connected = anyio.Event()
        """Set once the account has connected for the first time and hears what is said."""
        self._context = context
        self._shared = shared
        self._background = BackgroundTasks()
        self._cursors = ReadCursors(context.store, context.account, context.platform)
        self._reader = MessageReader(context, self._cursors, lambda: shared.channels.list_platform(context.platform))
        blocked = BlockedRooms(context)
        starter = TurnStarter(context, self._reader, blocked)
        display = TurnDisplay(context, self._background)
        self._interactions = InteractionHandler(
            context,
            self._reader,
            starter,
            display,
            services=shared.services,
            user_data=shared.user_data,
            catalogs=shared.catalogs,
        )
        typed = TypedCommands(context, starter, self._cursors, self._interactions, self._background)
        self._messages = MessageHandler(
            context,
            MessageServices(
                reader=self._reader,
                starter=starter,
                blocked=blocked,
                display=display,
                typed=typed,
                cursors=self._cursors,
                arbiter=shared.arbiter,
                mirror=shared.mirror,
                background=self._background,
            ),
            read_again=self._read_again,
        )
        self._rooms = RoomTracker(context, self._cursors, shared.mirror, shared.proposals)
        self._connection = AccountConnection(
            context,
            ConnectionServices(
                reader=self._reader,
                messages=self._messages,
                display=display,
                rooms=self._rooms,
                cursors=self._cursors,
                background=self._background,
                channels=shared.channels,
                mirror=shared.mirror,
                backfiller=shared.backfiller,
            ),
        )

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Sends, shows and remembers, until it is cancelled. Reports itself started when it may listen."""
        shared = self._shared
        try:
            async with self._background.open():
                self._background.start_forever("writing read cursors", self._cursors.keep_writing)
                shared.arbiter.join(self._reader)
                task_status.started()
                await anyio.sleep_forever()
        finally:
            shared.arbiter.leave(self._reader)
            shared.channels.remove(self._context.channel)

    def _read_again(self, room: Room) -> None:
        # The connection is made after the message handler, which it needs; so the handler cannot have its method.
        self._connection.read_again(room)

    @property
    def is_behind(self) -> bool:
        """Whether missed messages are still being read."""
        return self._cursors.is_behind

    # --- the connection and its rooms --------------------------------------------------------------------------------

    async def on_ready(self, rooms: Sequence[Room]) -> None:
        await self._connection.connect(rooms)
        self.connected.set()

    async def on_room(self, room: Room) -> None:
        await self._rooms.add(room)

    async def on_room_gone(self, platform: str, room_id: str, *, is_deleted: bool) -> None:
        await self._rooms.remove(room_id, is_deleted=is_deleted)

    # --- messages and reactions --------------------------------------------------------------------------------------

    async def on_message(self, message: IncomingMessage) -> None:
        room, post = message.room, message.post
        try:
            await self._rooms.note_message(room, post.id)
            await self._connection.wait_until_read(room)
            await self._messages.handle(message)
        except DenizenError as error:
            if message.is_edit:  # the first text keeps its answer
                raise
            _log.warning("message is handled later", extra={"room": room.id, "post": post.id, **error.fields})
            self._connection.read_again(room)
        else:
            if not message.is_edit:
                if self._context.events is not None:
                    await self._context.events.add_message(message)
                self._cursors.mark_decided(room.id, post.id)

    async def on_delete(self, room: Room, post_ids: Sequence[str]) -> None:
        await self._messages.delete(post_ids)
        if self._context.events is not None:
            await self._context.events.forget_messages(room, post_ids)
        await self._shared.proposals.forget_posts(self._context, post_ids)

    async def on_reaction(self, reaction: ReactionChange) -> None:
        await self._shared.proposals.handle(self._context, reaction)
        if self._context.events is not None:
            await self._context.events.add_reaction(self._context.channel, reaction)

    # --- what else happens -------------------------------------------------------------------------------------------

    def awaits(self, kind: str) -> bool:
        events = self._context.events
        return events is not None and events.awaits(self._context.platform, kind)

    async def on_event(self, event: CommunityEvent) -> None:
        if self._context.events is not None:
            await self._context.events.add(self._context.channel, event)

    # --- commands and buttons ----------------------------------------------------------------------------------------

    @property
    def commands(self) -> Sequence[CommandSpec]:
        return self._interactions.commands

    async def on_command(self, call: CommandCall) -> CommandReply:
        return await self._interactions.run_command(call)

    async def on_suggest(self, call: CommandCall, option: str, typed: str) -> Sequence[str]:
        return await self._interactions.suggest(call, option, typed)

    async def on_press(self, press: ButtonPress) -> str:
        return await self._interactions.press(press)
