"""Something to remind somebody of, and the bounds of that."""

from __future__ import annotations

from datetime import datetime, timedelta

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, derive
from denizen.domain.record import record

MAX_TEXT_CHARS = 500
MAX_PENDING = 20
"""The limit of one person, over all agents."""
MAX_AHEAD = timedelta(days=366)
ID_CHARS = 14
LATE_AFTER = timedelta(minutes=2)
"""From then on the delay is told."""


@record(kw_only=True)
class Reminder:
    """Owed to `asker` (a principal's key) at `place`, by `account`, the agent whose login on the platform is used.
    There as long as it is pending: once it is owed to the outbox, or cancelled, it is gone.
    """

    id: str
    account: AgentName
    asker: str
    place: Place
    text: str
    due_at: datetime
    created_at: datetime

    @property
    def user_id(self) -> str:
        """The asker's own id on the platform."""
        return self.asker.rpartition(":")[2]


def reminder_id(key: str) -> str:
    """The same for the same key: a call that runs again reminds once."""
    return derive("rem", key)[:ID_CHARS]


def reminder_text(reminder: Reminder, *, now: datetime) -> str:
    """Returns the text that is sent when the reminder is due. It pings the asker; whoever sends it keeps what the
    quoted text calls from pinging.
    """
    late = now - reminder.due_at
    delay = f" ({format_span(late)} late: I was not connected when it was due)" if late >= LATE_AFTER else ""
    quoted = "\n".join(f"> {line}" for line in reminder.text.splitlines() if line.strip())
    return f"<@{reminder.user_id}> Reminder{delay}:\n{quoted}"


def format_span(time: timedelta) -> str:
    """The two largest units: `2 h 5 min`, `3 d`; `0 min` for less than a minute."""
    days, rest = divmod(max(round(time.total_seconds() / 60), 0), 24 * 60)
    hours, minutes = divmod(rest, 60)
    parts = [f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if number]
    return " ".join(parts[:2]) or "0 min"
