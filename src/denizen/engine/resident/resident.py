"""The listener of one account (`ports/channel`): everything that happens there comes through here.

Made by `app/accounts` for each account, which runs `run` beside the account's connection. A message is mirrored, then
considered; the turn that it begins is shown until it ends, and its answer goes out through the outbox.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio
from anyio.abc import TaskGroup, TaskStatus

from denizen.domain.agent import Agent
from denizen.domain.attention import Sighting, may_talk
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.ids import AgentName, fresh
from denizen.domain.message import Author, TextPart
from denizen.domain.room import Room, RoomKind
from denizen.domain.turn import Inbound, Owed, Turn, TurnStatus
from denizen.engine.archive.backfill import Backfiller, Progress
from denizen.engine.archive.mirror import Mirror
from denizen.engine.channels import Channels
from denizen.engine.commands.commands import Commands
from denizen.engine.commands.scene import CommandScene, CommandServices, Customs, Privacy
from denizen.engine.resident.missed import Missed
from denizen.engine.resident.positions import Positions
from denizen.engine.resident.receiver import Begun, Desk, Receiver
from denizen.engine.resident.showing import Showing, Shown
from denizen.engine.steps import Services
from denizen.engine.turn import RESUME_LIMIT
from denizen.ports.channel import Arrival, CommandCall, CommandReply, CommandSpec, Press

STORE_PAUSE_S = 1.0
DONE_SIGN = "\N{WHITE HEAVY CHECK MARK}"

_log = logging.getLogger("denizen.resident")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that is no message: a command or a pressed button. `key` is unique on the platform."""

    room: Room
    author: Author
    roles: frozenset[str]
    key: str
    reply_to: str = ""
    ticket: str = ""


@dataclass(frozen=True, slots=True)
class Household:
    """What all accounts of a process share, besides the engine itself."""

    services: Services
    channels: Channels
    mirror: Mirror
    backfiller: Backfiller
    privacy: Privacy


