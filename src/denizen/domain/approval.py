"""A human's decision on one pending call (promise 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, ConversationId, TurnId
from denizen.domain.json import Json
from denizen.domain.tool import Tier


class ApprovalStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"

    @property
    def is_final(self) -> bool:
        return self is not ApprovalStatus.PENDING


class Deciders(StrEnum):
    """Who may decide: the one who asked, those of a role, or so many of those of a role."""

    REQUESTER = "requester"
    ROLE = "role"
    QUORUM = "quorum"


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """How approvals are had. `timeout_s` 0 waits for ever; without a decision in time the answer is no, or yes where
    `grant_on_timeout` says so. `role` and `quorum` count for their kinds of deciders.
    """

    deciders: Deciders = Deciders.REQUESTER
    role: str = "owner"
    quorum: int = 2
    people: frozenset[str] = frozenset()
    """Keys of principals who may decide whatever else is said."""
    timeout_s: float = 300.0
    grant_on_timeout: bool = False


@dataclass(frozen=True, slots=True)
class Approval:
    """One call that waits for people, or waited. `id` derives from the call, so that asking twice is asking once.

    `preview` tells people in their words what would happen; `requester` is the key of the principal; `voices` are the
    keys of those who said yes so far.
    """

    id: str
    turn_id: TurnId
    agent: AgentName
    requester: str
    place: Place
    conversation_id: ConversationId
    tool: str
    args: Mapping[str, Json]
    tier: Tier
    reason: str
    preview: str
    rule: ApprovalRule
    created_at: datetime
    expires_at: datetime | None
    status: ApprovalStatus = ApprovalStatus.PENDING
    voices: tuple[str, ...] = ()
    decided_by: str = ""
    decided_at: datetime | None = None
    note: str = ""
    meta: Mapping[str, Json] = field(default_factory=dict[str, Json])
