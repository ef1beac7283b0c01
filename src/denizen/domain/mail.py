"""Mails: what a list, a reading and a sending hold, and how each becomes or comes from the text that servers exchange
(RFC 5322). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from email import message_from_bytes
from email.errors import HeaderParseError
from email.message import EmailMessage
from email.policy import SMTP, EmailPolicy
from email.utils import format_datetime, getaddresses, parseaddr
from itertools import islice
from typing import cast

from denizen.domain.errors import InvalidInput
from denizen.domain.ids import derive
from denizen.domain.record import record

MAX_RECIPIENTS = 20
MAX_BYTES = 2_000_000
"""How much of a mail is read."""
MAX_HEADING_CHARS = 1000
"""How much of a heading is read: whoever sends a mail chooses its length, and reading a long one takes minutes."""
MAX_PARTS = 200
SHOWN_ATTACHMENTS, ATTACHMENT_CHARS = 20, 100


class _BoundedPolicy(EmailPolicy):
    """Reads headings as Python's own policy does, as far as they are short and do not break its parser."""

    def header_fetch_parse(self, name: str, value: str) -> str:
        parse = super().header_fetch_parse
        try:
            return parse(name, value[:MAX_HEADING_CHARS])
        except (ValueError, LookupError, AttributeError, RecursionError):
            return parse(name, "")


_POLICY = cast("EmailPolicy[EmailMessage]", _BoundedPolicy())


@record(kw_only=True)
class MailSummary:
    """A mail in a list. `id` is its number in the mailbox."""

    id: str
    sender: str
    subject: str
    date: str
    is_read: bool


@record(kw_only=True)
class ReceivedMail:
    """A mail. `text` is its readable part, which is HTML where `is_html`; `message_id` and `references` place it in
    its conversation, `reply_to` is where an answer goes. `thread` is the mailbox's own name of that conversation, where
    it has one.
    """

    summary: MailSummary
    to: str
    reply_to: str
    message_id: str
    references: str
    text: str
    is_html: bool
    attachments: Sequence[str]
    thread: str = ""


@record(kw_only=True)
class OutgoingMail:
    """A mail to write. `key` is the same when a call runs again; its Message-ID derives from it. `answers` is the mail
    that it replies to.
    """

    key: str
    to: str
    subject: str
    text: str
    answers: ReceivedMail | None = None


def write_mail(mail: OutgoingMail, sender: str, *, now: datetime) -> EmailMessage:
    """Returns the mail as servers take it; without a `sender` the server puts its own. Raises InvalidInput for what is
    no address or no heading.
    """
    recipients = [address for _, address in getaddresses([mail.to])]
    if not recipients or len(recipients) > MAX_RECIPIENTS or not all(map(_is_address, recipients)):
        raise InvalidInput(
            f"'{mail.to[:100]}' are no addresses of mail.",
            code="mail_address",
            fix=f"Write at most {MAX_RECIPIENTS}, divided by commas, such as ana@example.org.",
        )
    written, answers = EmailMessage(policy=SMTP), mail.answers
    domain = parseaddr(sender)[1].rpartition("@")[2] or "localhost"
    try:
        if sender:
            written["From"] = sender
        written["To"], written["Subject"] = mail.to, mail.subject
        written["Date"] = format_datetime(now)
        written["Message-ID"] = f"<{derive('mail', mail.key)}@{domain}>"
        if answers is not None and answers.message_id:
            written["In-Reply-To"] = answers.message_id
            written["References"] = f"{answers.references} {answers.message_id}".strip()
    except (ValueError, HeaderParseError) as error:
        raise InvalidInput(
            "This mail cannot be written.", code="mail_heading", why=str(error), fix="Write each heading in a line."
        ) from error
    written.set_content(mail.text)
    return written


def summarize_mail(number: str, data: bytes, *, is_read: bool) -> MailSummary:
    """Returns the row of a mail whose headings, or whole text, are `data`."""
    return _summarize(number, message_from_bytes(data[:MAX_BYTES], policy=_POLICY), is_read=is_read)


def read_mail(number: str, data: bytes, *, is_read: bool, thread: str = "") -> ReceivedMail:
    """Returns the mail whose text is `data`. What cannot be read of it is empty. It takes a while for a large one, so
    call it in a thread. Raises InvalidInput for one of too many parts.
    """
    mail = _parse(data)
    body = mail.get_body(("plain", "html"))
    text = ""
    if body is not None:
        with suppress(LookupError, UnicodeError):
            text = str(body.get_content())
    return ReceivedMail(
        summary=_summarize(number, mail, is_read=is_read),
        to=_head(mail, "To"),
        reply_to=_head(mail, "Reply-To") or _head(mail, "From"),
        message_id=_head(mail, "Message-ID"),
        references=_head(mail, "References"),
        text=text,
        is_html=body is not None and body.get_content_subtype() == "html",
        attachments=_name_attachments(mail),
        thread=thread,
    )


def _parse(data: bytes) -> EmailMessage:
    refusal = InvalidInput(
        f"This mail has more than {MAX_PARTS} parts.", code="mail_parts", fix="Open it in a program for mail."
    )
    try:
        mail = message_from_bytes(data[:MAX_BYTES], policy=_POLICY)
    except RecursionError as error:
        raise refusal from error
    if sum(1 for _ in islice(mail.walk(), MAX_PARTS + 1)) > MAX_PARTS:
        raise refusal
    return mail


def _summarize(number: str, mail: EmailMessage, *, is_read: bool) -> MailSummary:
    return MailSummary(
        id=number, sender=_head(mail, "From"), subject=_head(mail, "Subject"), date=_head(mail, "Date"), is_read=is_read
    )


def _name_attachments(mail: EmailMessage) -> Sequence[str]:
    names = [(part.get_filename() or "unnamed")[:ATTACHMENT_CHARS] for part in mail.iter_attachments()]
    left = len(names) - SHOWN_ATTACHMENTS
    return [*names[:SHOWN_ATTACHMENTS], f"and {left} more"] if left > 0 else names


def _head(mail: EmailMessage, name: str) -> str:
    """Returns a heading on one line; empty for one that cannot be read."""
    return " ".join(str(mail.get(name, "")).split())[:500]


def _is_address(text: str) -> bool:
    return re.fullmatch(r"[^\s@<>,;\"]{1,64}@[^\s@<>,;\"]{1,253}", text) is not None
