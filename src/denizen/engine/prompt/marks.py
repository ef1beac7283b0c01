"""Marks in what a model reads of a shared talk: who speaks, and when time has passed (inventory C3, C13, L1).

A mark is decided when the message is written and kept with it, so that the bytes of a prompt do not change later.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from denizen.domain.agent import Timestamps
from denizen.domain.message import Message, Part, TextPart

MAX_NAME_CHARS = 80
_BREAKS = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Controls, invisible formatting, and separators of lines: categories of Unicode."""


def time_mark(rule: Timestamps, now: datetime, before: datetime | None) -> str:
    """The line that tells the time after a gap; empty when the last message is recent. The first names the zone."""
    if before is not None and (now - before).total_seconds() < rule.gap_s:
        return ""
    zone = f" {rule.zone}" if before is None else ""
    return f"[{now.astimezone(ZoneInfo(rule.zone)):%Y-%m-%d %H:%M}{zone}]"


def marked(message: Message) -> tuple[Part, ...]:
    """The parts of a stored message with its marks in front of its first text."""
    speaker, time = message.meta.get("speaker"), message.meta.get("time")
    if not speaker and not time:
        return message.parts
    head = f"{time}\n" if time else ""
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
