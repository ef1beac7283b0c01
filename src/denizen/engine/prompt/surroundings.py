"""What others said in the room just before the question (inventory L3).

A passing note (`notes.py`), read from the archive for this turn only: it is stored nowhere else, so that what is
deleted or forgotten there is gone from here too. The agent's own posts are in its session already.
"""

from __future__ import annotations

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName
from denizen.domain.message import Message
from denizen.domain.prompt import PromptMessage
from denizen.domain.room import Post
from denizen.domain.taint import tainted
from denizen.domain.tool import Taint
from denizen.domain.turn import Owed
from denizen.engine.choices import reset_at
from denizen.engine.prompt.assemble import passing
from denizen.engine.prompt.marks import speaker_of
from denizen.ports.store import Store

MAX_CHARS = 300
"""Of one message."""

_ANSWERS = "What other agents have answered to this already; they are others, not you:"
_HEAD = "What was said here just before the question, for your information:"


async def load_surroundings(
    store: Store, agent: AgentName, place: Place, question: Message, *, before: str, limit: int
) -> list[PromptMessage]:
    """At most `limit` posts from before the post `before`, as one message; none where nothing is archived, and
    nothing from before the agent was reset there (C19).
    """
    room = place.thread or place.channel
    lines: list[str] = []
    async with store.work(write=False) as work:
        reset = await reset_at(work, agent, place.conversation_id)
        posts = await work.archive.list_posts(place.platform, room, before=before, limit=limit)
        told: set[str] = set()
        if question.session_id:
            told = {m.platform_id for m in await work.messages.list_tail(question.session_id, limit=2 * limit)}
        for post in posts:
            is_own = post.author.is_bot and await work.outbox.find_by_platform_id(place.platform, post.id) is not None
            is_known = is_own or post.id in told or (reset is not None and post.created_at <= reset)
            if post.text.strip() and not is_known:
                lines.append(_line(post))
    if not lines:
        return []
    return [tainted(passing(f"{_HEAD}\n" + "\n".join(lines), "surroundings"), Taint.OTHERS)]


async def load_answers(store: Store, owed: Owed, place: Place, *, limit: int) -> list[PromptMessage]:
    """What other agents have answered to the same message already, as one message; at most `limit` posts."""
    async with store.work(write=False) as work:
        room = place.thread or place.channel
        posts = await work.archive.list_posts(place.platform, room, after=owed.reply_to, limit=limit)
        lines: list[str] = []
        for post in posts:
            sent = await work.outbox.find_by_platform_id(place.platform, post.id) if post.author.is_bot else None
            if sent is not None and sent.agent != owed.account and post.text.strip():
                lines.append(_line(post))
    if not lines:
        return []
    return [tainted(passing(f"{_ANSWERS}\n" + "\n".join(lines), "surroundings"), Taint.OTHERS)]


def _line(post: Post) -> str:
    text = " ".join(post.text.split())
    return f"{speaker_of(post.author.name)}: {text[:MAX_CHARS]}{'…' if len(text) > MAX_CHARS else ''}"
