"""Reactions by which people propose an answer for the documents, and by which its author takes it back.

Only what everybody of the server may read is learned; nothing of bots, and nothing of people who opted out. The author
is told by the same unit of work that stores the proposal. What becomes of a proposal is in `knowledge/coverage`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from denizen.domain.attention import in_scope
from denizen.domain.errors import DenizenError
from denizen.domain.ids import fresh
from denizen.domain.message import Author
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.proposal import (
    MAX_ANSWER_CHARS,
    MAX_QUESTION_CHARS,
    NEAR,
    PROPOSED,
    REFUSED,
    LearningPolicy,
    Proposal,
    ProposalStatus,
    ProposedAnswer,
    add_proposal_id,
    clean_proposal_text,
    is_same_emoji,
    nearest_gap,
)
from denizen.domain.room import Post, Room
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.listener.context import AccountContext
from denizen.engine.listener.cursors import before
from denizen.engine.outbox.plan import Announcement, plan_announcement
from denizen.ports.channel import Channel, ReactionChange

TOLD = f"Proposed as an answer; an owner looks at it. Put {REFUSED} on your message to take it back."

_GAPS = 1000
_log = logging.getLogger("denizen.listener")


class ProposalReactions:
    """Takes and withdraws proposals, for all accounts of a process.

    `on_withdrawn` is called whenever a proposal is taken back, whatever status was read before: somebody may have
    accepted it into the documents in the meantime.
    """

    def __init__(self, mirror: ArchiveMirror, *, on_withdrawn: Callable[[], Awaitable[object]]) -> None:
        self._mirror = mirror
        self._on_withdrawn = on_withdrawn

    async def handle(self, context: AccountContext, reaction: ReactionChange) -> None:
        policy = context.runtime.current.knowledge.learning
        if reaction.is_bot:
            return
        if is_same_emoji(reaction.emoji, REFUSED):
            if reaction.is_on:
                await self._refuse(context, reaction)
        elif is_same_emoji(reaction.emoji, policy.emoji):
            if not reaction.is_on:
                await self._take_back(context, reaction)
            elif policy.enabled and _is_trusted(context, reaction, policy):
                await self._propose(context, reaction)

    async def forget_posts(self, context: AccountContext, post_ids: Sequence[str]) -> None:
        """Removes what was proposed of messages that are gone."""
        async with context.store.work(write=False) as work:
            known = await work.proposals.find_for_posts(context.platform, post_ids)
        if not known:
            return
        async with context.store.work() as work:
            await work.proposals.remove([each.id for each in known])
        await self._on_withdrawn()

    async def forget_room(self, context: AccountContext, room_id: str) -> None:
        """Removes what was proposed in a channel and its threads, or in a thread."""
        async with context.store.work() as work:
            gone = await work.proposals.forget_room(context.platform, room_id)
        if gone:
            await self._on_withdrawn()

    async def _propose(self, context: AccountContext, reaction: ReactionChange) -> None:
        channel, room = context.channel, reaction.room
        if not in_scope(room, context.account_policy.scope) or not await channel.is_open(room):
            _log.info("not everybody may read the proposed answer", extra={"room": room.id})
            return
        post = await _find_post(channel, room, reaction.message_id)
        answer = clean_proposal_text(post.text, MAX_ANSWER_CHARS) if post is not None else ""
        if post is None or not answer or post.author.is_bot or not await self._may_show(channel, room, post):
            return
        now = context.clock.now()
        proposal = Proposal(
            id="",
            answer=ProposedAnswer(
                place=room.place,
                post=post.id,
                text=answer,
                author=_principal_key(post.platform, post.author.id),
                author_name=clean_proposal_text(post.author.name, MAX_QUESTION_CHARS),
                link=self._mirror.policy.link_to(post),
                said_at=post.created_at,
            ),
            proposer=_principal_key(post.platform, reaction.user_id),
            created_at=now,
        )
        proposal = add_proposal_id(await self._with_question(context, room, post, proposal))
        said = Announcement(room.place, post.id, TOLD, PROPOSED, key=fresh("proposed"))
        deliveries = plan_announcement(said, channel, context.account_policy, now=now)
        async with context.store.work() as work:
            # One proposal for each message, whatever it says by now: an author's refusal is for good.
            if await work.proposals.find_for_posts(post.platform, [post.id]) or not await work.proposals.add(proposal):
                return
            await work.outbox.add(deliveries)
        context.outbox.wake(channel.platform, channel.agent)

    async def _with_question(self, context: AccountContext, room: Room, post: Post, proposal: Proposal) -> Proposal:
        """Adds the question: what the post replies to, or the nearest gap; never of people who opted out."""
        channel = context.channel
        async with context.store.work(write=False) as work:
            gaps = await work.gaps.list_gaps(since=post.created_at - NEAR, limit=_GAPS)
        asked = await _find_post(channel, room, post.reply_to) if post.reply_to else None
        if asked is not None and not asked.author.is_bot and await self._may_show(channel, room, asked):
            question, asker = (
                clean_proposal_text(asked.text, MAX_QUESTION_CHARS),
                _principal_key(asked.platform, asked.author.id),
            )
            gap = nearest_gap(gaps, room.place, post.created_at, asker=asker, question=question)
            return replace(proposal, question=question, asker=asker, gap_id=gap.id if gap else "")
        gap = nearest_gap(gaps, room.place, post.created_at)
        prefix = _principal_key(post.platform, "")
        if gap is None or not gap.asker.startswith(prefix):
            return proposal
        # As if the asker had written it there: opt-outs of people, roles and rooms count alike.
        theirs = replace(post, author=Author(gap.asker.removeprefix(prefix), ""), created_at=gap.created_at)
        if not await self._may_show(channel, room, theirs):
            return proposal
        return replace(
            proposal, question=clean_proposal_text(gap.question, MAX_QUESTION_CHARS), asker=gap.asker, gap_id=gap.id
        )

    async def _may_show(self, channel: Channel, room: Room, post: Post) -> bool:
        roles = await channel.find_roles(room.id, [post.author.id])
        return bool(await self._mirror.showable([post], roles))

    async def _take_back(self, context: AccountContext, reaction: ReactionChange) -> None:
        """Removes the open proposal of the one who took the reaction off. What was decided stays."""
        platform = context.platform
        async with context.store.work() as work:
            found = await work.proposals.find_for_posts(platform, [reaction.message_id])
            proposer = _principal_key(platform, reaction.user_id)
            theirs = [each for each in found if each.status is ProposalStatus.OPEN and each.proposer == proposer]
            if not theirs:
                return
            await work.proposals.remove([each.id for each in theirs])
        await _remove_sign(context.channel, theirs[0])

    async def _refuse(self, context: AccountContext, reaction: ReactionChange) -> None:
        """Withdraws the proposal for its author, for good: the same message is not proposed again."""
        platform = context.platform
        async with context.store.work(write=False) as work:
            found = await work.proposals.find_for_posts(platform, [reaction.message_id])
        theirs = [each for each in found if each.answer.author == _principal_key(platform, reaction.user_id)]
        if not theirs:
            return
        async with context.store.work() as work:
            gone = [each for each in theirs if await work.proposals.withdraw(each.id)]
        if gone:
            await self._on_withdrawn()
            await _remove_sign(context.channel, gone[0])


def _is_trusted(context: AccountContext, reaction: ReactionChange, policy: LearningPolicy) -> bool:
    names = context.principal(Author(reaction.user_id, reaction.user_name), reaction.roles).roles
    return bool(names & {RoleName.OWNER, RoleName.ADMIN} or reaction.roles & policy.roles)


async def _find_post(channel: Channel, room: Room, post_id: str) -> Post | None:
    found = await channel.list_posts(room.id, after=before(post_id), limit=1)
    return next((post for post in found if post.id == post_id), None)


async def _remove_sign(channel: Channel, proposal: Proposal) -> None:
    """Takes the agent's sign off the message, as far as that is possible."""
    try:
        await channel.react(proposal.answer.place, proposal.answer.post, PROPOSED, on=False)
    except DenizenError as error:
        _log.info("reaction stays", extra={"post": proposal.answer.post, **error.fields})


def _principal_key(platform: str, user_id: str) -> str:
    return Principal(PrincipalKind.PLATFORM_USER, f"{platform}:{user_id}", "").key
