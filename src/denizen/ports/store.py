"""The store: domain records in and out, in short units of work.

Implemented by `adapters/store` on SQLite and on Postgres; both pass the same contract suite. A unit of work commits
when its block ends without an error, is shielded against cancellation, and must not wait for a model, a tool or a
platform.

Every `add_` and `put_` with a derived id may be repeated with the same record: a resumed turn writes again what it
wrote before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from denizen.domain.agent_settings import SettingsSet
from denizen.domain.audit import AuditEntry, AuditEvent, AuditHead, AuditKind
from denizen.domain.conversation import Conversation, Place, Session
from denizen.domain.delegation import Delegation
from denizen.domain.ids import AgentName, ConversationId, MessageId, SessionId, TurnId
from denizen.domain.json import Json
from denizen.domain.message import Message
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.reminder import Reminder
from denizen.domain.summary import Summary
from denizen.domain.trace import PromptUse
from denizen.domain.turn import CallRecord, Step, Turn, TurnStatus
from denizen.domain.usage import Usage
from denizen.ports.answers import CitationRepository, GapRepository, ProposalRepository
from denizen.ports.approvals import ApprovalRepository
from denizen.ports.archive import ArchiveRepository, PostEmbeddingRepository, TranscriptRepository
from denizen.ports.chats import ChatRepository
from denizen.ports.documents import DocumentRepository
from denizen.ports.event_sources import EventSourceRepository
from denizen.ports.events import EventRepository
from denizen.ports.feeds import FeedRepository
from denizen.ports.inbox import InboxRepository, OutboxRepository
from denizen.ports.issues import IssueMirrorRepository
from denizen.ports.memory import MemoryRepository, VectorRepository
from denizen.ports.projects import ProjectRepository, TaskChangeRepository
from denizen.ports.questions import QuestionRepository
from denizen.ports.schedules import ScheduleRepository
from denizen.ports.source import SourceRepository
from denizen.ports.usage import RateRepository, SpendingRepository, StatisticsRepository
from denizen.ports.users import (
    AdminNameRepository,
    IdentityRepository,
    InvitationRepository,
    PersonalDataRepository,
    SignInRepository,
    UserKeyRepository,
    UserRepository,
)
from denizen.ports.workflows import WorkflowRepository


class ConversationRepository(Protocol):
    """The conversations: where talk happens."""

    async def put(self, place: Place, *, title: str = "", now: datetime) -> Conversation:
        """Returns the conversation of that place, and creates it when it is missing."""
        ...

    async def get(self, conversation_id: ConversationId) -> Conversation:
        """Returns the conversation. Raises NotFound."""
        ...

    async def list_recent(self, *, platform: str = "", limit: int = 50) -> Sequence[Conversation]:
        """Returns the conversations with the latest messages, newest first."""
        ...


@record
class RecentSession:
    """An open session with its place, the number of its messages, and the time of the last one."""

    session: Session
    place: Place
    messages: int
    last_at: datetime


@record
class Fork:
    """The place where a session leaves another one: before the message `sequence` of `parent_id`."""

    parent_id: SessionId
    sequence: int


class SessionRepository(Protocol):
    """The sessions: each agent's own history in a conversation."""

    async def current(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        """Returns the open session, and creates it when there is none. An agent has at most one in a conversation."""
        ...

    async def renew(
        self, conversation_id: ConversationId, agent: AgentName, *, now: datetime, fork: Fork | None = None
    ) -> Session:
        """Closes the open session, whose messages stay, and opens a new one, which may be a fork of another. It has no
        messages: `MessageRepository.copy` gives a fork those of its parent.
        """
        ...

    async def reopen(self, session_id: SessionId, *, now: datetime) -> Session:
        """Makes the session the open one of its agent, and closes the one that was open. Raises NotFound."""
        ...

    async def list_all(self, conversation_id: ConversationId) -> Sequence[Session]:
        """Returns the sessions of all agents in a conversation, oldest first."""
        ...

    async def get(self, session_id: SessionId) -> Session:
        """Returns the session. Raises NotFound."""
        ...

    async def list_sessions(self, conversation_id: ConversationId, agent: AgentName) -> Sequence[Session]:
        """Returns the agent's sessions of a conversation, newest first."""
        ...

    async def list_recent(
        self, *, platform: str = "", channel: str = "", agent: str = "", except_prefix: str = "", limit: int = 50
    ) -> Sequence[RecentSession]:
        """Returns open sessions that have messages, by their last message, newest first; those of a platform, a channel
        or an agent where one is given, and without those whose thread begins with `except_prefix`. Those of tasks that
        agents gave to others, which nobody goes on with, only where their platform is named.
        """
        ...


@record
class MessageHit:
    """One search result: the message, and the part of its text around the match."""

    message: Message
    excerpt: str


class MessageRepository(Protocol):
    """The messages of sessions."""

    async def add(self, message: Message) -> Message:
        """Adds the message to the end of its session and returns it with its `sequence`. A known id
        is left as it is.
        """
        ...

    async def get(self, message_id: MessageId) -> Message:
        """Returns the message. Raises NotFound."""
        ...

    async def list_tail(self, session_id: SessionId, *, limit: int, before: int | None = None) -> Sequence[Message]:
        """Returns the newest `limit` messages of a session, oldest first. `before` is a sequence, for paging back.

        The cost does not depend on the length of the session.
        """
        ...

    async def copy(self, source: SessionId, target: Session, *, before: int) -> int:
        """Gives a fork the messages of another session with a lower sequence than `before`, and the summaries of them.
        The copies have ids of their own, which are derived, and keep sequence and turn; a search does not find them.
        Returns how many there are.
        """
        ...

    async def forget_turn(self, turn_id: TurnId) -> None:
        """Takes the messages of a turn out of its session, since the question was asked anew."""
        ...

    async def keep_newest(self, session_id: SessionId, *, limit: int) -> None:
        """Keeps the newest `limit` messages (at least one) of a session and empties the others.

        The others leave the session and lose their words and parts; the turn they belonged to stays known.
        """
        ...

    async def search(
        self, words: str, *, conversation_ids: Sequence[ConversationId], limit: int = 10
    ) -> Sequence[MessageHit]:
        """Returns user and assistant messages of these conversations that contain all the words (ignoring case), newest
        first.
        """
        ...


@record(kw_only=True)
class TurnSearch:
    """A search of turns; what is empty or None is any. The newest `skip` of those found are passed over."""

    agent: str = ""
    status: TurnStatus | None = None
    platform: str = ""
    since: datetime | None = None
    skip: int = 0
    limit: int = 50


@record
class TurnListing:
    """A turn and the platform on which it was asked."""

    turn: Turn
    platform: str


class TurnRepository(Protocol):
    """The turns, with their steps, tool calls and prompts."""

    async def open(self, turn: Turn) -> tuple[Turn, bool]:
        """Adds the turn. When its id exists, returns the stored turn and False."""
        ...

    async def close(self, turn: Turn) -> None:
        """Writes the final state. A turn that is final already keeps its first final state."""
        ...

    async def ask_stop(self, turn_id: TurnId) -> None:
        """Notes with an open turn that it is to stop, for the process that runs it. Others stay as they are."""
        ...

    async def find(self, turn_id: TurnId) -> Turn | None: ...

    async def get(self, turn_id: TurnId) -> Turn:
        """Returns the turn. Raises NotFound."""
        ...

    async def find_many(self, turn_ids: Collection[TurnId]) -> Sequence[Turn]:
        """Returns those of these turns that there are, in any order."""
        ...

    async def list_turns(
        self, *, status: TurnStatus | None = None, conversation_id: ConversationId | None = None, limit: int = 100
    ) -> Sequence[Turn]:
        """Returns turns, newest first; with status OPEN oldest first, so that a restart resumes them in order."""
        ...

    async def search(self, wanted: TurnSearch) -> Sequence[TurnListing]:
        """Returns the turns that were searched for, newest first."""
        ...

    async def add_step(self, step: Step) -> bool:
        """Adds a step with its usage. Repeating it (same turn and number) changes nothing and returns False."""
        ...

    async def list_steps(self, turn_id: TurnId) -> Sequence[Step]: ...

    async def add_call(self, record: CallRecord) -> bool:
        """Adds a tool call with its verdict. Repeating it (same turn, step and position) changes nothing and returns
        False.
        """
        ...

    async def list_calls(self, turn_id: TurnId) -> Sequence[CallRecord]:
        """Returns the tool calls of a turn, by step and position."""
        ...

    async def list_calls_in(
        self, agent: AgentName, platform: str, rooms: Collection[str], *, asker: Principal | None = None, limit: int
    ) -> Sequence[CallRecord]:
        """Returns the calls of the agent's turns in these rooms, and of all turns that `asker` asked for, newest first.

        A room is the thread's id, or the channel's where there is no thread.
        """
        ...

    async def list_recent_calls(
        self, *, since: datetime, judges: Collection[str] = (), limit: int
    ) -> Sequence[CallRecord]:
        """Returns the calls of turns that were opened since then, newest first; with `judges` those about which one of
        them decided.
        """
        ...

    async def add_prompt(self, prompt: PromptUse) -> None:
        """Adds the composition of a step's prompt. Repeating it (same turn and step) changes nothing.

        The text of a segment, where it is given, is stored once for all prompts that contain it.
        """
        ...

    async def list_prompts(self, turn_id: TurnId) -> Sequence[PromptUse]:
        """Returns the prompts of a turn by step, with the stored texts."""
        ...


@record
class UsageRow:
    """The usage of one model by one agent on one UTC day."""

    day: str
    agent: str
    model: str
    usage: Usage


class UsageLedger(Protocol):
    """The usage of all model requests."""

    async def list_usage(self, *, since: datetime, agent: str = "", principal: str = "") -> Sequence[UsageRow]:
        """Returns sums per day, agent and model, newest day first: of steps, and of requests outside of them."""
        ...


@record
class ConfigGeneration:
    """One accepted state of the configuration. `digest` is the sha256 of its text, which holds no secrets."""

    number: int
    digest: str
    source: str
    accepted_at: datetime


class ConfigGenerationRepository(Protocol):
    """The accepted states of the configuration, numbered."""

    async def add(self, *, digest: str, source: str, now: datetime) -> ConfigGeneration:
        """Adds a state with the next number. The same digest as the last returns the last."""
        ...

    async def list_generations(self, *, limit: int = 20) -> Sequence[ConfigGeneration]:
        """Returns the states, newest first."""
        ...

    async def rewrite_newest(self) -> None:
        """Writes the newest state as it is, to see whether the store can be written."""
        ...


class UserSettingsRepository(Protocol):
    """The settings that users chose for themselves. Turns of other users never see them."""

    async def get(self, principal: str) -> Mapping[str, Json]:
        """Returns the user's settings; empty when nothing was set."""
        ...

    async def list_values(self, key: str) -> Mapping[str, Json]:
        """Returns the values of one key by principal."""
        ...

    async def put(self, principal: str, key: str, value: Json, *, now: datetime) -> None:
        """Sets one value. None removes the key."""
        ...


class UnitOfWork(Protocol):
    """One unit of work: all of it is written, or nothing."""

    @property
    def conversations(self) -> ConversationRepository: ...
    @property
    def sessions(self) -> SessionRepository: ...
    @property
    def chats(self) -> ChatRepository: ...
    @property
    def messages(self) -> MessageRepository: ...
    @property
    def turns(self) -> TurnRepository: ...
    @property
    def ledger(self) -> UsageLedger: ...
    @property
    def generations(self) -> ConfigGenerationRepository: ...
    @property
    def user_settings(self) -> UserSettingsRepository: ...
    @property
    def agent_settings(self) -> AgentSettingsRepository: ...
    @property
    def archive(self) -> ArchiveRepository: ...
    @property
    def inbox(self) -> InboxRepository: ...
    @property
    def outbox(self) -> OutboxRepository: ...
    @property
    def summaries(self) -> SummaryRepository: ...
    @property
    def transcripts(self) -> TranscriptRepository: ...
    @property
    def spending(self) -> SpendingRepository: ...
    @property
    def rates(self) -> RateRepository: ...
    @property
    def approvals(self) -> ApprovalRepository: ...
    @property
    def audit(self) -> AuditRepository: ...
    @property
    def memories(self) -> MemoryRepository: ...
    @property
    def sources(self) -> SourceRepository: ...
    @property
    def citations(self) -> CitationRepository: ...
    @property
    def gaps(self) -> GapRepository: ...
    @property
    def proposals(self) -> ProposalRepository: ...
    @property
    def documents(self) -> DocumentRepository: ...
    @property
    def vectors(self) -> VectorRepository: ...
    @property
    def post_embeddings(self) -> PostEmbeddingRepository: ...
    @property
    def events(self) -> EventRepository: ...
    @property
    def event_sources(self) -> EventSourceRepository: ...
    @property
    def reminders(self) -> ReminderRepository: ...
    @property
    def feeds(self) -> FeedRepository: ...
    @property
    def workflows(self) -> WorkflowRepository: ...
    @property
    def projects(self) -> ProjectRepository: ...
    @property
    def task_changes(self) -> TaskChangeRepository: ...
    @property
    def issue_mirrors(self) -> IssueMirrorRepository: ...
    @property
    def schedules(self) -> ScheduleRepository: ...
    @property
    def questions(self) -> QuestionRepository: ...
    @property
    def delegations(self) -> DelegationRepository: ...
    @property
    def statistics(self) -> StatisticsRepository: ...
    @property
    def users(self) -> UserRepository: ...
    @property
    def sign_ins(self) -> SignInRepository: ...
    @property
    def identities(self) -> IdentityRepository: ...
    @property
    def admin_names(self) -> AdminNameRepository: ...
    @property
    def user_keys(self) -> UserKeyRepository: ...
    @property
    def invitations(self) -> InvitationRepository: ...
    @property
    def personal_data(self) -> PersonalDataRepository: ...


class Store(Protocol):
    """Opens units of work.

    Raises Unavailable when the database is locked or unreachable, NeedsAttention when the disk is full or the schema is
    newer than the program.
    """

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]: ...

    async def aclose(self) -> None: ...


