"""Connecting an account and catching up on what was missed; and its rooms, as they come and go.

Messages older than the account's limit get one reply together. A room that was never read before is read from now on:
nobody wants answers to last year's questions. But a new room of a guild that was read before was made, or shown to the
account, while it was away; it is read from the newest message that the account knew (ids of posts grow across rooms).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from functools import partial

import anyio

from denizen.domain.errors import (
    Conflict,
    DenizenError,
    InvalidInput,
    NeedsAttention,
    NotAllowed,
    NotFound,
    Unavailable,
)
from denizen.domain.record import record
from denizen.domain.room import Room, RoomKind, is_newer
from denizen.domain.turn import TurnStatus
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.archive.backfill import Backfiller, BackfillPace
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.events.signal import Signal
from denizen.engine.listener.background import BackgroundTasks, run_once
from denizen.engine.listener.context import AccountContext
from denizen.engine.listener.cursors import ReadCursors, before
from denizen.engine.listener.messages import MessageHandler
from denizen.engine.listener.proposals import ProposalReactions
from denizen.engine.listener.reading import MessageReader
from denizen.engine.listener.turn_display import TurnDisplay
from denizen.engine.turn import RESUME_LIMIT
from denizen.ports.archive import CountBy
from denizen.ports.channel import IncomingMessage

PAGE = 100
SIDE_BY_SIDE = 4
RETRY_S = 2.0
MAX_RETRY_S = 60.0
STORE_PAUSE_S = 1.0
ORDER_PATIENCE_S = 30.0
"""How long new messages of a room wait for those that were missed there, which perhaps cannot be read now."""

_log = logging.getLogger("denizen.listener")


class RoomTracker:
    """The rooms of one account: what is kept of them, and from where on they are read."""

    def __init__(
        self, context: AccountContext, cursors: ReadCursors, mirror: ArchiveMirror, proposals: ProposalReactions
    ) -> None:
        self._context = context
        self._cursors = cursors
        self._mirror = mirror
        self._proposals = proposals
        self._new_direct: set[str] = set()

    async def add(self, room: Room) -> None:
        """Keeps a room that is new, or has another name."""
        await self._mirror.rooms([room])
        if self._cursors.find(room.id) is None:
            self._cursors.advance(room.id, room.latest_post or "0")
            await self._cursors.write()

    async def remove(self, room_id: str, *, is_deleted: bool) -> None:
        """A room that is deleted takes along what was said in it; one that the account only left does not."""
        self._cursors.forget(room_id)
        if is_deleted:
            gone = await self._mirror.delete_room(self._context.platform, room_id)
            await self._proposals.forget_room(self._context, room_id)
            _log.info("a room was deleted", extra={"room": room_id, "posts": gone})
        else:
            await self._mirror.close_room(self._context.platform, room_id)

    async def remove_deleted(self, there: Sequence[Room]) -> None:
        """Removes the rooms that were deleted while the account was away.

        The platform is not asked about rooms that are `there`. A room about which it cannot tell stays.
        """
        context, present = self._context, {room.id for room in there}
        pace = BackfillPace(context.clock)
        while True:
            try:
                async with context.store.work(write=False) as work:
                    known = {room.id: room for room in await work.archive.list_rooms(context.platform)}
                    absent = [key for key, room in known.items() if key not in present and room.guild]
                    counts = await work.archive.count(
                        CountBy.ROOM, platform=context.platform, rooms=absent, limit=len(absent)
                    )
                # Only rooms with posts are asked about, and their channels: nothing is to be removed from the others.
                spoken = [known[each.key] for each in counts]
                above = {room.parent: known[room.parent] for room in spoken if room.parent in known}
                asked = {room.id: room for room in (*above.values(), *spoken) if room.id not in present}
                for room_id in await context.channel.find_deleted(list(asked.values())) if asked else ():
                    await self.remove(room_id, is_deleted=True)
            except Unavailable as error:
                await pace.fail(error)
            else:
                return

    async def note_message(self, room: Room, post_id: str) -> None:
        """Reads a room that nobody told of from its first message on.

        Nobody lists direct messages, so such a room is written down before its first message is handled.
        """
        if self._cursors.find(room.id) is None:
            self._cursors.advance(room.id, before(post_id))
            if room.kind is RoomKind.DIRECT:
                self._new_direct.add(room.id)
        if room.id in self._new_direct:
            async with self._context.store.work() as work:
                await work.archive.put_room(room)
            await self._cursors.write()
            self._new_direct.discard(room.id)


class CatchUpReader:
    """Reads what was said in the rooms of one account while it was away, in order, and has it handled."""

    def __init__(self, context: AccountContext, cursors: ReadCursors, messages: MessageHandler) -> None:
        self._context = context
        self._cursors = cursors
        self._messages = messages
        self._unread: Counter[str] = Counter()
        self._read = Signal()

    def plan(self, rooms: Sequence[Room]) -> list[Room]:
        """Returns the rooms in which something was posted since their cursor. Their cursors are held from now on."""
        cursors = self._cursors
        known = {room.guild for room in rooms if room.guild and cursors.find(room.id) is not None}
        newest = cursors.newest
        behind = [room for room in rooms if self._is_behind(room, newest if room.guild in known else "")]
        for room in behind:
            self.hold(room)
        return behind

    def hold(self, room: Room) -> None:
        """Holds the cursor of a room that is going to be read."""
        self._cursors.hold(room.id)
        self._unread[room.id] += 1

    async def wait_until_read(self, room: Room) -> None:
        """Waits until what was missed in the room has been handled: it was said before what arrives now."""
        with anyio.move_on_after(ORDER_PATIENCE_S):
            while self._unread[room.id]:
                await self._read.next.wait()

    async def catch_up(self, behind: Sequence[Room]) -> None:
        """Reads rooms whose cursors are held, a few side by side."""
        limiter = anyio.CapacityLimiter(SIDE_BY_SIDE)
        async with anyio.create_task_group() as group:
            for room in behind:
                group.start_soon(self._catch_up_room, room, limiter)

    def _is_behind(self, room: Room, known: str) -> bool:
        """`known` is where to begin with a room that has no cursor; empty for now."""
        cursor = self._cursors.find(room.id)
        if cursor is None:
            cursor = known or room.latest_post or "0"
            self._cursors.advance(room.id, cursor)
        if room.kind is RoomKind.DIRECT:  # platforms do not tell the newest message of these
            return True
        return is_newer(room.latest_post, cursor)

    async def _catch_up_room(self, room: Room, limiter: anyio.CapacityLimiter) -> None:
        await run_once("catching up", partial(self._read_room, room, limiter))
        self._unread[room.id] -= 1
        self._read.send()

    async def _read_room(self, room: Room, limiter: anyio.CapacityLimiter) -> None:
        """Reads one room until it is read, or cannot be read; then its cursor is released."""
        pause_s = RETRY_S
        while True:
            try:
                async with limiter:
                    await self.read_missed(room)
            except (NotAllowed, NotFound, InvalidInput) as error:
                _log.info("room cannot be read", extra={"room": room.id, **error.fields})
            except DenizenError as error:
                _log.warning("catching up waits", extra={"room": room.id, **error.fields})
                wait_s = error.retry_after_s if isinstance(error, Unavailable) else None
                await anyio.sleep(max(wait_s or 0.0, pause_s))
                pause_s = min(2 * pause_s, MAX_RETRY_S)
                continue
            self._cursors.release(room.id)
            return

    async def read_missed(self, room: Room) -> None:
        """Reads a room from its cursor on, page by page. The cursor stays before the oldest message that waits for the
        common answer.
        """
        late: list[IncomingMessage] = []
        at = self._cursors.find(room.id) or ""
        is_last = False
        while not is_last:
            messages = await self._context.channel.list_arrivals(room, after=at, limit=PAGE)
            is_last = len(messages) < PAGE
            for message in messages:
                at = message.post.id
                await self._messages.collect_late(message, late)
                if not late:
                    self._cursors.advance(room.id, at)
        if late:
            await self._messages.answer_late(late)
        self._cursors.advance(room.id, at)


@record(kw_only=True)
class ConnectionServices:
    """The parts of one account's listener, and of the process, that its connection needs."""

    reader: MessageReader
    messages: MessageHandler
    display: TurnDisplay
    rooms: RoomTracker
    cursors: ReadCursors
    background: BackgroundTasks
    channels: ConnectedAccounts
    mirror: ArchiveMirror
    backfiller: Backfiller


