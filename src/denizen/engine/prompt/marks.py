"""Marks in what a model reads of a talk: the date, who speaks, and when time has passed (inventory C3, C13, L1).

A mark is decided when the message is written and kept with it, so that the bytes of a prompt do not change later.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from denizen.domain.agent import Agent, Timestamps
from denizen.domain.message import Message, Part, Role, TextPart
from denizen.domain.prompt import PromptMessage

MAX_NAME_CHARS = 80
_BREAKS = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Controls, invisible formatting, and separators of lines: categories of Unicode."""


def time_mark(rule: Timestamps, now: datetime, before: datetime | None) -> str:
    """The line that tells the time after a gap; empty when the last message is recent. The first names the zone."""
    if before is not None and (now - before).total_seconds() < rule.gap_s:
        return ""
    zone = f" {rule.zone}" if before is None else ""
    return f"[{now.astimezone(ZoneInfo(rule.zone)):%Y-%m-%d %H:%M}{zone}]"


def zone_of(agent: Agent) -> str:
    """In which the agent is told times and dates: an IANA name."""
    return agent.timestamps.zone if agent.timestamps else "UTC"


def date_line(now: datetime, zone: str = "UTC") -> str:
    """The date in words, for whoever is to know it."""
    return f"Today is {now.astimezone(ZoneInfo(zone)):%A, %Y-%m-%d} ({zone})."


def date_mark(now: datetime, before: datetime | None, zone: str = "UTC") -> str:
    """The line with the date in front of the first message of a session, and of the first on another day; empty for
    the others. `before` is when somebody wrote there last.
    """
    line = f"[{date_line(now, zone)}]"
    return "" if before is not None and line == f"[{date_line(before, zone)}]" else line


def tells(message: PromptMessage, line: str) -> bool:
    """Whether a user message begins with that date."""
    first = message.parts[0] if message.role is Role.USER and message.parts else None
    return isinstance(first, TextPart) and first.text.startswith(f"[{line}]")


def marked(message: Message) -> tuple[Part, ...]:
    """The parts of a stored message with its marks in front of its first text."""
    speaker, lines = message.meta.get("speaker"), [message.meta.get(mark) for mark in ("date", "time")]
    if not speaker and not any(lines):
        return message.parts
    head = "".join(f"{line}\n" for line in lines if line)
    if speaker:
        head += f"{speaker_of(str(speaker))}: "
    return _with_head(message.parts, head)


def speaker_of(name: str) -> str:
    """A name as it stands in front of what its owner says: on one line and short, since people choose it themselves."""
    words = "".join(" " if unicodedata.category(char) in _BREAKS else char for char in name[: 4 * MAX_NAME_CHARS])
    return " ".join(words.split())[:MAX_NAME_CHARS] or "somebody"


def _with_head(parts: Sequence[Part], head: str) -> tuple[Part, ...]:
    if parts and isinstance(parts[0], TextPart):
        return (TextPart(head + parts[0].text), *parts[1:])
    return (TextPart(head.strip()), *parts)