class AgentSettingsRepository(Protocol):
    """Named sets of settings for each agent, of which at most one is active."""

    async def put(self, row: SettingsSet) -> None:
        """Adds the set or replaces the one of its agent and name, which keeps its creation time.

        An active set makes the agent's other sets inactive.
        """
        ...

    async def list_sets(self, agent: AgentName) -> Sequence[SettingsSet]:
        """Returns the agent's sets by name."""
        ...

    async def find_active(self, agent: AgentName) -> SettingsSet | None: ...

    async def remove(self, agent: AgentName, name: str) -> bool:
        """Removes the set. False when there is none."""
        ...


@record(kw_only=True)
class AuditSearch:
    """A search of the audit log: entries of one kind, or of all, whose actor or subject contains the words, in whatever
    case; only those with a lower number than `before`, unless that is 0.
    """

    kind: AuditKind | None = None
    words: str = ""
    before: int = 0
    limit: int = 50


class AuditRepository(Protocol):
    """The audit log (`domain.audit`), append only.

    Adding keeps others from adding until the unit of work ends, so it is done last.
    """

    async def add(self, events: Sequence[AuditEvent]) -> AuditHead:
        """Chains the events behind the newest entry, in their order, and returns the new head."""
        ...

    async def head(self) -> AuditHead: ...

    async def list_entries(self, *, after: int = 0, limit: int = 1000) -> Sequence[AuditEntry]:
        """Returns entries with a higher number than `after`, oldest first."""
        ...

    async def search(self, wanted: AuditSearch) -> Sequence[AuditEntry]:
        """Returns the entries that were searched for, newest first."""
        ...


