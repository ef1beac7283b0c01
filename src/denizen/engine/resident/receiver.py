"""One message as it arrives: is it for the agent, may it be answered, and the turn that answers it (step 1 of
`engine/turn.py`, for platforms).

The same message may arrive any number of times (a resumed connection, a catch-up, two processes): the claim in the
store decides once. Called by `resident.py` and `missed.py`, for one room one after another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from denizen.domain.agent import SessionScope
from denizen.domain.attention import Attention, Manners, Refusal, Sighting, ThreadHabit, decide_attention, roles_of
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, Exhausted
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.message import Author, Part
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import RoomKind
from denizen.domain.turn import Inbound, Owed, Turn
from denizen.engine.choices import agent_of, model_of
from denizen.engine.outbox.outbox import Outbox
from denizen.engine.resident.exchanges import Exchanges
from denizen.engine.resident.phrases import missed_parts, refusal_text
from denizen.engine.runtime import Runtime
from denizen.engine.turn import Turns
from denizen.ports.channel import Arrival, Channel
from denizen.ports.reception import AllowedKind, Claim
from denizen.ports.store import Store

THREAD_TITLE_CHARS = 80

_log = logging.getLogger("denizen.resident")


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn that a message began, with what its showing needs. `asked` is the message that it answers."""

    turn: Turn
    place: Place
    asked: str


@dataclass(frozen=True, slots=True)
class Desk:
    """What receiving works with; one for an account."""

    channel: Channel
    runtime: Runtime
    store: Store
    clock: Clock
    turns: Turns
    outbox: Outbox
    exchanges: Exchanges

    @property
    def account(self) -> AgentName:
        return self.channel.agent

    @property
    def manners(self) -> Manners:
        return self.runtime.current.manners_of(self.channel.agent)


