"""The contract that every store keeps, as one class of tests. A test module subclasses it and gives it a store:

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self) -> AsyncIterator[Store]: ...

The other modules of this package have one group of promises of `denizen.ports` each.
"""

from __future__ import annotations

from tests.contracts.store.archive import PostContract, PostSearchContract, RoomContract
from tests.contracts.store.chats import ChatContract
from tests.contracts.store.conversations import ConversationContract, SummaryContract, TranscriptContract
from tests.contracts.store.delegations import DelegationContract
from tests.contracts.store.delivery import InboxContract, OutboxContract, ReminderContract
from tests.contracts.store.event_sources import EventSourceContract
from tests.contracts.store.events import EventContract
from tests.contracts.store.feeds import FeedContract
from tests.contracts.store.forgetting import ForgettingContract
from tests.contracts.store.issue_mirrors import IssueMirrorContract
from tests.contracts.store.knowledge import AnswerContract, DocumentContract, ProposalContract, SourceContract
from tests.contracts.store.memories import MemoriesContract, PostEmbeddingContract
from tests.contracts.store.projects import ProjectContract
from tests.contracts.store.questions import QuestionContract
from tests.contracts.store.schedules import ScheduleContract
from tests.contracts.store.settings import AssistantContract, SettingsContract, TextContract
from tests.contracts.store.turns import ApprovalContract, TraceContract, TurnContract
from tests.contracts.store.units import UnitContract
from tests.contracts.store.usage import AuditContract, RateContract, SpendingContract, StatisticsContract
from tests.contracts.store.users import PersonalDataContract, UserContract
from tests.contracts.store.workflows import WorkflowContract

__all__ = ["StoreContract"]


class StoreContract(
    ConversationContract,
    ChatContract,
    TextContract,
    TurnContract,
    SummaryContract,
    TraceContract,
    TranscriptContract,
    SettingsContract,
    AssistantContract,
    RoomContract,
    PostContract,
    PostSearchContract,
    PostEmbeddingContract,
    ForgettingContract,
    InboxContract,
    OutboxContract,
    SpendingContract,
    RateContract,
    ApprovalContract,
    AuditContract,
    MemoriesContract,
    DocumentContract,
    AnswerContract,
    ProposalContract,
    ReminderContract,
    FeedContract,
    EventSourceContract,
    WorkflowContract,
    ProjectContract,
    IssueMirrorContract,
    EventContract,
    DelegationContract,
    ScheduleContract,
    QuestionContract,
    SourceContract,
    StatisticsContract,
    UserContract,
    PersonalDataContract,
    UnitContract,
):
    """The whole contract."""
