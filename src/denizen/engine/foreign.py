"""What foreign text a turn begins with: in its question, in the talk before it, in what is told around it.

What it reads later, `steps.py` adds. Which of it matters the gate decides. Called by `gather.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.message import Role, text_of
from denizen.domain.prompt import PromptMessage
from denizen.domain.taint import of_parts, of_prompt
from denizen.domain.tool import Taint
from denizen.engine.opening import Opened
from denizen.engine.prompt.session import from_stored
from denizen.ports.store import Store

STORED_LIMIT = 500
"""So many messages of a session are looked at for what a summary or a transcript no longer shows."""

_FORWARDED = "[forwarded message:"
_QUOTING = ("[in reply to ", "[pressed a button", "[chose, under your message ")
"""Marks in a question of somebody else's words (`adapters/discord/wording`, `engine/listener/interactions`)."""


async def load_foreign(
    store: Store, opened: Opened, messages: Sequence[PromptMessage], *, is_transcript: bool
) -> frozenset[Taint]:
    """`messages` are all that the model is sent. In transcripts and summaries nobody sees any more who wrote what, and
    from which texts an answer was made; the messages of the session still tell.
    """
    asker = opened.trigger.author.id
    taint = of_prompt(messages, asker) | of_parts(opened.trigger.parts)
    if "supplied" in opened.turn.options and any(message.role is Role.TOOL for message in messages):
        taint |= {Taint.TOOL}
    if _quotes_others(opened, messages) or (is_transcript and _is_shared(opened)):
        taint |= {Taint.OTHERS}
    has_summary = any(message.kind == "summary" for message in messages)
    if has_summary or is_transcript:
        async with store.work(write=False) as work:
            stored = await work.messages.list_tail(opened.turn.session_id, limit=STORED_LIMIT)
        taint |= of_prompt(from_stored(stored), asker)
        if has_summary and len(stored) == STORED_LIMIT:
            taint |= {Taint.TOOL}  # what else went into it is not known
    return taint


def _quotes_others(opened: Opened, messages: Sequence[PromptMessage]) -> bool:
    """Now, or in a question of before, which may have got no answer that would tell. In a direct talk a quotation is of
    the asker or of the agent.
    """
    owed = opened.owed
    is_merged = owed is not None and len(owed.answers) > 1
    marks = (_FORWARDED, *_QUOTING) if _is_shared(opened) else (_FORWARDED,)
    said = (text_of(message.parts) for message in messages if message.role is Role.USER)
    return is_merged or any(mark in text for text in (opened.trigger.text, *said) for mark in marks)


def _is_shared(opened: Opened) -> bool:
    return bool(opened.trigger.meta.get("speaker")) or (opened.owed is not None and bool(opened.owed.guild))
