"""The listener of one account (`ports/channel`): everything that happens there comes through here.

Made by `app/accounts` for each account, which runs `run` beside the account's connection. A message is mirrored, then
considered; the turn that it begins is shown until it ends, and its answer goes out through the outbox.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus

from denizen.domain.conversation import Place
from denizen.domain.errors import (
    Conflict,
    DenizenError,
    InvalidInput,
    NeedsAttention,
    NotAllowed,
    NotFound,
    Unavailable,
)
from denizen.domain.ids import AgentName, TurnId, fresh
from denizen.domain.room import Room, RoomKind
from denizen.domain.speakers import is_silence
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.archive.backfill import Backfiller
from denizen.engine.archive.mirror import Mirror
from denizen.engine.channels import Channels
from denizen.engine.commands.command import CommandDeps, CustomCommandSet, UserDataAccess
from denizen.engine.commands.dispatch import CommandDispatcher
from denizen.engine.inbox import Inbox
from denizen.engine.listener.arbiter import SpeakerArbiter
from denizen.engine.listener.background import run_forever, run_once
from denizen.engine.listener.connection import CatchUpReader, RoomTracker
from denizen.engine.listener.cursors import ReadCursors
from denizen.engine.listener.interactions import InteractionHandler, TypedCommands
from denizen.engine.listener.proposals import ProposalReactions
from denizen.engine.listener.turn_display import DisplayedTurn, TurnDisplay
from denizen.engine.listener.turn_start import AccountContext, StartedTurn, TurnStarter
from denizen.engine.opening import load_turn, owed_of
from denizen.engine.services import Services
from denizen.engine.turn import RESUME_LIMIT
from denizen.ports.channel import ButtonPress, CommandCall, CommandReply, CommandSpec, IncomingMessage, ReactionChange

STORE_PAUSE_S = 1.0

_log = logging.getLogger("denizen.resident")


@dataclass(frozen=True, slots=True)
class SharedServices:
    """What all accounts of a process share, besides the engine itself."""

    services: Services
    channels: Channels
    mirror: Mirror
    backfiller: Backfiller
    privacy: UserDataAccess
    proposing: ProposalReactions
    arbiter: SpeakerArbiter = field(default_factory=SpeakerArbiter)


class AccountListener:
    """One account. `run` has to be running while it listens."""

    def __init__(self, desk: AccountContext, household: SharedServices) -> None:
        self._desk = desk
        self._household = household
        platform = desk.channel.platform
        self._receiver = TurnStarter(
            desk, lambda: household.channels.list_platform(platform), gives_way=household.arbiter.silences,
            hears=lambda room: self._positions.find(room) is not None,
        )  # fmt: skip
        self._positions = ReadCursors(desk.store, desk.account, desk.channel.platform)
        self._rooms = RoomTracker(desk, self._positions, household.mirror, household.proposing)
        self._missed = CatchUpReader(
            self._receiver, self._positions, hear=self._hear, mirror=self._mirror, began=self._show,
            look_back=self._look_back,
        )  # fmt: skip
        self._asking = InteractionHandler(self._receiver, self._show)
        self._showing = TurnDisplay(desk.channel, desk.turns, desk.outbox, desk.clock)
        self._commands = CommandDispatcher(
            CommandDeps(
                desk.runtime, household.services, self._asking.open_turn, desk.turns.hold, household.privacy,
                self._customs,
            )
        )  # fmt: skip
        self._typed = TypedCommands(
            self._receiver, self._positions, self._commands, self._asking,
            start=lambda arrival, call: self._start("a command", self._typed.obey, arrival, call),
        )  # fmt: skip
        self._group: TaskGroup | None = None
        self._is_settled = False
        self._inbox = Inbox()
        self._late: set[str] = set()
        self._waiting: dict[str, IncomingMessage] = {}
        """Questions that other agents answer first."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Sends, shows and remembers, until it is cancelled. Started when it may listen."""
        household = self._household
        channel, channels = self._desk.channel, household.channels
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                group.start_soon(run_forever, "writing positions", self._positions.keep_writing)
                household.arbiter.join(self._receiver)
                task_status.started()
                await anyio.sleep_forever()
        finally:
            self._group = None
            household.arbiter.leave(self._receiver)
            channels.remove(channel)

    @property
    def _tasks(self) -> TaskGroup:
        if self._group is None:
            raise RuntimeError("an account is heard only while its resident runs")
        return self._group

    def _start(self, doing: str, work: Callable[..., Awaitable[object]], *args: object) -> None:
        """Beside everything else; a fault in it ends nothing but itself."""
        self._tasks.start_soon(run_once, doing, partial(work, *args))

    @property
    def is_behind(self) -> bool:
        """Whether what was missed is still being read."""
        return self._positions.is_behind

    # --- the connection ----------------------------------------------------------------------------------------------

    @property
    def commands(self) -> Sequence[CommandSpec]:
        return self._commands.specs(self._desk.account)

    async def on_ready(self, rooms: Sequence[Room]) -> None:
        """New messages wait until this is done, and it is not told again: a store that is away, or cannot write, is
        waited for, and so is an earlier login of the account that has not quite ended.
        """
        while True:
            try:
                await self._take_stock(rooms)
            except (Unavailable, NeedsAttention, Conflict) as error:
                _log.warning("account waits for the store", extra={"agent": self._desk.account, "why": error.message})
                await anyio.sleep(STORE_PAUSE_S)
            else:
                return

    async def _take_stock(self, rooms: Sequence[Room]) -> None:
        desk = self._desk
        await self._household.mirror.rooms(rooms)
        if not self._is_settled:
            await self._settle(rooms)
        async with desk.store.work(write=False) as work:
            known = await work.archive.list_rooms(desk.channel.platform)
        direct = [r for r in known if r.kind is RoomKind.DIRECT and r.id in self._positions.rooms]
        behind = self._missed.plan([*rooms, *direct])
        await self._positions.write()  # a room is read from the moment in which it was first seen
        self._start("catching up", self._missed.catch_up, behind)
        self._start("looking for deleted rooms", self._rooms.close_deleted, rooms)
        _log.info("account ready", extra={"agent": desk.account, "rooms": len(rooms)})

    async def _settle(self, rooms: Sequence[Room]) -> None:
        """Once, with the first connection: goes on where an earlier process stopped."""
        desk, household = self._desk, self._household
        await self._positions.load()
        await self._receiver.load()
        household.channels.add(desk.channel)
        await desk.outbox.sweep_previews(desk.channel)
        async with desk.store.work(write=False) as work:
            turns = await work.turns.list_turns(status=TurnStatus.OPEN, limit=RESUME_LIMIT)
            places = {turn.id: (await work.conversations.get(turn.conversation_id)).place for turn in turns}
        self._is_settled = True
        self._tasks.start_soon(run_forever, "sending", partial(desk.outbox.run, desk.channel))
        self._start("backfill", self._backfill, rooms)
        for turn in turns:
            self._show_again(turn, places[turn.id])

    async def _backfill(self, rooms: Sequence[Room]) -> None:
        channel = self._desk.channel
        run = self._household.backfiller.run  # which writes its progress to the log
        await run(channel, rooms, lambda _progress: None, roles_of=channel.find_roles)

    async def on_room(self, room: Room) -> None:
        await self._rooms.come(room)

    async def on_room_gone(self, platform: str, room_id: str, *, is_deleted: bool) -> None:
        await self._rooms.go(room_id, is_deleted=is_deleted)

    # --- messages ----------------------------------------------------------------------------------------------------

    async def on_message(self, arrival: IncomingMessage) -> None:
        room, post = arrival.room, arrival.post
        self._rooms.meet(room, post.id)
        try:
            await self._rooms.remember(room)
            await self._hear(arrival)
        except DenizenError as error:
            if arrival.is_edit:  # its first form keeps its answer
                raise
            _log.warning("a message is heard later", extra={"room": room.id, "post": post.id, "code": error.code})
            self._hear_later(room)
        else:
            if not arrival.is_edit:
                self._positions.note(room.id, post.id)

    def _hear_later(self, room: Room) -> None:
        """The store could not take a message. It is read again from the platform, before the position moves past it."""
        if room.id not in self._late:
            self._late.add(room.id)
            self._positions.hold(room.id)
            self._start("hearing a message again", self._hear_again, room)

    async def _hear_again(self, room: Room) -> None:
        await anyio.sleep(STORE_PAUSE_S)
        self._late.discard(room.id)
        await self._missed.catch_up([room])

    async def _mirror(self, arrival: IncomingMessage) -> None:
        await self._household.mirror.keep([arrival.post], {arrival.post.author.id: arrival.roles})

    async def _look_back(self, arrival: IncomingMessage) -> None:
        """Mirrors what was said before a question that is answered now, where the platform has to be asked for that."""
        earlier = await arrival.load_earlier()
        roles = {each.post.author.id: each.roles for each in earlier}
        await self._household.mirror.keep([each.post for each in earlier], roles)

    async def _hear(self, arrival: IncomingMessage) -> None:
        """One after another in each room, also while its past is caught up: the same message may come both ways."""
        async with self._inbox.turn(arrival.room.id):
            await self._mirror(arrival)
            if not arrival.is_mine:
                await self._consider(arrival)

    async def _consider(self, arrival: IncomingMessage) -> None:
        post, desk = arrival.post, self._desk
        if not post.author.is_bot and not arrival.is_edit:
            await desk.exchanges.reset(desk.channel.platform, arrival.room.id)
        attention = await self._receiver.look(arrival)
        if (
            attention.trigger is None
            or self._typed.is_obeying(post.id)
            or (arrival.is_edit and not self._is_soon(arrival))
        ):
            return
        if post.id in self._waiting:
            self._waiting[post.id] = arrival  # its latest text is answered
            return
        if await self._receiver.is_claimed(post.id):
            if arrival.is_edit and attention.answers:
                await self._ask_anew(arrival)
            return
        if attention.refusal is not None:
            await self._receiver.refuse(arrival, attention.refusal)
        elif not self._typed.take(arrival):
            await self._answer_in_turn(arrival)

    async def _answer_in_turn(self, arrival: IncomingMessage) -> None:
        """After those who were addressed before, to have read what they said."""
        post_id, room_id = arrival.post.id, arrival.room.id
        floor = await self._household.arbiter.decide(self._receiver, arrival)
        earlier = floor.before(self._desk.account)
        if not earlier:
            await self._answer(arrival, may_be_silent=floor.is_open)
            return
        self._waiting[post_id] = arrival
        self._positions.hold(room_id)
        self._start("waiting for other agents", self._answer_after, earlier, arrival)

    async def _answer_after(self, earlier: Sequence[AgentName], arrival: IncomingMessage) -> None:
        """The room's position waits, so that a crash does not lose the message."""
        post_id, room = arrival.post.id, arrival.room
        is_over = True
        try:
            await self._household.arbiter.wait_for(self._desk, earlier, arrival)
            async with self._inbox.turn(room.id):
                latest = self._waiting.pop(post_id, None)
                if latest is not None:  # else it was deleted meanwhile
                    await self._answer(latest)
        except DenizenError as error:
            _log.warning("a message is heard later", extra={"room": room.id, "post": post_id, "code": error.code})
            self._hear_later(room)
        except anyio.get_cancelled_exc_class():
            is_over = False  # the next process hears it again
            raise
        finally:
            self._waiting.pop(post_id, None)
            if is_over:
                self._positions.release(room.id)

    async def _answer(self, arrival: IncomingMessage, *, may_be_silent: bool = False) -> None:
        if not arrival.question.strip() and not arrival.post.reply_to:  # nothing but a mention
            await self._receiver.say(arrival, self._desk.account_policy.greeting)
            return
        try:
            await self._look_back(arrival)
            begun = await self._receiver.begin(arrival, may_be_silent=may_be_silent)
        except (NotFound, NotAllowed, InvalidInput) as error:  # what the person can do something about
            await self._receiver.say(arrival, error.explain())
            return
        except DenizenError:  # it is heard again
            raise
        except Exception:  # noqa: BLE001 - the boundary of a message
            reference = fresh("err")
            _log.exception("message fault", extra={"post": arrival.post.id, "reference": reference})
            await self._receiver.say(arrival, f"Something went wrong inside. Reference: {reference}.")
            return
        if begun is not None:
            self._show(begun)

    async def _ask_anew(self, arrival: IncomingMessage) -> None:
        """The question was edited soon after it was asked: its turn is stopped, and the new text answered instead."""
        begun = await self._receiver.begin_anew(arrival)
        if begun is not None:
            self._show(begun)

    def _is_soon(self, edit: IncomingMessage) -> bool:
        desk, post = self._desk, edit.post
        edited_at = post.edited_at or desk.clock.now()
        return (edited_at - post.created_at).total_seconds() <= desk.account_policy.edit_window_s

    async def on_delete(self, room: Room, post_ids: Sequence[str]) -> None:
        """The questions' turns end; one that answers several ends when all of them are gone."""
        desk, platform = self._desk, self._desk.channel.platform
        for post_id in post_ids:
            self._waiting.pop(post_id, None)
        await self._household.mirror.delete(platform, post_ids)
        async with desk.store.work(write=False) as work:
            claims = await work.reception.find_claims(desk.account, platform, post_ids)
        for post_id in claims:
            found = await self._receiver.find_turn(post_id)
            if found is None:
                continue
            opened = await load_turn(desk.store, found[1])
            if opened.owed is None or set(opened.owed.answers) <= set(post_ids):
                desk.turns.cancel(opened.turn.id)
                await desk.outbox.withdraw(desk.channel, opened.turn.id)
        await self._household.proposing.forget_posts(desk, post_ids)

    async def on_reaction(self, reaction: ReactionChange) -> None:
        await self._household.proposing.hear(self._receiver, reaction)

    # --- turns -------------------------------------------------------------------------------------------------------

    def _show(self, begun: StartedTurn) -> None:
        # Of a turn that may end without a word nothing is shown before it.
        asked = "" if allows_silence(begun.turn) else begun.asked
        shown = DisplayedTurn(begun.turn.id, begun.place, asked, self._desk.account_policy)
        if not begun.turn.status.is_final:
            self._start("showing a turn", self._watch, shown, begun.counted_in)

    def _show_again(self, turn: Turn, place: Place) -> None:
        """A turn that an earlier process began."""
        owed = turn.options.get("owed")
        if isinstance(owed, dict) and owed.get("account") == self._desk.account:
            counted_in = "" if owed.get("ticket") else place.thread or place.channel
            self._show(StartedTurn(turn, place, str(owed.get("reply_to", "")), counted_in))

    async def _watch(self, shown: DisplayedTurn, counted_in: str) -> None:
        status = await self._showing.show(shown)
        is_void = status in (TurnStatus.FAILED, TurnStatus.CANCELLED) or (
            status is TurnStatus.DONE and await self._was_silent(shown.turn_id)
        )
        if counted_in and is_void:
            await self._desk.exchanges.give_back(shown.place.platform, counted_in)

    async def _was_silent(self, turn_id: TurnId) -> bool:
        turn = await self._desk.turns.get(turn_id)
        return allows_silence(turn) and is_silence(turn.reply)

    def _customs(self) -> CustomCommandSet:
        current = self._desk.runtime.current
        return CustomCommandSet(current.commands, current.programs)

    # --- commands and buttons ----------------------------------------------------------------------------------------

    async def on_command(self, call: CommandCall) -> CommandReply:
        return await self._commands.run(call, self._asking.scene(call))

    async def on_suggest(self, call: CommandCall, option: str, typed: str) -> Sequence[str]:
        return await self._commands.suggest(call, option, typed, self._asking.scene(call))

    async def on_press(self, press: ButtonPress) -> str:
        """A button decides about a call that waits, or says its value for the one who pressed it."""
        if press.action:
            return await self._asking.decide(press)
        await self._asking.press(press)
        return ""


def allows_silence(turn: Turn) -> bool:
    owed = owed_of(turn)
    return owed is not None and owed.may_be_silent
