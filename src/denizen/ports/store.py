"""The store: domain records in and out, in short units of work.

Implemented by `adapters/store` (SQLite, Postgres) and `denizen.testing.memory_store`; all three pass the contract suite
in `denizen.testing.store_contract`. A unit of work commits when its block ends without an error, is shielded against
cancellation, and must not wait for a model, a tool or a platform.

Every `add_` and `put_` with a derived id may be repeated with the same record: a resumed turn writes again what it
wrote before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from denizen.domain.conversation import Conversation, Place, Session
from denizen.domain.ids import AgentName, ConversationId, MessageId, SessionId, TurnId
from denizen.domain.json import Json
from denizen.domain.message import Message
from denizen.domain.principal import Principal
from denizen.domain.trace import PromptUse
from denizen.domain.turn import CallRecord, Step, Turn, TurnStatus
from denizen.domain.usage import Usage
from denizen.ports.answers import Citations, Gaps, Proposals
from denizen.ports.approvals import Approvals
from denizen.ports.archive import Archive, PostMeanings
from denizen.ports.assistant import AgentSettings
from denizen.ports.audit import Audit
from denizen.ports.documents import Documents
from denizen.ports.memory import Memories, Vectors
from denizen.ports.reception import Outbox, Reception
from denizen.ports.reminders import Reminders
from denizen.ports.source import Sources
from denizen.ports.spending import Spending
from denizen.ports.statistics import Statistics
from denizen.ports.summaries import Summaries
from denizen.ports.transcripts import TranscriptBlocks


class Conversations(Protocol):
    async def put(self, place: Place, *, title: str = "", now: datetime) -> Conversation:
        """The conversation of that place, created when missing."""
        ...

    async def get(self, conversation_id: ConversationId) -> Conversation:
        """Raises NotFound."""
        ...

    async def list_recent(self, *, platform: str = "", limit: int = 50) -> Sequence[Conversation]:
        """By their latest message, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class RecentSession:
    """An open session, where it is, how many messages are in it, and when the last one came."""

    session: Session
    place: Place
    messages: int
    last_at: datetime


