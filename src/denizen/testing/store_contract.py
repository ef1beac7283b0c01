"""What every store promises, as tests: `StoreContract` for a module that gives a fixture `store`.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self) -> AsyncIterator[Store]: ...

The tests are in the modules `store_contract_*`, one for each group of promises of `denizen.ports.store`,
`archive` and `inbox`.
"""

from __future__ import annotations

from denizen.testing.store_contract_answers import AnswerContract
from denizen.testing.store_contract_approvals import ApprovalContract
from denizen.testing.store_contract_assistant import AssistantContract
from denizen.testing.store_contract_audit import AuditContract
from denizen.testing.store_contract_documents import DocumentContract
from denizen.testing.store_contract_forgetting import ForgettingContract
from denizen.testing.store_contract_memories import MemoriesContract
from denizen.testing.store_contract_outbox import OutboxContract
from denizen.testing.store_contract_post_meanings import PostMeaningContract
from denizen.testing.store_contract_post_search import PostSearchContract
from denizen.testing.store_contract_posts import PostContract
from denizen.testing.store_contract_proposals import ProposalContract
from denizen.testing.store_contract_reception import ReceptionContract
from denizen.testing.store_contract_reminders import ReminderContract
from denizen.testing.store_contract_rooms import RoomContract
from denizen.testing.store_contract_settings import SettingsContract
from denizen.testing.store_contract_sources import SourceContract
from denizen.testing.store_contract_spending import SpendingContract
from denizen.testing.store_contract_statistics import StatisticsContract
from denizen.testing.store_contract_summaries import SummaryContract
from denizen.testing.store_contract_talk import TalkContract
from denizen.testing.store_contract_texts import TextContract
from denizen.testing.store_contract_traces import TraceContract
from denizen.testing.store_contract_transcripts import TranscriptContract
from denizen.testing.store_contract_turns import TurnContract
from denizen.testing.store_contract_units import UnitContract

__all__ = ["StoreContract"]


class StoreContract(
    TalkContract,
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
    PostMeaningContract,
    ForgettingContract,
    ReceptionContract,
    OutboxContract,
    SpendingContract,
    ApprovalContract,
    AuditContract,
    MemoriesContract,
    DocumentContract,
    AnswerContract,
    ProposalContract,
    ReminderContract,
    SourceContract,
    StatisticsContract,
    UnitContract,
):
    """All of it."""
