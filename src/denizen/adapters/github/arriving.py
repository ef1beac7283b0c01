"""From what was written on GitHub to an `IncomingMessage` as one account sees it (inventory S32, S33-context)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio

from denizen.adapters.github.api import Api
from denizen.adapters.github.body import from_body
from denizen.adapters.github.credentials import Identity
from denizen.adapters.github.heard import Heard, Topic
from denizen.adapters.github.mentions import list_mentions, strip_mentions
from denizen.adapters.github.reading import list_newest
from denizen.domain.errors import DenizenError
from denizen.domain.message import FilePart, Part, TextPart
from denizen.ports.channel import IncomingMessage, MessageMentions

EARLIER_COMMENTS = 10
"""Read as context (inventory S33-context)."""
EARLIER_DEADLINE_S = 5.0
"""GitHub gives up on a webhook after ten seconds."""
NO_WORDS = "(There are no words beside the mention: it is about what was said before.)"

_log = logging.getLogger("denizen.github")


@dataclass(frozen=True, slots=True)
class Ear:
    """`new_issues`: an issue that is opened is for the account, whether it mentions it or not."""

    api: Api
    identity: Identity
    new_issues: bool

    def arrival(self, topic: Topic, heard: Heard, *, is_edit: bool = False, is_fresh: bool = False) -> IncomingMessage:
        """`is_fresh` is told by GitHub as it was made. What was edited since may hold the words of somebody else: those
        who may write to a repository may edit what others wrote there.
        """
        is_unsure = heard.post.edited_at is not None and not is_fresh
        words, _ = from_body(heard.body)
        called, own = list_mentions(words), self.identity.mention.lower()
        is_new_issue = self.new_issues and heard.is_opening and topic.subject.kind == "issue"
        is_meant = own in called or is_new_issue
        question = strip_mentions(words, own) or NO_WORDS
        return IncomingMessage(
            post=heard.post,
            room=heard.thread.room(topic.subject.title, latest_post=heard.post.id),
            question=question,
            load_parts=partial(_load_parts, heard, question),
            roles=frozenset(filter(None, (heard.association,))),
            mentions=MessageMentions(
                me=is_meant,
                others=any(name != own for name in called),
                users=(self.identity.user_id,) if is_meant else (),
            ),
            is_mine=heard.post.author.id == self.identity.user_id,
            is_edit=is_edit,
            is_unsure=is_unsure,
            subject=topic.subject,
            load_earlier=partial(self._load_earlier, topic, heard),
        )

    async def _load_earlier(self, topic: Topic, heard: Heard) -> Sequence[IncomingMessage]:
        """The opening, and the newest comments before it. Without them the question is answered all the same."""
        found: Sequence[Heard] = ()
        if not heard.is_opening:
            try:
                with anyio.fail_after(EARLIER_DEADLINE_S):
                    found = await list_newest(self.api, heard.thread, heard.post.id, EARLIER_COMMENTS)
            except (DenizenError, TimeoutError) as error:
                why = error.explain() if isinstance(error, DenizenError) else "it took too long"
                _log.warning("comments are not read", extra={"room": heard.thread.room_id, "why": why})
        opening = [] if heard.is_opening else [topic.opening]
        return [self.arrival(topic, each) for each in (*opening, *found)]


async def _load_parts(heard: Heard, question: str) -> tuple[Part, ...]:
    if not heard.code:
        return (TextPart(question),)
    name = heard.file or "change.diff"
    return (TextPart(question), FilePart(name, "text/x-diff", len(heard.code.encode()), text=heard.code))