@dataclass(slots=True)
class Receiver:
    """Decides and hands in. `neighbours` gives the accounts of this process."""

    desk: Desk
    neighbours: Callable[[], Sequence[Channel]]
    followed: set[str] = field(default_factory=set[str])

    async def load(self) -> None:
        """Reads what was remembered: subscriptions outlive a restart (SW11)."""
        desk = self.desk
        async with desk.store.work(write=False) as work:
            self.followed |= await work.reception.list_followed(desk.account, desk.channel.platform)

    async def look(self, arrival: Arrival) -> Attention:
        """What to do about the message. Reads the store only for messages that are for the agent."""
        sighting, manners = self._sighting(arrival), self.desk.manners
        attention = decide_attention(sighting, manners)
        if attention.trigger is None:
            return attention
        return decide_attention(await self.informed(sighting), manners)

    def _sighting(self, arrival: Arrival) -> Sighting:
        return Sighting(
            room=arrival.room, author_id=arrival.post.author.id, author_roles=arrival.roles,
            is_bot=arrival.post.author.is_bot, text=arrival.question, mentions_me=arrival.mentions_me,
            mentioned_roles=arrival.mentioned_roles, replies_to_me=arrival.replies_to_me,
            is_followed=arrival.room.id in self.followed, exchanges=0, mentions_others=arrival.mentions_others,
            is_resident=any(c.user_id == arrival.post.author.id for c in self.neighbours()),
        )  # fmt: skip

    async def informed(self, sighting: Sighting) -> Sighting:
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

    async def refuse(self, arrival: Arrival, refusal: Refusal, why: str = "") -> None:
        """Remembers that the message was refused and says so, once."""
        desk, post = self.desk, arrival.post
        claim = Claim(desk.account, desk.channel.platform, post.id, refusal=refusal)
        async with desk.store.work() as work:
            is_first = bool(await work.reception.claim([claim], now=desk.clock.now()))
        text = refusal_text(refusal, why)
        if is_first and text:
            await desk.outbox.say(desk.channel, arrival.room.place, text, reply_to=post.id, key=post.id)

    async def say(self, arrival: Arrival, text: str, *, failed: bool = False) -> None:
        """Answers without a turn: a greeting, what a command gave. Claims the message, so that it happens once."""
        desk, post = self.desk, arrival.post
        await self._claim_said(post.id)
        await desk.outbox.say(desk.channel, arrival.room.place, text, reply_to=post.id, key=post.id)
        if failed and desk.manners.reactions.failed:
            await desk.outbox.sign(desk.channel, arrival.room.place, desk.manners.reactions.failed, on=post.id)

    async def sign(self, arrival: Arrival, emoji: str) -> None:
        """Answers with a reaction only."""
        await self._claim_said(arrival.post.id)
        await self.desk.outbox.sign(self.desk.channel, arrival.room.place, emoji, on=arrival.post.id)

    async def _claim_said(self, post_id: str) -> None:
        desk = self.desk
        claim = Claim(desk.account, desk.channel.platform, post_id, refusal="said")
        async with desk.store.work() as work:
            await work.reception.claim([claim], now=desk.clock.now())

    # --- turns -------------------------------------------------------------------------------------------------------

    async def begin(self, arrival: Arrival, *, edit: TurnId | None = None) -> Begun | None:
        """The turn for one message that deserves an answer; None when it was refused or is answered already."""
        post = arrival.post
        parts = await arrival.load_parts()
        place = await self._place(arrival)
        key = post.id if edit is None else f"{post.id}~{post.edited_at.timestamp() if post.edited_at else 0}"
        inbound = await self._inbound(arrival, place, parts, key=key, answers=(key,))
        if edit is not None and inbound.owed is not None:
            inbound = replace(inbound, owed=replace(inbound.owed, supersedes=edit))
        return await self.hand_in(inbound, arrival)

    async def begin_missed(self, arrivals: Sequence[Arrival]) -> Begun | None:
        """One turn for several messages that came long ago; it replies to the newest."""
        newest = arrivals[-1]
        loaded = [(arrival.post.author.name, await arrival.load_parts()) for arrival in arrivals]
        answers = tuple(arrival.post.id for arrival in arrivals)
        inbound = await self._inbound(
            newest, newest.room.place, missed_parts(loaded), key=newest.post.id, answers=answers
        )
        return await self.hand_in(replace(inbound, shared=False), newest)

    async def hand_in(self, inbound: Inbound, arrival: Arrival) -> Begun | None:
        """Submits; a refusal by a limit is remembered and said."""
        desk, room = self.desk, arrival.room
        in_guild = room.kind is not RoomKind.DIRECT
        if in_guild:
            limit = desk.manners.max_exchanges if arrival.post.author.is_bot else None
            if not await desk.exchanges.take(desk.channel.platform, room.id, limit=limit):
                await self.refuse(arrival, Refusal.EXCHANGES)
                return None
        try:
            turn = await desk.turns.submit(inbound)
        except DenizenError as error:
            if in_guild:
                await desk.exchanges.give_back(desk.channel.platform, room.id)
            if not isinstance(error, Exhausted):
                raise
            refusal = Refusal.RATE if error.code == "rate_limited" else Refusal.BUSY
            await self.refuse(arrival, refusal, error.message)
            return None
        return Begun(turn, inbound.place, inbound.owed.reply_to if inbound.owed else "")

    async def _place(self, arrival: Arrival) -> Place:
        """Where the answer goes: the room, or a thread opened for it; threads are followed from now on."""
        desk, room = self.desk, arrival.room
        habit = desk.manners.threads
        if habit is ThreadHabit.OPEN and room.kind is RoomKind.CHANNEL and not arrival.post.author.is_bot:
            title = " ".join(arrival.question.split())[:THREAD_TITLE_CHARS] or arrival.post.author.name
            room = await desk.channel.open_thread(room.place, arrival.post.id, title)
        if habit is not ThreadHabit.NONE and room.is_thread and room.id not in self.followed:
            async with desk.store.work() as work:
                await work.archive.put_room(room)
                await work.reception.follow(desk.account, desk.channel.platform, room.id, now=desk.clock.now())
            self.followed.add(room.id)
        return room.place

    async def _inbound(
        self, arrival: Arrival, place: Place, parts: Sequence[Part], *, key: str, answers: tuple[str, ...]
    ) -> Inbound:
        desk, post = self.desk, arrival.post
        principal = self.principal(post.author, arrival.roles)
        agent, model = await self.chosen(place, principal)
        in_thread = place == arrival.room.place
        return Inbound(
            agent=agent, place=place, principal=principal, author=post.author, parts=tuple(parts), platform_id=key,
            model=model, session_place=self.session_place(agent, place, post.author.id),
            shared=arrival.room.kind is not RoomKind.DIRECT,
            owed=Owed(desk.account, reply_to=post.id if in_thread else "", answers=answers),
        )  # fmt: skip

    def principal(self, author: Author, roles: frozenset[str]) -> Principal:
        """A user of the platform with what they are to Denizen."""
        desk = self.desk
        names = roles_of(author.id, roles, desk.manners)
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

    def session_place(self, agent: AgentName, place: Place, user_id: str) -> Place | None:
        """Where the agent's history of this talk lives (inventory X-session-scope); None for the place itself."""
        match self.desk.runtime.current.agent(agent).session_scope:
            case SessionScope.USER:
                return Place(place.platform, f"user:{user_id}")
            case SessionScope.CHANNEL if place.thread:
                return Place(place.platform, place.channel)
            case _:
                return None


def age_s(arrival: Arrival, now: datetime) -> float:
    return (now - arrival.post.created_at).total_seconds()
