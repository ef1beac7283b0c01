"""What an agent says without a model: refusals, and the head of an answer to what was missed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from anyio.lowlevel import checkpoint

from denizen.domain.agent import SessionScope
from denizen.domain.approval import Reach
from denizen.domain.attention import (
    AccountPolicy,
    Attention,
    MessageFacts,
    RefusalReason,
    ThreadMode,
    assign_roles,
    decide_attention,
)
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, Exhausted
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.message import Author, Part, TextPart, text_of
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.room import Room, RoomKind
from denizen.domain.turn import Inbound, Owed, Turn
from denizen.engine.choices import agent_of, model_of
from denizen.engine.listener.context import BotReplyCounter
from denizen.engine.outbox.outbox import Outbox
from denizen.engine.outbox.said import Said
from denizen.engine.prompt.marks import speaker_of
from denizen.engine.runtime import Runtime
from denizen.engine.turn import Turns
from denizen.ports.channel import Channel, IncomingMessage
from denizen.ports.reception import AllowedKind
from denizen.ports.store import Store

NOT_ALLOWED = "I may not talk with you here. Whoever runs me can add you with `/allow add`."
MAX_CHARS = 2000
"""Of one missed message."""
_SILENT = frozenset({RefusalReason.EXCHANGES, RefusalReason.MONEY, RefusalReason.TOO_OLD})


def refusal_text(refusal: RefusalReason, why: str = "") -> str:
    """Empty for refusals that are not spoken of: a talk among agents ends in silence."""
    if refusal in _SILENT:
        return ""
    return why or NOT_ALLOWED


def missed_parts(messages: Sequence[tuple[str, Sequence[Part]]], *, left_out: int = 0) -> tuple[Part, ...]:
    """Several missed messages, by author name and parts, as one question. Their files come behind the text. `left_out`
    are older ones that are not among them.
    """
    lines = [f"- {speaker_of(author)}: {text_of(parts).strip()[:MAX_CHARS]}" for author, parts in messages]
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


THREAD_TITLE_CHARS = 80
MAX_EDITS = 9
"""How often a question may be asked anew."""
EXCHANGE_TIME = timedelta(hours=1)
EXCHANGE_TURNS = 500
"""Of so many of the latest turns of a room the cost is counted."""
MAX_MISSED = 20
"""How many missed messages are read for their common answer: the newest."""

_log = logging.getLogger("denizen.resident")


@dataclass(frozen=True, slots=True)
class StartedTurn:
    """A turn that a message began, with what its showing needs. `asked` is the message that it answers, `counted_in`
    the room in which it was counted as an exchange, empty when it was not.
    """

    turn: Turn
    place: Place
    asked: str
    counted_in: str = ""


@dataclass(frozen=True, slots=True)
class AccountContext:
    """What receiving works with; one for an account."""

    channel: Channel
    runtime: Runtime
    store: Store
    clock: Clock
    turns: Turns
    outbox: Outbox
    exchanges: BotReplyCounter

    @property
    def account(self) -> AgentName:
        return self.channel.agent

    @property
    def account_policy(self) -> AccountPolicy:
        return self.runtime.current.account_policy_for(self.channel.platform, self.channel.agent)


async def _never(receiver: TurnStarter, arrival: IncomingMessage) -> bool:
    del receiver, arrival
    await checkpoint()
    return False


@dataclass(slots=True)
class TurnStarter:
    """Decides and hands in. `neighbours` gives the accounts of this process."""

    desk: AccountContext
    neighbours: Callable[[], Sequence[Channel]]
    followed: set[str] = field(default_factory=set[str])
    gives_way: Callable[[TurnStarter, IncomingMessage], Awaitable[bool]] = _never
    """Whether another agent of this Denizen speaks instead."""
    hears: Callable[[str], bool] = lambda _: True
    """Whether the account listens in that room."""

    async def load(self) -> None:
        """Reads what was remembered: subscriptions outlive a restart (SW11)."""
        desk = self.desk
        async with desk.store.work(write=False) as work:
            self.followed |= await work.reception.list_followed(desk.account, desk.channel.platform)

    async def look(self, arrival: IncomingMessage) -> Attention:
        """What to do about the message. Reads the store only for messages that are for the agent."""
        sighting, account_policy = self._sighting(arrival), self.desk.account_policy
        attention = decide_attention(sighting, account_policy)
        if attention.trigger is None:
            return attention
        attention = decide_attention(await self.informed(sighting), account_policy)
        if attention.answers and await self.gives_way(self, arrival):
            return Attention()
        return attention

    def _sighting(self, arrival: IncomingMessage) -> MessageFacts:
        roles = frozenset[str]() if arrival.is_unsure else arrival.roles
        return MessageFacts(
            room=arrival.room, author_id=arrival.post.author.id, author_roles=roles,
            is_bot=arrival.post.author.is_bot, text=arrival.question, mentions_me=arrival.mentions_me,
            mentioned_roles=arrival.mentioned_roles, replies_to_me=arrival.replies_to_me,
            is_followed=arrival.room.id in self.followed, exchanges=0, mentions_others=arrival.mentions_others,
            is_own_account=any(c.user_id == arrival.post.author.id for c in self.neighbours()),
        )  # fmt: skip

    def is_beside(self, other: TurnStarter, room: str) -> bool:
        """Whether both listen in that room."""
        return self.desk.channel.platform == other.desk.channel.platform and self.hears(room)

    def sighting_of(self, arrival: IncomingMessage) -> MessageFacts:
        """The message of another account as this one sees it."""
        me = self.desk.channel.user_id
        return replace(
            self._sighting(arrival), mentions_me=me in arrival.mentioned, replies_to_me=arrival.replies_to == me != "",
            mentions_others=any(user != me for user in arrival.mentioned),
        )  # fmt: skip

    async def informed(self, sighting: MessageFacts) -> MessageFacts:
        desk, platform = self.desk, self.desk.channel.platform
        async with desk.store.work(write=False) as work:
            reception = work.reception
            return replace(
                sighting,
                exchanges=await reception.count_exchanges(platform, sighting.room.id),
                allowed_users=await reception.list_allowed(desk.account, platform, AllowedKind.USER),
                allowed_roles=await reception.list_allowed(desk.account, platform, AllowedKind.ROLE),
            )

    async def is_claimed(self, post_id: str) -> bool:
        desk = self.desk
        async with desk.store.work(write=False) as work:
            claims = await work.reception.find_claims(desk.account, desk.channel.platform, [post_id])
        return post_id in claims

    async def refuse(self, arrival: IncomingMessage, refusal: RefusalReason, why: str = "") -> None:
        """Remembers that the message was refused and says so, once."""
        text = refusal_text(refusal, why) if self.desk.account_policy.tells_refusals else ""
        said = Said(arrival.room.place, arrival.post.id, text, refusal=refusal, is_first=True)
        await self.desk.outbox.say(self.desk.channel, said)

    async def say(self, arrival: IncomingMessage, text: str, *, sign: str = "") -> None:
        """Answers without a turn: a greeting, what a command gave; `sign` is an emoji. Claims the message, so that it
        happens once.
        """
        await self.desk.outbox.say(self.desk.channel, Said(arrival.room.place, arrival.post.id, text, sign))

    # --- turns -------------------------------------------------------------------------------------------------------

    async def begin(self, arrival: IncomingMessage, *, may_be_silent: bool = False) -> StartedTurn | None:
        """The turn for one message that deserves an answer; None when it was refused or is answered already. A message
        of another agent need not be answered, nor one that several could answer unasked.
        """
        parts, place = await arrival.load_parts(), await self._place(arrival)
        post = arrival.post
        inbound = await self._inbound(arrival, place, parts, key=post.id, answers=(post.id,))
        if inbound.owed is not None and (may_be_silent or post.author.is_bot):
            inbound = replace(inbound, owed=replace(inbound.owed, may_be_silent=True))
        return await self.hand_in(inbound, arrival)

    async def begin_anew(self, arrival: IncomingMessage) -> StartedTurn | None:
        """The turn for the new text of a message that was asked already, instead of its earlier one; None when nothing
        changed or it may not be asked again.
        """
        post = arrival.post
        current = await self.find_turn(post.id)
        if current is None:
            return None
        number, old = current
        parts = await arrival.load_parts()
        if number >= MAX_EDITS or text_of(parts) == await self._asked(old):
            return None
        key = edit_key(post.id, number + 1)
        inbound = await self._inbound(arrival, await self._place(arrival), parts, key=key, answers=(key,))
        if inbound.owed is not None:
            inbound = replace(inbound, owed=replace(inbound.owed, supersedes=old))
        begun = await self.hand_in(inbound, arrival)
        if begun is not None:  # only now: a refused edit leaves the question its answer
            self.desk.turns.cancel(old)
        return begun

    async def find_turn(self, post_id: str) -> tuple[int, TurnId] | None:
        """The turn of the message's latest text, and the number of that text from 0; None when it has no turn."""
        desk = self.desk
        keys = [edit_key(post_id, number) for number in range(MAX_EDITS + 1)]
        async with desk.store.work(write=False) as work:
            claims = await work.reception.find_claims(desk.account, desk.channel.platform, keys)
        found = [(number, claims[key].turn_id) for number, key in enumerate(keys) if key in claims]
        return next(((number, turn) for number, turn in reversed(found) if turn is not None), None)

    async def _asked(self, turn_id: TurnId) -> str:
        async with self.desk.store.work(write=False) as work:
            turn = await work.turns.get(turn_id)
            return text_of((await work.messages.get(turn.trigger_id)).parts)

    async def begin_missed(self, arrivals: Sequence[IncomingMessage]) -> StartedTurn | None:
        """One turn for several messages that came long ago; it replies to the newest, and may do what all of their
        authors may: on the platform nothing, unless they are of one author.
        """
        newest, shown = arrivals[-1], arrivals[-MAX_MISSED:]
        loaded = [(arrival.post.author.name, await arrival.load_parts()) for arrival in shown]
        answers = tuple(arrival.post.id for arrival in arrivals)
        parts = missed_parts(loaded, left_out=len(arrivals) - len(shown))
        inbound = await self._inbound(newest, newest.room.place, parts, key=newest.post.id, answers=answers)
        principal = inbound.principal
        for arrival in arrivals:
            others = self._asker(arrival).roles
            principal = replace(principal, roles=principal.roles & others)
        several = len({arrival.post.author.id for arrival in arrivals}) > 1
        owed = replace(inbound.owed, of_several=several) if inbound.owed else None
        return await self.hand_in(replace(inbound, shared=False, principal=principal, owed=owed), newest)

    async def hand_in(self, inbound: Inbound, arrival: IncomingMessage) -> StartedTurn | None:
        """Submits; a refusal by a limit is remembered and said."""
        desk, room = self.desk, arrival.room
        in_guild = room.kind is not RoomKind.DIRECT
        if arrival.post.author.is_bot and not await self._may_spend(room):
            await self.refuse(arrival, RefusalReason.MONEY)
            return None
        if in_guild:
            limit = desk.account_policy.max_exchanges if arrival.post.author.is_bot else None
            if not await desk.exchanges.take(desk.channel.platform, room.id, limit=limit):
                await self.refuse(arrival, RefusalReason.EXCHANGES)
                return None
        try:
            turn = await desk.turns.submit(inbound)
        except DenizenError as error:
            if in_guild:
                await desk.exchanges.give_back(desk.channel.platform, room.id)
            if not isinstance(error, Exhausted):
                raise
            refusal = RefusalReason.RATE if error.code == "rate_limited" else RefusalReason.BUSY
            await self.refuse(arrival, refusal, error.message)
            return None
        return StartedTurn(
            turn, inbound.place, inbound.owed.reply_to if inbound.owed else "", room.id if in_guild else ""
        )

    async def _may_spend(self, room: Room) -> bool:
        """Whether the agents of the room have spent less on answering each other than they may within an hour."""
        desk, limit = self.desk, self.desk.account_policy.max_exchange_usd
        if limit is None:
            return True
        since = desk.clock.now() - EXCHANGE_TIME
        spent = Decimal(0)
        async with desk.store.work(write=False) as work:
            for turn in await work.turns.list_turns(conversation_id=room.place.conversation_id, limit=EXCHANGE_TURNS):
                if turn.opened_at > since and turn.options.get("asked_by_bot"):
                    spent += turn.usage.cost_usd or 0
        return spent < limit

    async def _place(self, arrival: IncomingMessage) -> Place:
        """Where the answer goes: the room, or a thread opened for it; threads are followed from now on."""
        desk, room = self.desk, arrival.room
        habit = desk.account_policy.threads
        if habit is ThreadMode.OPEN and room.kind is RoomKind.CHANNEL and not arrival.post.author.is_bot:
            title = " ".join(arrival.question.split())[:THREAD_TITLE_CHARS] or arrival.post.author.name
            room = await desk.channel.open_thread(room.place, arrival.post.id, title)
        if habit is not ThreadMode.NONE and room.is_thread and room.id not in self.followed:
            async with desk.store.work() as work:
                await work.archive.put_room(room)
                await work.reception.follow(desk.account, desk.channel.platform, room.id, now=desk.clock.now())
            self.followed.add(room.id)
        return room.place

    async def _inbound(
        self, arrival: IncomingMessage, place: Place, parts: Sequence[Part], *, key: str, answers: tuple[str, ...]
    ) -> Inbound:
        desk, post = self.desk, arrival.post
        principal = self._asker(arrival)
        agent, model = await self.chosen(place, principal)
        in_thread = place == arrival.room.place
        return Inbound(
            agent=agent, place=place, principal=principal, author=post.author, parts=tuple(parts), platform_id=key,
            model=model, session_place=self.session_place(agent, arrival.room, place, post.author.id),
            shared=arrival.room.kind is not RoomKind.DIRECT,
            owed=Owed(desk.account, reply_to=post.id if in_thread else "", answers=answers, guild=arrival.room.guild),
            reach=self.reach(post.author), subject=arrival.subject,
        )  # fmt: skip

    def reach(self, author: Author) -> Reach:
        """How the author can be asked back here."""
        if not self.desk.account_policy.asks_here:
            return Reach.ELSEWHERE
        return Reach.NOBODY if author.is_bot else Reach.CARD

    def _asker(self, arrival: IncomingMessage) -> Principal:
        principal = self.principal(arrival.post.author, arrival.roles)
        return replace(principal, roles=principal.roles & {RoleName.MEMBER}) if arrival.is_unsure else principal

    def principal(self, author: Author, roles: frozenset[str]) -> Principal:
        """A user of the platform with what they are to Denizen. A bot is never an admin, whatever role people gave it:
        it says what others made it say.
        """
        desk = self.desk
        names = assign_roles(author.id, roles, desk.account_policy)
        if author.is_bot:
            names -= {RoleName.OWNER.value, RoleName.ADMIN.value}
        return Principal(PrincipalKind.PLATFORM_USER, f"{desk.channel.platform}:{author.id}", author.name, names)

    async def chosen(self, place: Place, principal: Principal) -> tuple[AgentName, str]:
        """Who answers here, and the model that the user chose for their own turns (V15). Raises NotFound for a model
        that is not there any more.
        """
        desk, current = self.desk, self.desk.runtime.current
        async with desk.store.work(write=False) as work:
            agent = await agent_of(work, desk.account, place.conversation_id, known=current.agents)
            model = await model_of(work, principal.key, current.models)
        return agent, model

    def session_place(self, agent: AgentName, room: Room, place: Place, user_id: str) -> Place | None:
        """Where the agent's history of this talk lives (inventory X-session-scope); None for the place itself. What is
        said in private stays there (promise 3): a private thread has a history of its own, and a user's direct talks
        have one beside that of the rooms that others read.
        """
        match self.desk.runtime.current.agent(agent).session_scope:
            case _ if room.kind is RoomKind.PRIVATE_THREAD:
                return None
            case SessionScope.USER:
                return None if room.kind is RoomKind.DIRECT else Place(place.platform, f"user:{user_id}:{room.guild}")
            case SessionScope.CHANNEL if place.thread:
                return Place(place.platform, place.channel)
            case _:
                return None


def age_s(arrival: IncomingMessage, now: datetime) -> float:
    return (now - arrival.post.created_at).total_seconds()


def edit_key(post_id: str, number: int) -> str:
    """Under which the message's text of that number is claimed: the first, 0, under its own id."""
    return f"{post_id}~{number}" if number else post_id
