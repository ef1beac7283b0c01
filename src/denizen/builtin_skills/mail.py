"""Mail of one mailbox: list, read, draft, reply and send; off unless switched on.

Mails are private and come from strangers, so reading them is sensitive and taints the turn; sending cannot be taken
back, so people are always asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from denizen.builtin_skills.mail_text import Start, Subject, Text, To, show_mail, show_mails
from denizen.skill import (
    Effect,
    InvalidInput,
    MailAccount,
    Mailbox,
    MailServer,
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
)

TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class MailSettings:
    """`imap` and `smtp` are hosts, `address` is the sender's; without `user` it is the name to sign in with, too.
    `imap_security` is tls or none, `smtp_security` tls, starttls or none, which signs in nowhere: for servers of the
    same machine. `drafts` and `sent` are folders of the mailbox.
    """

    imap: str = ""
    smtp: str = ""
    address: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    imap_port: int = 993
    smtp_port: int = 465
    imap_security: Literal["tls", "none"] = "tls"
    smtp_security: Literal["tls", "starttls", "none"] = "tls"
    drafts: str = "Drafts"
    sent: str = "Sent"

    @property
    def account(self) -> MailAccount:
        """Raises ToolError where something is missing."""
        missing = [name for name in ("imap", "smtp", "address", "password") if not getattr(self, name)]
        if missing:
            raise ToolError(f"The owner has to set tools.mail.{', '.join(missing)}.")
        return MailAccount(
            imap=MailServer(self.imap, self.imap_port, self.imap_security),
            smtp=MailServer(self.smtp, self.smtp_port, self.smtp_security),
            user=self.user or self.address,
            password=self.password,
            address=self.address,
            drafts=self.drafts,
            sent=self.sent,
        )


skill = Skill("mail", description="Reads and writes mail.", settings=MailSettings)

MailId = Annotated[str, Param("number from list_mail", max_length=20)]
Answers = Annotated[str, Param("number of the mail that it replies to", max_length=20)]


@skill.tool(tier=Tier.SENSITIVE, read_only=True, timeout_s=TIMEOUT_S, reads={Taint.MAIL})
async def list_mail(context: ToolContext, words: Annotated[str, Param(max_length=200)] = "") -> str | ToolOutput:
    """Lists the newest mails of the inbox, or those with these words."""
    found = await _mailbox(context).list_mail(context.settings(MailSettings).account, words=words)
    return show_mails(found, source="inbox")


@skill.tool(tier=Tier.SENSITIVE, read_only=True, timeout_s=TIMEOUT_S, reads={Taint.MAIL})
async def read_mail(context: ToolContext, mail: MailId, start: Start = 0) -> str:
    """Reads a mail, which stays unread."""
    return await show_mail(await _read(context, mail), start)


@skill.tool(tier=Tier.SENSITIVE, timeout_s=TIMEOUT_S)
async def draft_mail(context: ToolContext, to: To, subject: Subject, text: Text, answers: Answers = "") -> str:
    """Leaves a draft for the owner."""
    outgoing = await _write(context, to, subject, text, answers)
    try:
        await _mailbox(context).draft(context.settings(MailSettings).account, outgoing)
    except InvalidInput as error:
        raise ToolError(error.explain(), is_own=True) from error
    return f"A draft to {to} is among the drafts."


@skill.tool(tier=Tier.DANGEROUS, timeout_s=TIMEOUT_S, effects={Effect.SEND}, destinations=("to",), destructive=True)
async def send_mail(context: ToolContext, to: To, subject: Subject, text: Text, answers: Answers = "") -> str:
    """Sends a mail."""
    outgoing = await _write(context, to, subject, text, answers)
    try:
        is_new = await _mailbox(context).send(context.settings(MailSettings).account, outgoing)
    except InvalidInput as error:
        raise ToolError(error.explain(), is_own=True) from error
    return f"Sent to {to}." if is_new else f"It was sent to {to} already."


async def _write(context: ToolContext, to: str, subject: str, text: str, answers: str) -> OutgoingMail:
    """The recipients are always an argument, never taken from a mail: people see them before they say yes."""
    answered = await _read(context, answers) if answers.strip() else None
    return OutgoingMail(key=context.idempotency_key, to=to, subject=subject, text=text, answers=answered)


async def _read(context: ToolContext, mail: str) -> ReceivedMail:
    try:
        return await _mailbox(context).read_mail(context.settings(MailSettings).account, mail.strip())
    except (InvalidInput, NotFound) as error:
        raise ToolError(error.explain(), is_own=True) from error


def _mailbox(context: ToolContext) -> Mailbox:
    if context.accounts.mailbox is None:
        raise ToolError("There is no mail here.")
    return context.accounts.mailbox