class AccountConnection:
    """Connects one account: goes on where an earlier process stopped, and reads what was missed."""

    def __init__(self, context: AccountContext, services: ConnectionServices) -> None:
        self._context = context
        self._on = services
        self._catch_up = CatchUpReader(context, services.cursors, services.messages)
        self._is_resumed = False
        self._late_rooms: set[str] = set()

    async def connect(self, rooms: Sequence[Room]) -> None:
        """Takes up the rooms of the account. New messages wait until this is done.

        Nobody calls it again when it fails, so it waits for a store that is away or cannot write, and for an earlier
        login of the account that has not quite ended.
        """
        while True:
            try:
                await self._on.mirror.rooms(rooms)
                if not self._is_resumed:
                    await self._resume(rooms)
                await self._start_catching_up(rooms)
            except (Unavailable, NeedsAttention, Conflict) as error:
                agent = self._context.account
                _log.warning(
                    "account waits for the store", extra={"agent": agent, **error.fields, "why": error.explain()}
                )
                await anyio.sleep(STORE_PAUSE_S)
            else:
                return

    async def _start_catching_up(self, rooms: Sequence[Room]) -> None:
        context, on = self._context, self._on
        async with context.store.work(write=False) as work:
            known = await work.archive.list_rooms(context.platform)
        direct = [room for room in known if room.kind is RoomKind.DIRECT and room.id in on.cursors.rooms]
        behind = self._catch_up.plan([*rooms, *direct])
        await on.cursors.write()  # a room is read from the moment in which it was first seen
        on.background.start("catching up", self._catch_up.catch_up, behind)
        on.background.start("looking for deleted rooms", on.rooms.remove_deleted, rooms)
        _log.info("account ready", extra={"agent": context.account, "rooms": len(rooms)})

    async def _resume(self, rooms: Sequence[Room]) -> None:
        """Goes on where an earlier process stopped; once, with the first connection."""
        context, on = self._context, self._on
        await on.cursors.load()
        await on.reader.load()
        await on.mirror.note_account(context.platform, context.channel.user_id, context.account)
        on.channels.add(context.channel)
        async with context.store.work(write=False) as work:
            turns = await work.turns.list_turns(status=TurnStatus.OPEN, limit=RESUME_LIMIT)
            ended = context.turns.left_open - {turn.id for turn in turns}  # before the account was there
            turns = [*turns, *[await work.turns.get(key) for key in ended]]
            places = {turn.id: (await work.conversations.get(turn.conversation_id)).place for turn in turns}
        self._is_resumed = True
        on.background.start_forever("sending", context.outbox.run, context.channel)
        on.background.start("backfill", self._backfill, rooms)
        for turn in turns:
            on.display.show_again(turn, places[turn.id])

    async def wait_until_read(self, room: Room) -> None:
        await self._catch_up.wait_until_read(room)

    async def _backfill(self, rooms: Sequence[Room]) -> None:
        channel = self._context.channel
        run = self._on.backfiller.run  # which writes its progress to the log
        await run(channel, rooms, lambda _progress: None, roles_of=channel.find_roles)

    def read_again(self, room: Room) -> None:
        """Reads a room again in which a message could not be handled, before its cursor moves past the message."""
        if room.id not in self._late_rooms:
            self._late_rooms.add(room.id)
            self._catch_up.hold(room)
            self._on.background.start("reading a message again", self._read_again, room)

    async def _read_again(self, room: Room) -> None:
        await anyio.sleep(STORE_PAUSE_S)
        self._late_rooms.discard(room.id)
        await self._catch_up.catch_up([room])
