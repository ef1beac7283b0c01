"""Lines for talk that nobody archives: a terminal, the web, the API. The session's own messages are the transcript."""

from __future__ import annotations

from datetime import datetime

from denizen.domain.ids import SessionId
from denizen.domain.message import FilePart, Message, Role, calls_of
from denizen.domain.transcript import NO_TEXT, Line, name_of
from denizen.domain.turn import Turn
from denizen.ports.store import UnitOfWork

PAGE = 100


async def load_session(work: UnitOfWork, turn: Turn, trigger: Message, own: str, limit: int) -> list[Line]:
    """The newest that fit the limit in tokens, oldest first, without this turn's messages and questions that came
    later; of a turn that is over, without anything from behind its end.
    """
    lines: list[Line] = []
    before: int | None = None
    while True:
        page = await work.messages.list_tail(turn.session_id, limit=PAGE, before=before)
        for message in reversed(page):
            is_later = message.role is Role.USER and message.sequence >= trigger.sequence
            is_later = is_later or (turn.closed_at is not None and message.created_at > turn.closed_at)
            is_step = bool(calls_of(message.parts))  # what is said before a tool is used, nobody was shown
            if message.turn_id == turn.id or is_later or is_step or not message.text.strip():
                continue
            line = line_of_message(message, own)
            limit -= line.tokens
            if limit < 0:
                return lines[::-1]
            lines.append(line)
        if len(page) < PAGE:
            return lines[::-1]
        before = page[0].sequence


def line_of_message(message: Message, own: str) -> Line:
    """`own` is how the agent is called. A question counts as answered with what the agent said next."""
    is_own = message.role is not Role.USER
    name = own if is_own else name_of(str(message.meta.get("speaker") or message.author.name or "user"))
    files = [f"[{part.name}]" for part in message.parts if isinstance(part, FilePart)]
    words = " ".join(filter(None, (message.text.strip(), *files))) or NO_TEXT
    return Line(message.id, name, f"{name}: {words}", message.created_at, is_own)


async def began_anew_at(work: UnitOfWork, session_id: SessionId) -> datetime | None:
    """When the session was begun with /new: nothing from before is read. None for the first session, and before it."""
    if not session_id:
        return None
    session = await work.sessions.get(session_id)
    sessions = await work.sessions.list_sessions(session.conversation_id, session.agent)
    return session.created_at if any(each.created_at < session.created_at for each in sessions) else None
