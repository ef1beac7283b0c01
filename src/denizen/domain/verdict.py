"""The gate's recorded decision about one call."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from denizen.domain.approval import ApprovalRule
from denizen.domain.tool import Tier


class Decision(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    ASK = "ask"
    """People decide."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` is safe to tell the model and the asker; `decided_by` names the rule or judge.

    With ASK, `rule` says who decides, and `alert` that the owners are told as well.
    """

    decision: Decision
    tier: Tier
    reason: str
    decided_by: str
    rule: ApprovalRule | None = None
    alert: bool = False
