"""Posts of a room that are no talk to an agent: commands, the replies to them, and what its session holds already."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from denizen.domain.ids import AgentName, SessionId
from denizen.domain.room import Post
from denizen.ports.inbox import COMMAND, MessageClaim
from denizen.ports.store import UnitOfWork


async def drop_commands(work: UnitOfWork, posts: Sequence[Post], accounts: Collection[AgentName]) -> list[Post]:
    """Returns the posts of a platform without the commands that people typed for one of the accounts, and without the
    replies to these.
    """
    claims = await _load_claims(work, posts, accounts)
    commands = {claim.post_id for claim in claims if claim.refusal == COMMAND}
    return [post for post in posts if not commands & {post.id, _get_answered(post)}]


async def find_told(
    work: UnitOfWork, posts: Sequence[Post], accounts: Collection[AgentName], session_id: SessionId | None
) -> frozenset[str]:
    """Returns the ids of the posts that are questions of the session, whether a prompt shows, sums up or cuts them."""
    told: set[str] = set()
    for claim in await _load_claims(work, posts, accounts):
        turn = await work.turns.find(claim.turn_id) if claim.turn_id else None
        if turn is not None and turn.session_id == session_id:
            told.add(claim.post_id)
    return frozenset(told)


async def _load_claims(work: UnitOfWork, posts: Sequence[Post], accounts: Collection[AgentName]) -> list[MessageClaim]:
    ids = {key for post in posts for key in (post.id, _get_answered(post)) if key}
    claims: list[MessageClaim] = []
    for account in accounts if posts else ():
        claims += (await work.inbox.find_claims(account, posts[0].platform, ids)).values()
    return claims


def _get_answered(post: Post) -> str:
    """Returns the post that a bot's post replies to; empty for other posts."""
    return post.reply_to if post.author.is_bot else ""
