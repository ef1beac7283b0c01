"""The gate's decision about one call, and the outcome of the call."""

from __future__ import annotations

from enum import StrEnum

from denizen.domain.approval import ApprovalRule
from denizen.domain.record import record
from denizen.domain.tool import Tier, ToolResult


class Decision(StrEnum):
    """The answer of the gate to a tool call."""

    APPROVE = "approve"
    DENY = "deny"
    ASK = "ask"
    """People decide."""


@record
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


@record
class CallOutcome:
    """The outcome of a call. A denied call has an error result that tells the model why. The time in which people were
    waited for is not part of its duration.
    """

    verdict: Verdict
    result: ToolResult
    duration_ms: int

    @property
    def state(self) -> str:
        """`done`, `failed` or `denied`."""
        if self.verdict.decision is Decision.DENY:
            return "denied"
        return "failed" if self.result.is_error else "done"