class ReminderRepository(Protocol):
    """The pending reminders."""

    async def add(self, reminder: Reminder) -> bool:
        """Adds the reminder. False, and nothing changes, when its id exists."""
        ...

    async def list_for(self, asker: str, *, limit: int = 100) -> Sequence[Reminder]:
        """Returns the reminders of a principal key, the next one first."""
        ...

    async def list_due(
        self, account: AgentName, platform: str, *, now: datetime, limit: int = 100
    ) -> Sequence[Reminder]:
        """Returns the account's due reminders on that platform, oldest first."""
        ...

    async def find_next_due(self, *, after: datetime) -> datetime | None:
        """Returns the earliest due time after `after`."""
        ...

    async def remove(self, reminder_id: str, *, asker: str | None = None) -> bool:
        """Removes the reminder. Of several units of work that remove it at once, one gets True.

        False when it is not there, or not that asker's.
        """
        ...

    async def forget_asker(self, asker: str) -> int:
        """Removes the reminders of that principal key. Returns how many there were."""
        ...


class DelegationRepository(Protocol):
    """The tasks that turns handed to other agents."""

    async def add(self, delegation: Delegation) -> None:
        """Adds the delegation. One whose turn is known is left as it is."""
        ...

    async def list_delegated(self, parent_id: TurnId) -> Sequence[Delegation]:
        """Returns the tasks that the turn handed on, oldest first."""
        ...

    async def list_in_conversation(self, conversation_id: ConversationId) -> Sequence[Delegation]:
        """Returns the tasks that turns of the conversation handed on, oldest first."""
        ...

    async def list_background(
        self, *, asker: str | None = None, ended_after: datetime, limit: int
    ) -> Sequence[Delegation]:
        """Returns the background tasks that run, or ended after that time, newest first: those of that principal key,
        or everybody's.
        """
        ...


class SummaryRepository(Protocol):
    """Summaries of stretches of sessions.

    A summary goes when a message in its stretch is forgotten or its turn is asked anew; `ArchiveRepository` and
    `MessageRepository` see to that.
    """

    async def list_summaries(self, session_id: SessionId) -> Sequence[Summary]:
        """Returns the summaries in the order of their messages. Their stretches do not overlap."""
        ...

    async def put(self, summary: Summary, *, known: Sequence[Summary]) -> bool:
        """Adds the summary and removes those whose stretch lies within its own.

        False, and nothing is written, when the session's summaries are not `known` any more. Whatever the unit of work
        reads of the session after this call still holds when it commits.
        """
        ...
