"""The port of mail: one mailbox by IMAP, and sending by SMTP. Implemented by `adapters/mail`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal, Protocol

from denizen.domain.mail import MailSummary, OutgoingMail, ReceivedMail
from denizen.domain.record import record

MailSecurity = Literal["tls", "starttls", "none"]
"""How a server is spoken to: encrypted from the start, from the greeting on, or not at all."""


@record
class MailServer:
    """A server of mail."""

    host: str
    port: int
    security: MailSecurity = "tls"


@record(kw_only=True)
class MailAccount:
    """A mailbox with its servers. `address` is the sender's; `drafts` and `sent` are names of folders."""

    imap: MailServer
    smtp: MailServer
    user: str
    password: str = field(repr=False)
    address: str
    drafts: str = "Drafts"
    sent: str = "Sent"


class Mailbox(Protocol):
    """Reads and writes mail. Every method raises NeedsAttention for a sign-in that is refused, and Unavailable for a
    server that does not answer.
    """

    async def list_mail(self, account: MailAccount, *, words: str = "", limit: int = 20) -> Sequence[MailSummary]:
        """Returns the newest mails of the inbox, the newest first; with words, those whose text contains them."""
        ...

    async def read_mail(self, account: MailAccount, mail: str) -> ReceivedMail:
        """Returns a mail of the inbox, which stays unread. Raises NotFound."""
        ...

    async def draft(self, account: MailAccount, mail: OutgoingMail) -> None:
        """Leaves the mail in the folder of drafts. Raises InvalidInput for what is no address or no heading."""
        ...

    async def send(self, account: MailAccount, mail: OutgoingMail) -> bool:
        """Sends the mail, and keeps a copy among the sent ones where their folder takes one. False when the copy of
        that key is there already.

        Raises InvalidInput as `draft` does, and for addresses that the server refuses.
        """
        ...
