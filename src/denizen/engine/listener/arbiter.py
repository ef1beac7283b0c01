"""Several agents in one room: which of them a message concerns, who of these speaks, and who waits for whom.

Each account receives a message by itself. What it decides here follows from the message, the policies of all accounts
and the archive, so all accounts come to the same decision (`domain/speaker_choice`). Who speaks later waits until
the earlier replies are sent, to have read them. Everything that is waited for is in the store, also after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import anyio

from denizen.domain.delivery import DUE, Delivery, DeliveryKind, DeliveryState
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.record import record
from denizen.domain.speaker_choice import SpeakerCandidate, decide_speakers, find_last_answer, find_name
from denizen.engine.listener.context import AccountContext
from denizen.engine.listener.reading import MessageReader
from denizen.ports.channel import IncomingMessage
from denizen.ports.store import UnitOfWork

PATIENCE_S = 300.0
"""How long an agent waits for the reply of an earlier one."""
CLAIM_PATIENCE_S = 10.0
"""How long an agent may need to receive the message at all: its account may be disconnected."""
MIRROR_PATIENCE_S = 2.0
"""How long a sent reply may need to come back from the platform into the archive."""
LOOK_EVERY_S = 0.1
POSTS_BACK = 100
"""How many posts of the room are searched for the last answer to the author."""


@record
class SpeakingOrder:
    """Which agents answer a message, in order. `is_open`: nobody was addressed, and several agents could join in."""

    speakers: tuple[AgentName, ...]
    is_open: bool = False

    def before(self, agent: AgentName) -> tuple[AgentName, ...]:
        return self.speakers[: self.speakers.index(agent)]


class SpeakerArbiter:
    """Decides who speaks, for all accounts of a process that listen."""

    def __init__(self) -> None:
        self._readers: list[MessageReader] = []

    def join(self, reader: MessageReader) -> None:
        self._readers.append(reader)

    def leave(self, reader: MessageReader) -> None:
        if reader in self._readers:
            self._readers.remove(reader)

    async def decide(self, mine: MessageReader, message: IncomingMessage) -> SpeakingOrder:
        """Decides about a message that the account of `mine` may answer, as far as it is concerned."""
        account, room = mine.context.account, message.room
        others = [each for each in self._readers if each is not mine and each.is_beside(mine, room.id)]
        if not others:
            return SpeakingOrder((account,))
        candidates = [found for each in (mine, *others) if (found := await self._find_candidate(each, message))]
        if all(each.agent != account for each in candidates):
            return SpeakingOrder((account,))
        unasked = [each for each in candidates if not each.is_addressed]
        if len(unasked) == len(candidates) > 1:
            candidates = await self._with_history(mine.context, message, candidates)
            return SpeakingOrder(decide_speakers(candidates), is_open=True)
        return SpeakingOrder(decide_speakers(candidates))

    async def _find_candidate(self, reader: MessageReader, message: IncomingMessage) -> SpeakerCandidate | None:
        context, post = reader.context, message.post
        user_id, mentioned = context.channel.user_id, message.mentions.users
        if post.author.id == user_id:
            return None
        attention = await reader.decide_as_other(message)
        if attention.trigger is None or not attention.answers:
            return None
        return SpeakerCandidate(
            agent=context.account,
            trigger=attention.trigger,
            place=mentioned.index(user_id) if user_id in mentioned else None,
            named=find_name(post.text, context.account),
            eagerness=context.account_policy.eagerness,
        )

    async def _with_history(
        self, context: AccountContext, message: IncomingMessage, candidates: Sequence[SpeakerCandidate]
    ) -> list[SpeakerCandidate]:
        """The candidates with the time at which each of them answered the author last."""
        post = message.post
        users = {each.context.account: each.context.channel.user_id for each in self._readers}
        async with context.store.work(write=False) as work:
            posts = await work.archive.list_posts(post.platform, post.room, before=post.id, limit=POSTS_BACK)
        return [
            replace(each, spoke_at=find_last_answer(posts, post.author.id, users[each.agent])) for each in candidates
        ]

    async def wait_for(self, context: AccountContext, earlier: Sequence[AgentName], message: IncomingMessage) -> None:
        """Waits until the earlier agents have spoken, or will not speak."""
        for agent in earlier:
            with anyio.move_on_after(PATIENCE_S):
                await _wait_until_spoken(context, agent, message.post.id)


async def _wait_until_spoken(context: AccountContext, agent: AgentName, post_id: str) -> None:
    began_s = context.clock.monotonic_s()
    sent_s: float | None = None
    while True:
        async with context.store.work(write=False) as work:
            claims = await work.inbox.find_claims(agent, context.platform, [post_id])
            claim = claims.get(post_id)
            now_s = context.clock.monotonic_s()
            if claim is None:
                if now_s - began_s >= CLAIM_PATIENCE_S:
                    return
            elif claim.turn_id is None:  # it was refused
                return
            elif await _is_sent(work, claim.turn_id):
                sent_s = now_s if sent_s is None else sent_s
                if await _is_mirrored(work, context, claim.turn_id) or now_s - sent_s >= MIRROR_PATIENCE_S:
                    return
        await anyio.sleep(LOOK_EVERY_S)


async def _is_sent(work: UnitOfWork, turn_id: TurnId) -> bool:
    turn = await work.turns.get(turn_id)
    return turn.status.is_final and not any(d.state in DUE for d in await _list_reply(work, turn_id))


async def _list_reply(work: UnitOfWork, turn_id: TurnId) -> list[Delivery]:
    """Returns what the turn owes or has sent, without its preview."""
    return [d for d in await work.outbox.list_for_turn(turn_id) if d.kind is not DeliveryKind.PREVIEW]


async def _is_mirrored(work: UnitOfWork, context: AccountContext, turn_id: TurnId) -> bool:
    """Whether the archive has the last piece of the reply: from there the next agent reads it."""
    if not context.runtime.current.archive.enabled:
        return True
    sent = [d for d in await _list_reply(work, turn_id) if d.state is DeliveryState.SENT and d.content.text]
    posts = [await work.archive.find(context.platform, d.platform_id) for d in sent[-1:]]
    return all(post is not None for post in posts)
