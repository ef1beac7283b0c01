"""The audit log in use: reading it in pages, and verifying its chain. What belongs into it is in `domain/audit`.

The gate writes calls and switches (`gate/door.py`, `steps.py`), approvals write decisions, the outbox writes what was
posted; each in the unit of work in which the thing itself is recorded, so that neither is there without the other.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from denizen.domain.audit import GENESIS, AuditEntry, AuditHead, find_fault, head_of
from denizen.ports.store import Store

PAGE = 1000


@dataclass(frozen=True, slots=True)
class Verification:
    """What verifying found: where the log ends, and what is wrong with it, in one sentence, or nothing."""

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
        fault = find_fault([entry], last)
        if fault:
            return Verification(last, fault)
        last = head_of(entry)
        is_noted = is_noted or entry.digest == noted
    async with store.work(write=False) as work:
        head = await work.audit.head()
    if head.number < last.number or (head.number == last.number and head != last):
        return Verification(last, "The log and the note of where it ends contradict each other.")
    if head.number > last.number:
        missing = await _is_cut(store, last)
        if missing:
            return Verification(last, f"The end is missing: entries {last.number + 1} to {head.number}.")
    if not is_noted:
        return Verification(last, "The digest that was noted is not in the log: its end was cut off or rewritten.")
    return Verification(last)


async def _is_cut(store: Store, last: AuditHead) -> bool:
    """Unless entries were added while the log was read."""
    async with store.work(write=False) as work:
        head = await work.audit.head()
        newer = await work.audit.list_entries(after=last.number, limit=1)
    return head.number > last.number and not newer
