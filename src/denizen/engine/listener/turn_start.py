"""From messages that deserve an answer to the submitted turn (step 1 of `engine/turn.py`, for platforms); and the
answers that need no turn.

The same message may arrive any number of times (a resumed connection, a catch-up, two processes): the claim in the
store decides once. Called by `messages.py` and `interactions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from denizen.domain.agent import SessionScope
from denizen.domain.approval import AskerReach
from denizen.domain.attention import RefusalReason, ThreadMode
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, LimitExceeded
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.message import Author, Part, Role, TextPart, join_text
from denizen.domain.names import format_name
from denizen.domain.principal import Principal, RoleName
from denizen.domain.prompt_messages import shorten_to_store
from denizen.domain.record import record
from denizen.domain.room import Room, RoomKind
from denizen.domain.turn import ReplyTarget, RequestOptions, Sender, SessionChoice, Turn, TurnRequest
from denizen.engine.configuration.choices import find_agent_choice, find_model_choice
from denizen.engine.listener.blocked_rooms import BlockedRooms
from denizen.engine.listener.context import AccountContext
from denizen.engine.listener.reading import MAX_EDITS, MessageReader, edit_key
from denizen.engine.outbox.plan import Announcement
from denizen.ports.channel import IncomingMessage

THREAD_TITLE_CHARS = 80
EXCHANGE_TIME = timedelta(hours=1)
EXCHANGE_TURNS = 500
"""How many of the latest turns of a room count towards what agents spend on answering each other."""
MAX_MISSED = 20
"""How many missed messages are read for their common answer: the newest."""
MAX_MISSED_CHARS = 2000
"""How much of each missed message is read."""
NOT_ALLOWED = "I may not talk with you here. Whoever runs me can add you with `/allow add`."

# A conversation among agents ends without a word: a notice would be one more message for the others to answer.
_SILENT = frozenset({RefusalReason.EXCHANGES, RefusalReason.MONEY, RefusalReason.TOO_OLD})


@record
class StartedTurn:
    """A turn that a message started, with what its display needs.

    `asked` is the message that it answers; empty when a command asked. `counted_in` is the room in which the reply was
    counted by the `BotReplyCounter`; empty when it was not.
    """

    turn: Turn
    place: Place
    asked: str
    counted_in: str = ""


class TurnStarter:
    """Starts turns, and answers without a turn, for one account."""

    def __init__(self, context: AccountContext, reader: MessageReader, blocked: BlockedRooms) -> None:
        self._context = context
        self._reader = reader
        self._blocked = blocked

    # --- answers without a turn --------------------------------------------------------------------------------------

    async def refuse(self, message: IncomingMessage, reason: RefusalReason, why: str = "") -> None:
        """Remembers that the message was refused, and tells that where the account may tell: in words once a minute, to
        a room that is busy or to one author; with a sign on each further message.
        """
        style = self._context.account_policy.style
        said = Announcement(message.room.place, message.post.id, refusal=reason, is_first=True)
        if reason not in _SILENT and style.tells_refusals:
            text, sign = why or NOT_ALLOWED, style.reactions.failed
            is_for_all = reason is RefusalReason.BUSY
            if is_for_all and sign:
                text += f" Messages that I mark with {sign} are not answered either."
            topic = reason if is_for_all else f"{reason}:{message.post.author.id}"
            said = replace(said, text=text, sign=sign, topic=topic)
        await self._context.outbox.say(self._context.channel, said)

    async def say(self, message: IncomingMessage, text: str, *, sign: str = "", refusal: str = "said") -> None:
        """Answers with a text: a greeting, the reply to a command. `sign` is an emoji to put on the message.

        Claims the message, so that it is answered once; `refusal` is what is remembered of it.
        """
        said = Announcement(message.room.place, message.post.id, text, sign, refusal)
        await self._context.outbox.say(self._context.channel, said)

    # --- turns -------------------------------------------------------------------------------------------------------

    async def start(self, message: IncomingMessage, *, may_be_silent: bool = False) -> StartedTurn | None:
        """Starts the turn for a message that deserves an answer. Returns None when it was refused or has its answer.

        A message of another agent need not be answered, nor one that several agents could answer unasked.
        """
        parts, place = await message.load_parts(), await self._choose_place(message)
        post = message.post
        request = await self._build_request(message, place, parts, key=post.id, answers=(post.id,))
        if request.owed is not None and (may_be_silent or post.author.is_bot):
            request = replace(request, owed=replace(request.owed, may_be_silent=True))
        started = await self._submit(request, message)
        if started is not None and await self._is_handed(request.agent, place):
            await self._context.handovers.take_message(self._context.channel, place, post.id)
        return started

    async def _is_handed(self, agent: AgentName, place: Place) -> bool:
        """Whether the agent answers there since the room was handed to it."""
        handover = await self._context.handovers.find(self._context.account, place)
        return handover is not None and handover.agent == agent

    async def start_edited(self, message: IncomingMessage) -> StartedTurn | None:
        """Starts the turn for the new text of a message, in the place of the turn for its earlier text.

        Returns None when the text is the same, when it was edited too often, or when it was refused.
        """
        post = message.post
        current = await self._reader.find_turn(post.id)
        if current is None:
            return None
        number, old = current
        parts = await message.load_parts()
        if number >= MAX_EDITS or await self._has_asked(old, parts):
            return None
        key = edit_key(post.id, number + 1)
        request = await self._build_request(message, await self._choose_place(message), parts, key=key, answers=(key,))
        if request.owed is not None:
            request = replace(request, owed=replace(request.owed, supersedes=old))
        started = await self._submit(request, message)
        if started is not None:  # only now: a refused edit leaves the question its answer
            self._context.turns.cancel(old)
        return started

    async def _has_asked(self, turn_id: TurnId, parts: Sequence[Part]) -> bool:
        """Whether the turn was opened with the same text, which was stored shortened."""
        async with self._context.store.work(write=False) as work:
            turn = await work.turns.get(turn_id)
            asked = await work.messages.get(turn.trigger_id)
        agent = self._context.runtime.current.agents.get(turn.agent)
        return agent is not None and join_text(shorten_to_store(parts, Role.USER, agent.history.storing)) == asked.text

    async def start_missed(self, messages: Sequence[IncomingMessage]) -> StartedTurn | None:
        """Starts one turn for several messages that came long ago. It replies to the newest of them."""
        newest, shown = messages[-1], messages[-MAX_MISSED:]
        loaded = [(message.post.author.name, await message.load_parts()) for message in shown]
        answers = tuple(message.post.id for message in messages)
        parts = _join_missed(loaded, left_out=len(messages) - len(shown))
        request = await self._build_request(newest, newest.room.place, parts, key=newest.post.id, answers=answers)
        # The turn may do only what every author may do, and nothing on the platform unless there is one author.
        principal = request.sender.principal
        for message in messages:
            principal = replace(principal, roles=principal.roles & self._find_principal(message).roles)
        sender = replace(request.sender, principal=principal)
        several = len({message.post.author.id for message in messages}) > 1
        owed = replace(request.owed, of_several=several) if request.owed else None
        return await self._submit(replace(request, shared=False, sender=sender, owed=owed), newest)

    async def _submit(self, request: TurnRequest, message: IncomingMessage) -> StartedTurn | None:
        """Submits the turn. Where a limit refuses it, remembers and tells that."""
        context, room = self._context, message.room
        in_guild = room.kind is not RoomKind.DIRECT
        if message.post.author.is_bot and not await self._may_spend(room):
            await self.refuse(message, RefusalReason.MONEY)
            return None
        if in_guild:
            limit = context.account_policy.limits.max_exchanges if message.post.author.is_bot else None
            if not await context.bot_replies.add(context.platform, room.id, limit=limit):
                await self.refuse(message, RefusalReason.EXCHANGES)
                return None
        try:
            turn = await context.turns.submit(request)
        except DenizenError as error:
            if in_guild:
                await context.bot_replies.take_back(context.platform, room.id)
            if not isinstance(error, LimitExceeded):
                raise
            reason = RefusalReason.RATE if error.code == "rate_limited" else RefusalReason.BUSY
            await self.refuse(message, reason, error.message)
            return None
        asked = request.owed.reply_to if request.owed else ""
        return StartedTurn(turn, request.place, asked, room.id if in_guild else "")

    async def _may_spend(self, room: Room) -> bool:
        """Whether the agents of the room have spent less on answering each other than they may within an hour."""
        context, limit = self._context, self._context.account_policy.limits.max_exchange_usd
        if limit is None:
            return True
        since = context.clock.now() - EXCHANGE_TIME
        spent = Decimal(0)
        async with context.store.work(write=False) as work:
            for turn in await work.turns.list_turns(conversation_id=room.place.conversation_id, limit=EXCHANGE_TURNS):
                if turn.opened_at > since and turn.options.get("asked_by_bot"):
                    spent += turn.result.usage.cost_usd or 0
        return spent < limit

    async def _choose_place(self, message: IncomingMessage) -> Place:
        """Returns where the answer goes: the room, or a thread opened for it. The thread is followed from now on."""
        context, room = self._context, message.room
        mode = context.account_policy.triggers.threads
        is_handed = await context.handovers.find(context.account, room.place) is not None
        if self._blocked.opens_thread(message) and not is_handed:
            title = " ".join(message.question.split())[:THREAD_TITLE_CHARS] or message.post.author.name
            room = await context.channel.open_thread(room.place, message.post.id, title)
        if mode is not ThreadMode.NONE and room.is_thread and room.id not in self._reader.followed:
            async with context.store.work() as work:
                await work.archive.put_room(room)
                await work.inbox.follow(context.account, context.platform, room.id, now=context.clock.now())
            self._reader.followed.add(room.id)
        return room.place

    async def _build_request(
        self, message: IncomingMessage, place: Place, parts: Sequence[Part], *, key: str, answers: tuple[str, ...]
    ) -> TurnRequest:
        post = message.post
        principal = self._find_principal(message)
        agent, model = await self.choose_agent(place, principal)
        in_same_room = place == message.room.place
        return TurnRequest(
            agent=agent,
            place=place,
            sender=Sender(post.author, principal, self.choose_reach(post.author, message.room)),
            parts=tuple(parts),
            platform_id=key,
            shared=message.room.kind is not RoomKind.DIRECT,
            owed=ReplyTarget(
                self._context.account,
                reply_to=post.id if in_same_room else "",
                answers=answers,
                guild=message.room.guild,
                is_unsure=message.is_unsure,
                names_agent=await self._is_handed(agent, place),
            ),
            subject=message.subject,
            session=SessionChoice(self.choose_session_place(agent, message.room, place, post.author.id)),
            options=RequestOptions(model=model),
        )

    def _find_principal(self, message: IncomingMessage) -> Principal:
        principal = self._context.principal(message.post.author, message.roles)
        # Somebody else may have written an unsure message, so its author's rights do not count.
        return replace(principal, roles=principal.roles & {RoleName.MEMBER}) if message.is_unsure else principal

    # --- what a turn is started with ---------------------------------------------------------------------------------

    def choose_reach(self, author: Author, room: Room) -> AskerReach:
        """Returns how people can be asked about a call that the author wants."""
        is_private = room.kind in (RoomKind.DIRECT, RoomKind.PRIVATE_THREAD)
        if not self._context.account_policy.style.asks_here or (is_private and author.is_bot):
            return AskerReach.ELSEWHERE
        if is_private:
            return AskerReach.PRIVATE
        return AskerReach.OTHERS if author.is_bot else AskerReach.CARD

    async def choose_agent(self, place: Place, principal: Principal) -> tuple[AgentName, str]:
        """Returns who answers there, and the model that the user chose for their own turns.

        Raises NotFound for a model that does not exist any more.
        """
        current = self._context.runtime.current
        async with self._context.store.work(write=False) as work:
            agent = await find_agent_choice(
                work,
                self._context.account,
                place.conversation_id,
                known=current.enabled_agents,
                now=self._context.clock.now(),
            )
            model = await find_model_choice(work, principal.key, current.models)
        return agent, model

    def choose_session_place(self, agent: AgentName, room: Room, place: Place, user_id: str) -> Place | None:
        """Returns where the agent keeps the history of this conversation; None for the place itself.

        What is said in private stays there: a private thread has a history of its own, and so have a user's direct
        messages, apart from the rooms that others read.
        """
        match self._context.runtime.current.agent(agent).history.session_scope:
            case _ if room.kind is RoomKind.PRIVATE_THREAD:
                return None
            case SessionScope.USER:
                return None if room.kind is RoomKind.DIRECT else Place(place.platform, f"user:{user_id}:{room.guild}")
            case SessionScope.CHANNEL if place.thread:
                return Place(place.platform, place.channel)
            case _:
                return None


def _join_missed(messages: Sequence[tuple[str, Sequence[Part]]], *, left_out: int) -> tuple[Part, ...]:
    """Joins several missed messages, by author name and parts, to one question. Their files come behind the text.

    `left_out` is the number of older messages that are not among them.
    """
    lines = [f"- {format_name(author)}: {join_text(parts).strip()[:MAX_MISSED_CHARS]}" for author, parts in messages]
    if left_out:
        lines.insert(
            0, f"- ({left_out} older ones are left out. Say that whoever still needs an answer may ask again.)"
        )
    head = (
        "While you were away these messages were addressed to you. Answer all of them in one short reply, "
        "with a word of apology for the delay:"
    )
    files = [part for _, parts in messages for part in parts if not isinstance(part, TextPart)]
    return (TextPart("\n".join([head, *lines])), *files)
