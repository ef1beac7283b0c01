"""Mail of a Google account: search, read, draft, reply and send; off unless switched on.

As with `mail`, reading is sensitive and taints the turn; sending cannot be taken back, so people are always asked.
"""

from __future__ import annotations

from typing import Annotated

from denizen.builtin_skills.attempts import load_attempt, save_attempt
from denizen.builtin_skills.google_account import TIMEOUT_S, get_google
from denizen.builtin_skills.mail_text import Start, Subject, Text, To, show_mail, show_mails
from denizen.skill import (
    Effect,
    InvalidInput,
    NotFound,
    OutgoingMail,
    Param,
    ReceivedMail,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    Unavailable,
)

skill = Skill("gmail", description="Reads and writes mail of a Google account.")

MailId = Annotated[str, Param("id from search_gmail", max_length=100)]
Query = Annotated[str, Param("as Gmail writes it: from:ana is:unread invoice", max_length=300)]
Answers = Annotated[str, Param("id of the mail that it replies to", max_length=100)]


@skill.tool(tier=Tier.SENSITIVE, read_only=True, timeout_s=TIMEOUT_S, reads={Taint.MAIL})
async def search_gmail(context: ToolContext, query: Query = "in:inbox") -> str | ToolOutput:
    """Lists the newest mails that fit a query."""
    return show_mails(await get_google(context).gmail.search(query), source="Gmail")


@skill.tool(tier=Tier.SENSITIVE, read_only=True, timeout_s=TIMEOUT_S, reads={Taint.MAIL})
async def read_gmail(context: ToolContext, mail: MailId, start: Start = 0) -> str:
    """Reads a mail, which stays unread."""
    return await show_mail(await _read(context, mail), start)


@skill.tool(tier=Tier.SENSITIVE, timeout_s=TIMEOUT_S)
async def draft_gmail(context: ToolContext, to: To, subject: Subject, text: Text, answers: Answers = "") -> str:
    """Leaves a draft for the owner."""
    await _draft(context, to, subject, text, answers)
    return f"A draft to {to} is among the drafts."


@skill.tool(tier=Tier.DANGEROUS, timeout_s=TIMEOUT_S, effects={Effect.SEND}, destinations=("to",), destructive=True)
async def send_gmail(context: ToolContext, to: To, subject: Subject, text: Text, answers: Answers = "") -> str:
    """Sends a mail."""
    draft = await _draft(context, to, subject, text, answers)
    try:
        is_new = await get_google(context).gmail.send_draft(draft)
    except Unavailable as error:
        unknown = "It may have gone out or not: look among the sent mails and drafts before you send it again."
        raise ToolError(f"{error.explain()} {unknown}", is_own=True) from error
    return f"Sent to {to}." if is_new else f"It was sent to {to} already."


async def _draft(context: ToolContext, to: str, subject: str, text: str, answers: str) -> str:
    """Returns the id of the draft, which a call that runs again finds: a draft can be sent once. The recipients are
    always an argument, never taken from a mail: people see them before they say yes.
    """
    if draft := await load_attempt(context):
        return draft
    answered = await _read(context, answers) if answers.strip() else None
    mail = OutgoingMail(key=context.idempotency_key, to=to, subject=subject, text=text, answers=answered)
    try:
        draft = await get_google(context).gmail.draft(mail)
    except InvalidInput as error:
        raise ToolError(error.explain(), is_own=True) from error
    await save_attempt(context, draft)
    return draft


async def _read(context: ToolContext, mail: str) -> ReceivedMail:
    try:
        return await get_google(context).gmail.read(mail.strip())
    except (InvalidInput, NotFound) as error:
        raise ToolError(error.explain(), is_own=True) from error