class Sessions(Protocol):
    async def current(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        """The open session, created when there is none. At most one is open for an agent and conversation."""
        ...

    async def renew(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        """Closes the open session, whose messages stay, and opens a new one."""
        ...

    async def get(self, session_id: SessionId) -> Session:
        """Raises NotFound."""
        ...

    async def list_sessions(self, conversation_id: ConversationId, agent: AgentName) -> Sequence[Session]:
        """Newest first."""
        ...

    async def list_recent(self, *, platform: str = "", agent: str = "", limit: int = 50) -> Sequence[RecentSession]:
        """Open ones with messages, by their last message, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result: the message and the part of its text around the match."""

    message: Message
    excerpt: str


class Messages(Protocol):
    async def add(self, message: Message) -> Message:
        """Adds it at the end of its session and returns it with its `sequence`. An id that exists is left as it is."""
        ...

    async def get(self, message_id: MessageId) -> Message:
        """Raises NotFound."""
        ...

    async def list_tail(self, session_id: SessionId, *, limit: int, before: int | None = None) -> Sequence[Message]:
        """The newest `limit` messages of a session, oldest first; `before` is a sequence to page backwards. The cost
        does not depend on the length of the session.
        """
        ...

    async def forget_turn(self, turn_id: TurnId) -> None:
        """Takes the messages of a turn out of its session: the question was asked anew."""
        ...

    async def keep_newest(self, session_id: SessionId, *, limit: int) -> None:
        """Takes all but the newest `limit` messages (at least one) out of their session, and their words and parts out
        of the store. Which turn they belonged to stays known.
        """
        ...

    async def search(self, words: str, *, conversation_ids: Sequence[ConversationId], limit: int = 10) -> Sequence[Hit]:
        """User and assistant messages of these conversations that contain all the words (any case), newest first."""
        ...


class Turns(Protocol):
    async def open(self, turn: Turn) -> tuple[Turn, bool]:
        """Adds the turn; when its id exists, returns the stored one and False."""
        ...

    async def close(self, turn: Turn) -> None:
        """Writes its final state. A turn that is final already keeps its first final state."""
        ...

    async def find(self, turn_id: TurnId) -> Turn | None: ...

    async def get(self, turn_id: TurnId) -> Turn:
        """Raises NotFound."""
        ...

    async def list_turns(
        self, *, status: TurnStatus | None = None, conversation_id: ConversationId | None = None, limit: int = 100
    ) -> Sequence[Turn]:
        """Newest first; with status OPEN oldest first, so that a restart takes them up in order."""
        ...

    async def add_step(self, step: Step) -> bool:
        """With its usage. Repeating it (same turn and number) changes nothing, and gives False."""
        ...

    async def list_steps(self, turn_id: TurnId) -> Sequence[Step]: ...

    async def add_call(self, record: CallRecord) -> bool:
        """With its verdict. Repeating it (same turn, step and position) changes nothing, and gives False."""
        ...

    async def list_calls(self, turn_id: TurnId) -> Sequence[CallRecord]:
        """By step and position."""
        ...

    async def list_calls_in(
        self, agent: AgentName, platform: str, rooms: Collection[str], *, asker: Principal | None = None, limit: int
    ) -> Sequence[CallRecord]:
        """Those of the agent's turns in these rooms (the thread's id, or the channel's where there is none), and of all
        turns on the platform that `asker` asked for; newest first.
        """
        ...

    async def add_prompt(self, prompt: PromptUse) -> None:
        """What a step's prompt was made of. A segment's text, where it is given, is kept once for all prompts that have
        it. Repeating it (same turn and step) changes nothing.
        """
        ...

    async def list_prompts(self, turn_id: TurnId) -> Sequence[PromptUse]:
        """By step, with the texts that are kept."""
        ...


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Use of one model by one agent on one UTC day."""

    day: str
    agent: str
    model: str
    usage: Usage


class Ledger(Protocol):
    async def list_usage(self, *, since: datetime, agent: str = "", principal: str = "") -> Sequence[UsageRow]:
        """Sums per day, agent and model of the recorded steps and of the requests beside them (`Statistics` has them),
        newest day first.
        """
        ...


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """One accepted state of the configuration. `digest` is the sha256 of its text; secrets are not in the text."""

    number: int
    digest: str
    source: str
    accepted_at: datetime


class Generations(Protocol):
    async def add(self, *, digest: str, source: str, now: datetime) -> GenerationRow:
        """Numbered one higher than the last; the same digest as the last returns the last."""
        ...

    async def list_generations(self, *, limit: int = 20) -> Sequence[GenerationRow]:
        """Newest first."""
        ...


class UserSettings(Protocol):
    """What a user chose for themselves (inventory V15): never seen by another user's turns."""

    async def get(self, principal: str) -> Mapping[str, Json]:
        """Empty when nothing was set."""
        ...

    async def put(self, principal: str, key: str, value: Json, *, now: datetime) -> None:
        """None removes the key."""
        ...


class Work(Protocol):
    """One unit of work: all of it is written, or nothing."""

    @property
    def conversations(self) -> Conversations: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def messages(self) -> Messages: ...
    @property
    def turns(self) -> Turns: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def generations(self) -> Generations: ...
    @property
    def user_settings(self) -> UserSettings: ...
    @property
    def agent_settings(self) -> AgentSettings: ...
    @property
    def archive(self) -> Archive: ...
    @property
    def reception(self) -> Reception: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def summaries(self) -> Summaries: ...
    @property
    def transcripts(self) -> TranscriptBlocks: ...
    @property
    def spending(self) -> Spending: ...
    @property
    def approvals(self) -> Approvals: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def memories(self) -> Memories: ...
    @property
    def sources(self) -> Sources: ...
    @property
    def citations(self) -> Citations: ...
    @property
    def gaps(self) -> Gaps: ...
    @property
    def proposals(self) -> Proposals: ...
    @property
    def documents(self) -> Documents: ...
    @property
    def vectors(self) -> Vectors: ...
    @property
    def post_meanings(self) -> PostMeanings: ...
    @property
    def reminders(self) -> Reminders: ...
    @property
    def statistics(self) -> Statistics: ...


class Store(Protocol):
    """Raises Unavailable when the database is locked or unreachable, NeedsAttention when the disk is full or the
    schema is newer than the program.
    """

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[Work]: ...

    async def aclose(self) -> None: ...
