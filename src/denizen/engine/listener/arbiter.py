"""Several agents in one room: which of them a message concerns, who of these speaks, and who waits for whom.

One for a process. Each account hears a message by itself; what it decides here follows from the message, the rules of
all accounts and the archive, so that all come to the same (`domain/speaking`). Who speaks later waits until what the
earlier ones owe has been sent, to have read it. Everything that is waited for is in the store, also after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from denizen.domain.attention import Attention, decide_attention
from denizen.domain.delivery import DeliveryState
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.speakers import Candidate, decide_speakers, find_last_answer, find_name
from denizen.engine.listener.turn_start import AccountContext, TurnStarter
from denizen.ports.channel import IncomingMessage
from denizen.ports.store import Work

PATIENCE_S = 300.0
"""An agent that is not done by then is not waited for any longer."""
CLAIM_PATIENCE_S = 10.0
"""How long an agent may need to hear the message at all: it may be disconnected."""
MIRROR_PATIENCE_S = 2.0
"""How long what was sent may need to come back from the platform."""
LOOK_EVERY_S = 0.1
POSTS_BACK = 100
"""Among so many posts of the room one looks who spoke with this person last."""

_OWED = frozenset({DeliveryState.PENDING, DeliveryState.SENDING})


@dataclass(frozen=True, slots=True)
class SpeakingOrder:
    """Whose turn it is: `speakers` in their order. `is_open`: nobody was addressed and several could join in."""

    speakers: tuple[AgentName, ...]
    is_open: bool = False

    def before(self, agent: AgentName) -> tuple[AgentName, ...]:
        return self.speakers[: self.speakers.index(agent)]


@dataclass(slots=True)
class SpeakerArbiter:
    """`receivers` are those of the accounts that listen."""

    receivers: list[TurnStarter] = field(default_factory=list[TurnStarter])

    def join(self, receiver: TurnStarter) -> None:
        self.receivers.append(receiver)

    def leave(self, receiver: TurnStarter) -> None:
        if receiver in self.receivers:
            self.receivers.remove(receiver)

    async def silences(self, receiver: TurnStarter, arrival: IncomingMessage) -> bool:
        """Whether others speak and this one does not."""
        return receiver.desk.account not in (await self.decide(receiver, arrival)).speakers

    async def decide(self, mine: TurnStarter, arrival: IncomingMessage) -> SpeakingOrder:
        """For a message that deserves an answer by this account, as far as it is concerned."""
        account, room = mine.desk.account, arrival.room
        others = [each for each in self.receivers if each is not mine and each.is_beside(mine, room.id)]
        if not others:
            return SpeakingOrder((account,))
        candidates = [found for each in (mine, *others) if (found := await self._candidate(each, arrival))]
        if all(each.agent != account for each in candidates):
            return SpeakingOrder((account,))
        unasked = [each for each in candidates if not each.is_addressed]
        if len(unasked) == len(candidates) > 1:
            candidates = await self._with_history(mine.desk, arrival, candidates)
            return SpeakingOrder(decide_speakers(candidates), is_open=True)
        return SpeakingOrder(decide_speakers(candidates))

    async def _candidate(self, receiver: TurnStarter, arrival: IncomingMessage) -> Candidate | None:
        desk, post = receiver.desk, arrival.post
        user_id, account_policy = desk.channel.user_id, desk.account_policy
        if post.author.id == user_id:
            return None
        sighting = receiver.sighting_of(arrival)
        attention: Attention = decide_attention(sighting, account_policy)
        if attention.trigger is not None:
            attention = decide_attention(await receiver.informed(sighting), account_policy)
        if attention.trigger is None or not attention.answers:
            return None
        place = arrival.mentioned.index(user_id) if user_id in arrival.mentioned else None
        named = find_name(post.text, desk.account)
        return Candidate(desk.account, attention.trigger, place, named, eagerness=account_policy.eagerness)

    async def _with_history(
        self, desk: AccountContext, arrival: IncomingMessage, candidates: Sequence[Candidate]
    ) -> list[Candidate]:
        post, users = arrival.post, {each.desk.account: each.desk.channel.user_id for each in self.receivers}
        async with desk.store.work(write=False) as work:
            posts = await work.archive.list_posts(post.platform, post.room, before=post.id, limit=POSTS_BACK)
        return [
            Candidate(
                each.agent, each.trigger, each.place, each.named,
                find_last_answer(posts, post.author.id, users[each.agent]), each.eagerness,
            )
            for each in candidates
        ]  # fmt: skip

    async def wait_for(self, desk: AccountContext, earlier: Sequence[AgentName], arrival: IncomingMessage) -> None:
        """Until those who speak before have spoken, or will not."""
        for agent in earlier:
            with anyio.move_on_after(PATIENCE_S):
                await _until_spoken(desk, agent, arrival.post.id)


async def _until_spoken(desk: AccountContext, agent: AgentName, post_id: str) -> None:
    began_s = desk.clock.monotonic_s()
    sent_s: float | None = None
    while True:
        async with desk.store.work(write=False) as work:
            claims = await work.reception.find_claims(agent, desk.channel.platform, [post_id])
            claim = claims.get(post_id)
            now_s = desk.clock.monotonic_s()
            if claim is None:
                if now_s - began_s >= CLAIM_PATIENCE_S:
                    return
            elif claim.turn_id is None:
                return
            elif await _is_sent(work, claim.turn_id):
                sent_s = now_s if sent_s is None else sent_s
                if await _is_mirrored(work, desk, claim.turn_id) or now_s - sent_s >= MIRROR_PATIENCE_S:
                    return
        await anyio.sleep(LOOK_EVERY_S)


async def _is_sent(work: Work, turn_id: TurnId) -> bool:
    turn = await work.turns.get(turn_id)
    return turn.status.is_final and not any(d.state in _OWED for d in await work.outbox.list_of_turn(turn_id))


async def _is_mirrored(work: Work, desk: AccountContext, turn_id: TurnId) -> bool:
    if not desk.runtime.current.archive.enabled:
        return True
    sent = [d for d in await work.outbox.list_of_turn(turn_id) if d.state is DeliveryState.SENT and d.content.text]
    posts = [await work.archive.find(desk.channel.platform, d.platform_id) for d in sent[-1:]]
    return all(post is not None for post in posts)
