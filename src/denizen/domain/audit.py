"""The audit log: what was done in whose name, each entry chained to the one before it. Pure.

An entry's digest covers its own content and the digest of the entry before, so that nobody can change, take out or put
in an entry without a trace; only the end can be cut off, which whoever has noted the newest digest will see. Texts that
people wrote are kept as digests: the log outlives what is forgotten, and still proves what it was about.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum

from denizen.domain.json import Json
from denizen.domain.record import record

GENESIS = "0" * 64
"""Stands for the digest before the first entry."""


class AuditKind(StrEnum):
    """The kind of act that an entry of the audit log records."""

    CALL = "call"
    """A tool was asked for, from wherever, and decided about."""
    APPROVAL = "approval"
    """A human decided about a call, or nobody did in time."""
    SEND = "send"
    """Something was posted on a platform."""
    SWITCH = "switch"
    """Somebody changed how Denizen guards itself."""
    SETTINGS = "settings"
    """Somebody changed how an agent answers, or a file of the configuration."""
    REVIEW = "review"
    """Somebody decided about a proposed answer."""
    ACCOUNT = "account"
    """Somebody made, changed or deleted an account, an invitation or an API key."""
    MODEL = "model"
    """Somebody had a model tried, which costs money, outside of any talk."""
    DATA = "data"
    """Somebody changed or deleted what is stored about people: memories, or everything of one person."""


@record
class AuditEvent:
    """One event of the audit log. `actor` is the key of a principal, `subject` a tool, an approval, a place or a set of
    settings; `details` are JSON and hold no text that people or models wrote.
    """

    kind: AuditKind
    at: datetime
    actor: str
    subject: str
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])


@record
class AuditEntry:
    """An event in its place in the chain. Numbers begin with 1 and have no gaps."""

    number: int
    event: AuditEvent
    previous: str
    digest: str


@record
class AuditHead:
    """The newest entry's number and digest; 0 and `GENESIS` for an empty log."""

    number: int = 0
    digest: str = GENESIS


def append_to_chain(head: AuditHead, event: AuditEvent) -> AuditEntry:
    """The entry that the event becomes behind the head."""
    number = head.number + 1
    return AuditEntry(number, event, head.digest, digest_entry(number, event, head.digest))


def chain_head(entry: AuditEntry) -> AuditHead:
    return AuditHead(entry.number, entry.digest)


def digest_entry(number: int, event: AuditEvent, previous: str) -> str:
    """SHA-256, in hex, over the entry as canonical JSON: sorted keys, no blanks, ASCII only, times in UTC with
    microseconds.
    """
    content = {"number": number, "previous": previous, **event_to_json(event)}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def event_to_json(event: AuditEvent) -> dict[str, Json]:
    return {
        "kind": event.kind.value,
        "at": event.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor": event.actor,
        "subject": event.subject,
        "details": dict(event.details),
    }


def digest_text(text: str) -> str:
    """Returns the digest that stands for a text in the log."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def find_chain_fault(entries: Iterable[AuditEntry], head: AuditHead | None = None) -> str:
    """Returns what is wrong with the entries that follow `head`, in one sentence; empty when nothing is. They come in
    order.
    """
    last = head or AuditHead()
    for entry in entries:
        if entry.number != last.number + 1:
            return f"Entry {last.number + 1} is missing: after {last.number} comes {entry.number}."
        if entry.previous != last.digest:
            return f"Entry {entry.number} does not follow entry {last.number}: one of them was put in or exchanged."
        if entry.digest != digest_entry(entry.number, entry.event, entry.previous):
            return f"Entry {entry.number} was changed after it was written."
        last = chain_head(entry)
    return ""
