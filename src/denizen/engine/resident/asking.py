"""Questions that are no messages: commands that ask something, and pressed buttons. Called by `resident`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from denizen.domain.agent import Agent
from denizen.domain.approval import Outcome
from denizen.domain.attention import Sighting, decide_attention
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed, NotFound
from denizen.domain.ids import AgentName
from denizen.domain.message import Author, TextPart
from denizen.domain.room import Room, RoomKind
from denizen.domain.turn import Inbound, Owed, Turn
from denizen.engine.commands.scene import CommandScene
from denizen.engine.gate.card import read_action
from denizen.engine.resident.receiver import Begun, Receiver
from denizen.ports.channel import ButtonPress, CommandCall


@dataclass(frozen=True, slots=True)
class _Asked:
    """`key` is unique on the platform."""

    room: Room
    author: Author
    roles: frozenset[str]
    key: str
    reply_to: str = ""
    ticket: str = ""


class Asking:
    """For one account. `began` is told of each turn."""

    def __init__(self, receiver: Receiver, began: Callable[[Begun], None]) -> None:
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

    def scene(self, call: CommandCall) -> CommandScene:
        """What a command works with."""
        desk, place = self._desk, call.room.place
        author = Author(call.author_id, call.author_name)

        def session_of(agent: Agent) -> Place:
            return self._receiver.session_place(agent.name, call.room, place, call.author_id) or place

        return CommandScene(
            desk.account, desk.manners, self._receiver.principal(author, call.roles), session_of,
            desk.channel.find_names,
        )  # fmt: skip

    async def _may_ask(self, asked: _Asked) -> bool:
        """By the rules for messages: it is as good as a mention."""
        sighting = Sighting(
            asked.room, asked.author.id, asked.roles, is_bot=False, text="", mentions_me=True,
            mentioned_roles=frozenset(), replies_to_me=False, is_followed=False, exchanges=0,
        )  # fmt: skip
        manners = replace(self._desk.manners, mentions=True)
        return decide_attention(await self._receiver.informed(sighting), manners).answers

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
        self._began(Begun(turn, place, asked.reply_to))
        return turn
