"""Questions that are no messages: commands that ask something, and pressed buttons. Called by `resident`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import anyio

from denizen.domain.agent import Agent
from denizen.domain.approval import Outcome
from denizen.domain.attention import MessageFacts, decide_attention
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed, NotFound
from denizen.domain.ids import AgentName, fresh
from denizen.domain.message import Author, TextPart
from denizen.domain.room import Room, RoomKind
from denizen.domain.turn import Inbound, Owed, Turn
from denizen.engine.commands.command import CallerContext
from denizen.engine.commands.dispatch import CommandDispatcher
from denizen.engine.gate.card import read_action
from denizen.engine.listener.cursors import ReadCursors
from denizen.engine.listener.turn_start import StartedTurn, TurnStarter
from denizen.ports.channel import ButtonPress, CommandCall, CommandReply, IncomingMessage


@dataclass(frozen=True, slots=True)
class _Asked:
    """`key` is unique on the platform."""

    room: Room
    author: Author
    roles: frozenset[str]
    key: str
    reply_to: str = ""
    ticket: str = ""


class InteractionHandler:
    """For one account. `began` is told of each turn."""

    def __init__(self, receiver: TurnStarter, began: Callable[[StartedTurn], None]) -> None:
        self._receiver = receiver
        self._desk = receiver.desk
        self._began = began

    async def open_turn(self, call: CommandCall, text: str, *, agent: str = "", new_session: bool = False) -> Turn:
        """The turn of a command, answered with its ticket, or as a reply when it was typed."""
        asked = _Asked(
            call.room, Author(call.author_id, call.author_name), call.roles,
            f"command:{call.id}" if call.ticket else call.id, reply_to="" if call.ticket else call.id,
            ticket=call.ticket,
        )  # fmt: skip
        return await self._hand_in(asked, text, agent=agent, new_session=new_session)

    async def press(self, press: ButtonPress) -> None:
        """A button says its value for the one who pressed it, where that one could have said it. The model is told that
        it was a button: whoever pressed it read its label, not necessarily what it says.
        """
        author = Author(press.author_id, press.author_name)
        asked = _Asked(press.room, author, press.roles, f"press:{press.id}", reply_to=press.message_id)
        if not await self._may_ask(asked):
            raise NotAllowed("You may not talk with me here.", code="not_allowed")
        said = f'chose, under your message "{press.about}"' if press.about else "pressed a button, which says"
        await self._hand_in(asked, f"[{said}:] {press.value}")

    async def decide(self, press: ButtonPress) -> str:
        """A button of a card: the word of the one who pressed it about the call. Says what became of it where the card
        does not. Raises NotAllowed for somebody who may not decide it.
        """
        read = read_action(press.action)
        if read is None:
            raise NotFound("This button is of no use any more.", code="button_unknown")
        choice, key = read
        voter = self._receiver.principal(Author(press.author_id, press.author_name), press.roles)
        ruling = await self._desk.turns.approvals.decide(key, voter, choice, note=press.why)
        return "" if ruling.outcome is Outcome.DECIDED else ruling.text

    def scene(self, call: CommandCall) -> CallerContext:
        """What a command works with."""
        desk, place = self._desk, call.room.place
        author = Author(call.author_id, call.author_name)

        def session_of(agent: Agent) -> Place:
            return self._receiver.session_place(agent.name, call.room, place, call.author_id) or place

        return CallerContext(
            desk.account, desk.account_policy, self._receiver.principal(author, call.roles), session_of,
            desk.channel.find_names,
        )  # fmt: skip

    async def _may_ask(self, asked: _Asked) -> bool:
        """By the rules for messages: it is as good as a mention."""
        sighting = MessageFacts(
            asked.room, asked.author.id, asked.roles, is_bot=False, text="", mentions_me=True,
            mentioned_roles=frozenset(), replies_to_me=False, is_followed=False, exchanges=0,
        )  # fmt: skip
        account_policy = replace(self._desk.account_policy, mentions=True)
        return decide_attention(await self._receiver.informed(sighting), account_policy).answers

    async def _hand_in(self, asked: _Asked, text: str, *, agent: str = "", new_session: bool = False) -> Turn:
        desk, place, author = self._desk, asked.room.place, asked.author
        principal = self._receiver.principal(author, asked.roles)
        chosen, model = await self._receiver.chosen(place, principal)
        name = AgentName(agent) if agent else chosen
        inbound = Inbound(
            name, place, principal, author, (TextPart(text),), asked.key, model=model, new_session=new_session,
            session_place=self._receiver.session_place(name, asked.room, place, author.id),
            shared=asked.room.kind is not RoomKind.DIRECT,
            owed=Owed(
                desk.account, reply_to=asked.reply_to, ticket=asked.ticket, answers=(asked.key,),
                guild=asked.room.guild,
            ),
            reach=self._receiver.reach(author),
        )  # fmt: skip
        turn = await desk.turns.submit(inbound)
        self._began(StartedTurn(turn, place, asked.reply_to))
        return turn


DONE_SIGN = "\N{WHITE HEAVY CHECK MARK}"

_log = logging.getLogger("denizen.resident")


class TypedCommands:
    """For one account. `start` runs `obey` beside the room's other messages: some commands wait for a turn to end."""

    def __init__(
        self,
        receiver: TurnStarter,
        positions: ReadCursors,
        commands: CommandDispatcher,
        asking: InteractionHandler,
        *,
        start: Callable[[IncomingMessage, CommandCall], None],
    ) -> None:
        self._receiver = receiver
        self._positions = positions
        self._commands = commands
        self._asking = asking
        self._start = start
        self._obeying: set[str] = set()

    def is_obeying(self, post_id: str) -> bool:
        return post_id in self._obeying

    def take(self, arrival: IncomingMessage) -> bool:
        """False for a message that is no command. What an agent says is a question, whoever made it say that, and so is
        what somebody else may have edited.
        """
        post, typed = arrival.post, self._commands.parse_text(arrival.question)
        if typed is None or post.author.is_bot or arrival.is_unsure:
            return False
        name, group, options = typed
        call = CommandCall(
            post.id, name, group, options, arrival.room, post.author.id, post.author.name, arrival.roles,
            post.created_at, target=post.reply_to,
        )  # fmt: skip
        self._obeying.add(post.id)
        self._positions.hold(arrival.room.id)
        self._start(arrival, call)
        return True

    async def obey(self, arrival: IncomingMessage, call: CommandCall) -> None:
        """The room's position waits for it, so that a crash does not lose it; one that was cut off is read again by the
        next process. `/reset` is answered with a sign (inventory C19).
        """
        is_cut = False
        try:
            await self._answer(arrival, call, await self._run(call))
        except anyio.get_cancelled_exc_class():
            is_cut = True
            raise
        finally:
            self._obeying.discard(arrival.post.id)
            if not is_cut:
                self._positions.release(arrival.room.id)

    async def _answer(self, arrival: IncomingMessage, call: CommandCall, reply: CommandReply) -> None:
        if reply.is_pending:
            return
        if call.name == "reset" and not reply.is_failure:
            await self._receiver.say(arrival, "", sign=DONE_SIGN)
            return
        failed = self._receiver.desk.account_policy.reactions.failed
        await self._receiver.say(arrival, reply.text, sign=failed if reply.is_failure and call.name == "reset" else "")

    async def _run(self, call: CommandCall) -> CommandReply:
        try:
            return await self._commands.run(call, self._asking.scene(call))
        except Exception:  # noqa: BLE001 - the boundary of a command
            reference = fresh("err")
            _log.exception("command fault", extra={"command": call.name, "reference": reference})
            return CommandReply(f"Something went wrong inside. Reference: {reference}.", is_failure=True)
