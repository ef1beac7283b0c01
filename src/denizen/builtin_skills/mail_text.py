"""How mails are shown, and the parameters of writing one, for the skills that read and write mail."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from denizen.builtin_skills.page_text import extract_page_text
from denizen.builtin_skills.paging import read_part
from denizen.skill import MailSummary, Param, ReceivedMail, ToolOutput, quote_untrusted, run_in_thread

MAX_HTML_CHARS = 500_000
"""How much of a mail in HTML is read."""
To = Annotated[str, Param("addresses, divided by commas", max_length=1000)]
Subject = Annotated[str, Param(max_length=300)]
Text = Annotated[str, Param(max_length=50_000)]
Start = Annotated[int, Param("character to begin at", ge=0)]


def show_mails(mails: Sequence[MailSummary], *, source: str) -> str | ToolOutput:
    """Returns a line for each mail."""
    rows = [
        f"{each.id}{'' if each.is_read else ' (unread)'}: {each.sender}, {each.date}: {each.subject}" for each in mails
    ]
    return (
        quote_untrusted("\n".join(rows), source=source) if rows else ToolOutput("There is no such mail.", is_own=True)
    )


async def show_mail(mail: ReceivedMail, start: int) -> str:
    """Returns a part of the mail, the first one with its headings. Raises ToolError as `read_part`."""
    name = f"mail {mail.summary.id}"
    text = mail.text
    if mail.is_html:
        text = (await run_in_thread(partial(extract_page_text, text[:MAX_HTML_CHARS], ""))).text
    part, more = read_part(text, start, what=name)
    summary = mail.summary
    head = [f"From: {summary.sender}", f"To: {mail.to}", f"Date: {summary.date}", f"Subject: {summary.subject}"]
    if mail.reply_to != summary.sender:
        head.append(f"Reply-To: {mail.reply_to}")
    if mail.attachments:
        head.append(f"Attachments, which cannot be read: {', '.join(mail.attachments)}")
    shown = quote_untrusted("\n".join([*(head if start == 0 else ()), "", part]), source=name)
    return "\n".join(filter(None, (shown, more)))
