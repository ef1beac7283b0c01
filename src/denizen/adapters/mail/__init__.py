"""Mail by IMAP and SMTP. The libraries are loaded with the first mail."""

from denizen.adapters.mail.mailbox import ImapMailbox

__all__ = ["ImapMailbox"]
