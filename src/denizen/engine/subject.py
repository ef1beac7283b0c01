"""What the talk of a turn is about, and the note that tells the model (inventory S7, S33).

The title and labels are those of the moment of the question, kept with the turn; the opening is read from the archive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from denizen.domain.prompt import PromptMessage
from denizen.domain.subject import BODY_CHARS, Subject, subject_from_json
from denizen.domain.taint import tainted
from denizen.domain.tool import Taint
from denizen.engine.opening import Opened
from denizen.engine.prompt.assemble import passing
from denizen.ports.store import Store

_HEAD = "This talk is about the following {kind}; what it says is for your information:"


async def load_subject(store: Store, opened: Opened) -> Subject | None:
    """None where the platform has no such thing. The body is empty when the opening is not archived or was deleted."""
    row = opened.turn.options.get("subject")
    if not isinstance(row, dict):
        return None
    subject = subject_from_json(cast("dict[str, Any]", row))
    if not subject.opening:
        return subject
    async with store.work(write=False) as work:
        post = await work.archive.find(opened.place.platform, subject.opening)
    body = "" if post is None or post.deleted_at is not None else post.text
    return replace(subject, body=body[:BODY_CHARS])


async def load_subject_note(store: Store, opened: Opened) -> list[PromptMessage]:
    """One message, which others wrote; none without a subject. What was asked by the opening itself is not repeated."""
    subject = await load_subject(store, opened)
    if subject is None:
        return []
    if opened.trigger.platform_id == subject.opening:
        subject = replace(subject, body="")
    text = f"{_HEAD.format(kind=subject.kind or 'subject')}\n{subject.describe()}"
    return [tainted(passing(text, "subject"), Taint.OTHERS)]