class Resident:
    """One account. `run` has to be running while it listens."""

    def __init__(self, desk: Desk, household: Household) -> None:
        self._desk = desk
        self._household = household
        platform = desk.channel.platform
        self._receiver = Receiver(desk, lambda: household.channels.list_platform(platform))
        self._positions = Positions(desk.store, desk.account, desk.channel.platform)
        self._missed = Missed(self._receiver, self._positions, hear=self._hear, mirror=self._mirror, began=self._show)
        self._showing = Showing(desk.channel, desk.turns, desk.outbox, desk.store, desk.clock)
        self._commands = Commands(
            CommandServices(
                desk.runtime, household.services, self._open_turn, desk.turns.hold, household.privacy,
                self._customs,
            )
        )  # fmt: skip
        self._group: TaskGroup | None = None
        self._is_settled = False

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Sends, shows and remembers, until it is cancelled. Started when it may listen."""
        channel, channels = self._desk.channel, self._household.channels
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                group.start_soon(self._positions.keep_writing)
                task_status.started()
                await anyio.sleep_forever()
        finally:
            self._group = None
            channels.remove(channel)

    @property
    def _tasks(self) -> TaskGroup:
        if self._group is None:
            raise RuntimeError("an account is heard only while its resident runs")
        return self._group

    @property
    def is_behind(self) -> bool:
        """Whether what was missed is still being read."""
        return self._positions.is_behind

    # --- the connection ----------------------------------------------------------------------------------------------

    @property
    def commands(self) -> Sequence[CommandSpec]:
        return self._commands.specs(self._desk.account)

    async def on_ready(self, rooms: Sequence[Room]) -> None:
        """New messages wait until this is done, and it is not told again: a store that is away is waited for."""
        while True:
            try:
                await self._take_stock(rooms)
            except Unavailable as error:
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
        self._tasks.start_soon(self._missed.catch_up, behind)
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
        self._tasks.start_soon(desk.outbox.run, desk.channel)
        self._tasks.start_soon(self._backfill, rooms)
        for turn in turns:
            self._show_again(turn, places[turn.id])

    async def _backfill(self, rooms: Sequence[Room]) -> None:
        try:
            channel = self._desk.channel
            await self._household.backfiller.run(channel, rooms, _ignore, roles_of=channel.find_roles)
        except DenizenError as error:
            _log.warning("backfill ended", extra={"agent": self._desk.account, "code": error.code})

    async def on_room(self, room: Room) -> None:
        await self._household.mirror.rooms([room])
        if self._positions.find(room.id) is None:
            self._positions.advance(room.id, room.latest_post or "0")
            await self._positions.write()

    async def on_room_gone(self, platform: str, room_id: str) -> None:
        self._positions.forget(room_id)

    # --- messages ----------------------------------------------------------------------------------------------------

    async def on_message(self, arrival: Arrival) -> None:
        room = arrival.room
        if room.kind is RoomKind.DIRECT and self._positions.find(room.id) is None:
            await self._remember_direct(room)
        await self._hear(arrival)
        if not arrival.is_edit:
            self._positions.note(room.id, arrival.post.id)

    async def _remember_direct(self, room: Room) -> None:
        """Nobody lists direct talks, so one is written down before its first message is looked at."""
        async with self._desk.store.work() as work:
            await work.archive.put_room(room)
        self._positions.advance(room.id, "0")
        await self._positions.write()

    async def _mirror(self, arrival: Arrival) -> None:
        await self._household.mirror.keep([arrival.post], {arrival.post.author.id: arrival.roles})

    async def _hear(self, arrival: Arrival) -> None:
        await self._mirror(arrival)
        if arrival.is_mine:
            return
        post, desk = arrival.post, self._desk
        if not post.author.is_bot and not arrival.is_edit:
            await desk.exchanges.reset(desk.channel.platform, arrival.room.id)
        attention = await self._receiver.look(arrival)
        if attention.trigger is None:
            return
        if arrival.is_edit:
            await self._ask_anew(arrival, answers=attention.answers)
            return
        if await self._receiver.is_claimed(post.id):
            return
        if attention.refusal is not None:
            await self._receiver.refuse(arrival, attention.refusal)
        elif not await self._obey(arrival):
            await self._answer(arrival)

    async def _answer(self, arrival: Arrival) -> None:
        if not arrival.question.strip():  # nothing but a mention
            await self._receiver.say(arrival, self._desk.manners.greeting)
            return
        try:
            begun = await self._receiver.begin(arrival)
        except (NotFound, NotAllowed, InvalidInput) as error:  # what the person can do something about
            await self._receiver.say(arrival, error.explain())
            return
        if begun is not None:
            self._show(begun)

    async def _ask_anew(self, arrival: Arrival, *, answers: bool) -> None:
        """The question was edited soon after it was asked: its turn is stopped, and the new text answered instead."""
        desk, post = self._desk, arrival.post
        edited_at = post.edited_at or desk.clock.now()
        if not answers or (edited_at - post.created_at).total_seconds() > desk.manners.edit_window_s:
            return
        async with desk.store.work(write=False) as work:
            claims = await work.reception.find_claims(desk.account, desk.channel.platform, [post.id])
        old = claims[post.id].turn_id if post.id in claims else None
        if post.id in claims and old is None:
            return
        if old is not None:
            desk.turns.cancel(old)
        begun = await self._receiver.begin(arrival, edit=old)
        if begun is not None:
            self._show(begun)

    async def on_delete(self, room: Room, post_ids: Sequence[str]) -> None:
        desk, platform = self._desk, self._desk.channel.platform
        await self._household.mirror.delete(platform, post_ids)
        async with desk.store.work(write=False) as work:
            claims = await work.reception.find_claims(desk.account, platform, post_ids)
        for claim in claims.values():
            if claim.turn_id is not None:
                desk.turns.cancel(claim.turn_id)
                await desk.outbox.withdraw(claim.turn_id)

    # --- turns -------------------------------------------------------------------------------------------------------

    def _show(self, begun: Begun) -> None:
        shown = Shown(begun.turn.id, begun.place, begun.asked, self._desk.manners)
        if not begun.turn.status.is_final:
            self._tasks.start_soon(self._watch, shown)

    def _show_again(self, turn: Turn, place: Place) -> None:
        """A turn that an earlier process began."""
        owed = turn.options.get("owed")
        if isinstance(owed, dict) and owed.get("account") == self._desk.account:
            self._show(Begun(turn, place, str(owed.get("reply_to", ""))))

    async def _watch(self, shown: Shown) -> None:
        status = await self._showing.show(shown)
        if status in (TurnStatus.FAILED, TurnStatus.CANCELLED):
            room = shown.place.thread or shown.place.channel
            await self._desk.exchanges.give_back(shown.place.platform, room)

    def _customs(self) -> Customs:
        current = self._desk.runtime.current
        return Customs(current.commands, current.programs)

    # --- commands and buttons ----------------------------------------------------------------------------------------

    async def _obey(self, arrival: Arrival) -> bool:
        """Commands work as text too (inventory T36). False when the message is none."""
        typed = self._commands.parse_text(arrival.question)
        if typed is None:
            return False
        name, group, options = typed
        post = arrival.post
        call = CommandCall(
            post.id, name, group, options, arrival.room, post.author.id, post.author.name, arrival.roles,
            post.created_at, target=post.reply_to,
        )  # fmt: skip
        self._tasks.start_soon(self._obey_typed, arrival, call)
        return True

    async def _obey_typed(self, arrival: Arrival, call: CommandCall) -> None:
        """Beside the room's other messages: some commands wait for a turn to end. `/reset` is answered with a sign
        (inventory C19).
        """
        try:
            reply = await self._commands.run(call, self._scene(call))
        except Exception:  # noqa: BLE001 - the boundary of a command
            reference = fresh("err")
            _log.exception("command fault", extra={"command": call.name, "reference": reference})
            reply = CommandReply(f"Something went wrong inside. Reference: {reference}.", is_failure=True)
        if reply.is_pending:
            return
        if call.name == "reset" and not reply.is_failure:
            await self._receiver.sign(arrival, DONE_SIGN)
        else:
            await self._receiver.say(arrival, reply.text, failed=reply.is_failure and call.name == "reset")

    async def on_command(self, call: CommandCall) -> CommandReply:
        return await self._commands.run(call, self._scene(call))

    async def on_suggest(self, call: CommandCall, option: str, typed: str) -> Sequence[str]:
        return await self._commands.suggest(call, option, typed, self._scene(call))

    async def on_press(self, press: Press) -> None:
        """A button says its value for the one who pressed it."""
        asked = _Asked(press.room, Author(press.author_id, press.author_name), press.roles, f"press:{press.id}")
        if not await self._may_talk(asked):
            raise NotAllowed("You may not talk with me here.", code="not_allowed")
        await self._hand_in(replace(asked, reply_to=press.message_id), press.value)

    async def _open_turn(self, call: CommandCall, text: str, *, agent: str = "", new_session: bool = False) -> Turn:
        """The turn of a command, answered with its ticket, or as a reply when it was typed."""
        asked = _Asked(
            call.room, Author(call.author_id, call.author_name), call.roles,
            f"command:{call.id}" if call.ticket else call.id, reply_to="" if call.ticket else call.id,
            ticket=call.ticket,
        )  # fmt: skip
        return await self._hand_in(asked, text, agent=agent, new_session=new_session)

    async def _may_talk(self, asked: _Asked) -> bool:
        sighting = Sighting(
            asked.room, asked.author.id, asked.roles, is_bot=False, text="", mentions_me=True,
            mentioned_roles=frozenset(), replies_to_me=False, is_followed=False, exchanges=0,
        )  # fmt: skip
        return may_talk(await self._receiver.informed(sighting), self._desk.manners)

    async def _hand_in(self, asked: _Asked, text: str, *, agent: str = "", new_session: bool = False) -> Turn:
        desk, place, author = self._desk, asked.room.place, asked.author
        principal = self._receiver.principal(author, asked.roles)
        chosen, model = await self._receiver.chosen(place, principal)
        name = AgentName(agent) if agent else chosen
        inbound = Inbound(
            name, place, principal, author, (TextPart(text),), asked.key, model=model, new_session=new_session,
            session_place=self._receiver.session_place(name, place, author.id),
            shared=asked.room.kind is not RoomKind.DIRECT,
            owed=Owed(desk.account, reply_to=asked.reply_to, ticket=asked.ticket, answers=(asked.key,)),
        )  # fmt: skip
        turn = await desk.turns.submit(inbound)
        self._show(Begun(turn, place, asked.reply_to))
        return turn

    def _scene(self, call: CommandCall) -> CommandScene:
        desk = self._desk
        author = Author(call.author_id, call.author_name)

        def session_of(agent: Agent) -> Place:
            return self._receiver.session_place(agent.name, call.room.place, call.author_id) or call.room.place

        return CommandScene(
            desk.account, desk.manners, self._receiver.principal(author, call.roles), session_of,
            desk.channel.find_names,
        )  # fmt: skip


def _ignore(progress: Progress) -> None:
    """The backfiller writes its progress to the log."""
