"""The audit log in use: reading it in pages, and verifying its chain. What belongs into it is in `domain/audit`.

The gate writes calls and switches (`gate/executor.py`, `loop/steps.py`), approvals write decisions, the outbox writes
what was posted, `agent_settings` who changed settings; each in the unit of work that records the thing itself, so that
neither is there without the other.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from datetime import datetime

from denizen.domain.agent_settings import SettingsSet
from denizen.domain.approval import Approval
from denizen.domain.audit import (
    GENESIS,
    AuditEntry,
    AuditEvent,
    AuditHead,
    AuditKind,
    chain_head,
    digest_text,
    find_chain_fault,
)
from denizen.domain.clock import Clock
from denizen.domain.delivery import Delivery
from denizen.domain.json import Json
from denizen.domain.principal import Principal
from denizen.domain.proposal import Proposal
from denizen.domain.record import record
from denizen.domain.tool import ToolCall
from denizen.domain.turn import CallRecord, Turn
from denizen.domain.verdict import CallOutcome, Verdict
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope

PAGE = 1000


@record
class Verification:
    """The result of verifying the log: where the log ends, and what is wrong with it, in one sentence, or nothing."""

    head: AuditHead
    fault: str = ""


async def read_log(store: Store, *, after: int = 0) -> AsyncGenerator[AuditEntry]:
    """Every entry with a higher number, oldest first."""
    while True:
        async with store.work(write=False) as work:
            page = await work.audit.list_entries(after=after, limit=PAGE)
        for entry in page:
            yield entry
        if len(page) < PAGE:
            return
        after = page[-1].number


async def verify_log(store: Store, *, noted: str = "") -> Verification:
    """Follows the chain from its beginning. `noted` is a digest that was the newest once: it has to be in the log."""
    last, is_noted = AuditHead(), not noted or noted == GENESIS
    async for entry in read_log(store):
        fault = find_chain_fault([entry], last)
        if fault:
            return Verification(last, fault)
        last = chain_head(entry)
        is_noted = is_noted or entry.digest == noted
    async with store.work(write=False) as work:
        head = await work.audit.head()
        newer = await work.audit.list_entries(after=last.number, limit=1)  # may be added while the log is read
    if head.number < last.number or (head.number == last.number and head != last):
        return Verification(last, "The log and the note of where it ends contradict each other.")
    if head.number > last.number and not newer:
        return Verification(last, f"The end is missing: entries {last.number + 1} to {head.number}.")
    if not is_noted:
        return Verification(last, "The digest that was noted is not in the log: its end was cut off or rewritten.")
    return Verification(last)


# --- what is written ------------------------------------------------------------------------------------------------


class AuditLog:
    """Writes what belongs to no other record, at once."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def begin(self, call: ToolCall, scope: CallScope, verdict: Verdict) -> None:
        """A call that could do harm is about to run: whatever becomes of it and of this process, it was begun."""
        await self._add(_called(call, scope, verdict, self._clock.now(), {"state": "begun"}))

    async def end(self, call: ToolCall, scope: CallScope, outcome: CallOutcome) -> None:
        """A call that no turn records."""
        state = "failed" if outcome.result.is_error else "done"
        more: dict[str, Json] = {"state": state, "result": digest_text(outcome.result.text)}
        await self._add(_called(call, scope, outcome.verdict, self._clock.now(), more))

    async def switch(self, by: Principal, what: str, to: str) -> None:
        """Somebody changed how Denizen guards itself."""
        await self._add(AuditEvent(AuditKind.SWITCH, self._clock.now(), by.key, what, {"to": to}))

    async def _add(self, event: AuditEvent) -> None:
        async with self._store.work() as work:
            await work.audit.add([event])


def settings_event(by: Principal, row: SettingsSet, done: str, fields: Iterable[str], now: datetime) -> AuditEvent:
    """Which fields of a set, and not what they say."""
    named: list[Json] = [*fields]
    return AuditEvent(
        AuditKind.SETTINGS,
        now,
        by.key,
        f"{row.agent}/{row.name}",
        {"done": done, "fields": named, "is_active": row.is_active},
    )


def call_event(record: CallRecord, turn: Turn) -> AuditEvent:
    """A call of a turn, as its record has it."""
    call, outcome = record.tool_call, record.outcome
    details: dict[str, Json] = {
        "turn": turn.id,
        "step": record.step,
        "position": record.position,
        "agent": turn.agent,
        "origin": call.origin.value,
        "tier": int(outcome.verdict.tier),
        "decision": outcome.verdict.decision.value,
        "decided_by": outcome.verdict.decided_by,
        "state": outcome.state,
        "args": _digest_args(call.args),
        "result": digest_text(outcome.result.text),
        **({"parent": turn.parent.id} if turn.parent else {}),
    }
    return AuditEvent(AuditKind.CALL, record.created_at, turn.principal.key, call.tool, details)


def approval_event(approval: Approval, now: datetime) -> AuditEvent:
    """A word of somebody about a call, or the end of waiting for one."""
    details: dict[str, Json] = {
        "turn": approval.request.turn_id,
        "tool": approval.request.tool,
        "tier": int(approval.request.tier),
        "status": approval.status.value,
        "voices": list(approval.voices),
        "requester": approval.request.requester,
        "args": _digest_args(approval.request.args),
    }
    return AuditEvent(AuditKind.APPROVAL, now, approval.decision.by or "nobody", approval.id, details)


def review_event(proposal: Proposal, content: str, by: Principal, now: datetime) -> AuditEvent:
    """Returns the event of a decision about a proposed answer; `content` is the file that it became."""
    details: dict[str, Json] = {
        "status": proposal.status.value,
        "author": proposal.answer.author,
        "proposer": proposal.proposer,
        "post": proposal.answer.post,
        "file": digest_text(proposal.decision.file),
        "content": digest_text(content),
    }
    return AuditEvent(AuditKind.REVIEW, now, by.key, proposal.id, details)


def delivery_event(delivery: Delivery, now: datetime) -> AuditEvent:
    """Something that was posted."""
    place = delivery.target.place
    details: dict[str, Json] = {
        "turn": delivery.turn_id,
        "kind": delivery.kind.value,
        "message": delivery.platform_id,
        "text": digest_text(delivery.content.text),
    }
    where = ":".join(filter(None, (place.platform, place.channel, place.thread)))
    return AuditEvent(AuditKind.SEND, now, f"agent:{delivery.agent}", where, details)


def _called(call: ToolCall, scope: CallScope, verdict: Verdict, now: datetime, more: Mapping[str, Json]) -> AuditEvent:
    details: dict[str, Json] = {
        "turn": scope.turn_id,
        "call": call.id,
        "agent": scope.agent,
        "origin": call.origin.value,
        "chain": list(scope.chain),
        "tier": int(verdict.tier),
        "decision": verdict.decision.value,
        "decided_by": verdict.decided_by,
        "args": _digest_args(call.args),
        **({"parent": scope.delegator.turn_id} if scope.delegator else {}),
        **more,
    }
    return AuditEvent(AuditKind.CALL, now, scope.principal.key, call.tool, details)


def _digest_args(args: Mapping[str, Json]) -> str:
    return digest_text(json.dumps(args, sort_keys=True))
