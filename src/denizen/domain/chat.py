"""A chat of the web: a conversation with a title, which one person has with agents and may share. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NewType

from denizen.domain.conversation import Session
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName, ConversationId, MessageId, SessionId
from denizen.domain.record import record

ChatId = NewType("ChatId", str)
"""The id of a chat among those of its owner: the name of the session that it is."""

MAX_TITLE_CHARS = 30
"""The limit for a title that is made of the first message. People may write longer ones."""
MAX_WRITTEN_TITLE_CHARS = 100
MAX_REASON_CHARS = 1000
FALLBACK_TITLE = "New chat"

_CHAT_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LABEL = re.compile(r"^(?:chat )?title\s*:\s*", re.IGNORECASE)
_EDGES = " \t\"'`“”„‘’«»*_#.,;:!?…-–—()[]{}<>|/\\~"
_BEFORE_WORDS = "\"'`“”„‘’«»([{<"
_AFTER_WORDS = f"{_BEFORE_WORDS})]}}>.,;:!?…-–—|"
_BETWEEN_WORDS = str.maketrans(dict.fromkeys("、。，；：！？《》「」『』", " "))
"""Punctuation that stands between words without blanks."""


class ChatMode(StrEnum):
    """Whom a chat is with: an agent, or the administration of the server."""

    CHAT = "chat"
    ADMIN = "admin"


class Vote(StrEnum):
    """The judgement of somebody on an answer."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


@record
class VoteCount:
    """How many answers people found good, and how many they did not."""

    positive: int = 0
    negative: int = 0

    def __add__(self, other: VoteCount) -> VoteCount:
        return VoteCount(self.positive + other.positive, self.negative + other.negative)

    @property
    def score(self) -> float | None:
        """The share of good ones, from 0 to 1; None without votes."""
        total = self.positive + self.negative
        return self.positive / total if total else None


@record(kw_only=True)
class Chat:
    """`owner` is the key of a principal; nobody else reads the chat, unless it has a `share_token`, which opens it to
    everybody who knows it. `updated_at` is the time of its last message.
    """

    id: ChatId
    conversation_id: ConversationId
    owner: str
    agent: AgentName
    created_at: datetime
    updated_at: datetime
    mode: ChatMode = ChatMode.CHAT
    title: str = ""
    share_token: str = ""
    is_pinned: bool = False


@record(kw_only=True)
class MessageVote:
    """The vote of a chat's owner on an answer. `said_at` is the time of the answer."""

    message_id: MessageId
    vote: Vote
    reason: str
    said_at: datetime


@record
class SessionFork:
    """A message of a session in whose place other sessions have another one. `sessions` are all of them in the order
    in which they were made, and `current` is the index of the one that is shown.
    """

    sequence: int
    sessions: tuple[SessionId, ...]
    current: int


def is_chat_id(text: str) -> bool:
    return _CHAT_ID.fullmatch(text) is not None


def check_chat_id(text: str) -> ChatId:
    """Returns the id. Raises InvalidInput."""
    if not is_chat_id(text):
        raise InvalidInput(
            "A chat's id has 1 to 64 letters, digits, `_` or `-`.", code="chat_id_invalid", fix="Choose another id."
        )
    return ChatId(text)


def clean_title(text: str, *, limit: int = MAX_TITLE_CHARS) -> str:
    """Returns what a model proposed as a title, on one line, without marks and punctuation, except inside of words such
    as Node.js; cut at a word. Empty when nothing is left.
    """
    line = next((line for line in text.splitlines() if line.strip(_EDGES)), "")
    words = _LABEL.sub("", " ".join(line.strip().strip("*_#\"'` ").split()))
    plain = (word.lstrip(_BEFORE_WORDS).rstrip(_AFTER_WORDS) for word in words.translate(_BETWEEN_WORDS).split())
    return _shorten(" ".join(filter(None, plain)).strip(_EDGES), limit)


def first_words(message: str, *, limit: int = MAX_TITLE_CHARS) -> str:
    """Returns a title made of the first words of a message."""
    line = next((line for line in message.splitlines() if line.strip(_EDGES)), "")
    return _shorten(" ".join(line.split()).strip(_EDGES), limit) or FALLBACK_TITLE


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    cut = text[: limit + 1]
    words = cut.rpartition(" ")[0] if " " in cut else text[:limit]
    return words.rstrip(_EDGES) or text[:limit].rstrip(_EDGES)


def find_fork_point(sessions: Sequence[Session], session_id: SessionId, sequence: int) -> SessionId:
    """Returns the session whose own messages go on at `sequence` in what `session_id` shows: the session itself, or the
    one that it was forked from, directly or not, where that message was copied or stands beside the fork.
    """
    known = {session.id: session for session in sessions}
    session = known[session_id]
    while sequence <= session.fork_sequence and (parent := _find_parent(known, session)) is not None:
        session = parent
    return session.id


def list_forks(sessions: Sequence[Session], current: SessionId) -> list[SessionFork]:
    """Returns the forks in what the session shows, by the sequence of the message that is another one elsewhere."""
    known = {session.id: session for session in sessions}
    oldest_first = sorted(sessions, key=lambda session: session.created_at)
    forks: list[SessionFork] = []
    shown, shown_until = known[current], None
    child: SessionId | None = None
    while True:
        points = {each.fork_sequence for each in sessions if each.parent_id == shown.id}
        for point in sorted(points):
            if shown_until is not None and point > shown_until:
                continue
            branches = [
                shown.id,
                *(each.id for each in oldest_first if each.parent_id == shown.id and each.fork_sequence == point),
            ]
            here = branches.index(child) if child is not None and point == shown_until else 0
            forks.append(SessionFork(point, tuple(branches), here))
        parent = _find_parent(known, shown)
        if parent is None:
            return sorted(forks, key=lambda fork: fork.sequence)
        child, shown_until, shown = shown.id, shown.fork_sequence, parent


def _find_parent(known: Mapping[SessionId, Session], session: Session) -> Session | None:
    return known.get(session.parent_id) if session.parent_id is not None else None
