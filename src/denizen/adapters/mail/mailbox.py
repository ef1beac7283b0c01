"""Implements `denizen.ports.mail.Mailbox` with aioimaplib and aiosmtplib. Each call has connections of its own."""

from __future__ import annotations

import itertools
import re
import ssl
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from email import message_from_bytes
from email.errors import HeaderParseError
from email.message import EmailMessage
from email.policy import SMTP, default
from email.utils import format_datetime, getaddresses, parseaddr
from importlib.util import find_spec
from typing import Any

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, NeedsAttention, NotFound, Unavailable
from denizen.domain.ids import derive
from denizen.domain.installation import build_install_command
from denizen.ports.mail import MailAccount, MailServer, MailSummary, OutgoingMail, ReceivedMail

TIMEOUT_S = 20.0
GOODBYE_S = 2.0
MAX_BYTES = 2_000_000
"""How much of one mail is read."""
MAX_RECIPIENTS = 20
_HEADERS = "(UID FLAGS BODY.PEEK[HEADER.FIELDS (FROM SUBJECT DATE)])"
_WHOLE = f"(UID FLAGS BODY.PEEK[]<0.{MAX_BYTES}>)"
_UID = re.compile(rb"UID (\d+)")
_QUOTED = re.compile(r'["\\\x00-\x1f\x7f]+')


class ImapMailbox:
    """Holds nothing open between calls."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def list_mail(self, account: MailAccount, *, words: str = "", limit: int = 20) -> Sequence[MailSummary]:
        async with _open_imap(account) as imap:
            await imap.select("INBOX")
            wanted = _QUOTED.sub(" ", words).strip()
            found = await imap.uid_search(f'TEXT "{wanted}"' if wanted else "ALL", charset="utf-8" if wanted else None)
            if found.result != "OK":
                raise InvalidInput(
                    "The server cannot look for these words.", code="mail_search", fix="Use other words, or none."
                )
            numbers = sorted(map(int, b" ".join(_rows(found.lines)).split()))[-limit:]
            if not numbers:
                return ()
            answer = await imap.uid("fetch", ",".join(map(str, numbers)), _HEADERS)
            return [_summary(*each) for each in sorted(_read_fetched(answer.lines), key=lambda row: -int(row[0]))]

    async def read_mail(self, account: MailAccount, mail: str) -> ReceivedMail:
        async with _open_imap(account) as imap:
            await imap.select("INBOX")
            answer = await imap.uid("fetch", mail, _WHOLE) if mail.isdecimal() and mail.isascii() else None
            found = list(_read_fetched(answer.lines)) if answer is not None else []
        if not found:
            raise NotFound(
                f"There is no mail {mail[:40]}.", code="mail_not_found", fix="list_mail shows their numbers."
            )
        return _read(*found[0])

    async def draft(self, account: MailAccount, mail: OutgoingMail) -> None:
        written = self._write(account, mail)
        async with _open_imap(account) as imap:
            await _append(imap, account.drafts, written, r"(\Draft)")

    async def send(self, account: MailAccount, mail: OutgoingMail) -> bool:
        written = self._write(account, mail)
        async with _open_imap(account) as imap:
            # A call that ran before left a copy. A process that is killed between sending and copying sends the mail
            # once more, with the same Message-ID, by which receivers know it.
            if (await imap.select(_quote(account.sent))).result == "OK":
                found = await imap.uid_search(f'HEADER Message-ID "{written["Message-ID"]}"', charset=None)
                if b" ".join(_rows(found.lines)).split():
                    return False
            await _send(account, written)
            await _append(imap, account.sent, written, r"(\Seen)")
        return True

    def _write(self, account: MailAccount, mail: OutgoingMail) -> EmailMessage:
        recipients = [address for _, address in getaddresses([mail.to])]
        if not recipients or len(recipients) > MAX_RECIPIENTS or not all(map(_is_address, recipients)):
            raise InvalidInput(
                f"'{mail.to[:100]}' are no addresses of mail.",
                code="mail_address",
                fix=f"Write at most {MAX_RECIPIENTS}, divided by commas, such as ana@example.org.",
            )
        written, answers = EmailMessage(policy=SMTP), mail.answers
        domain = parseaddr(account.address)[1].rpartition("@")[2] or "localhost"
        try:
            written["From"], written["To"], written["Subject"] = account.address, mail.to, mail.subject
            written["Date"] = format_datetime(self._clock.now())
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


@asynccontextmanager
async def _open_imap(account: MailAccount) -> AsyncGenerator[Any]:
    """A connection that is signed in."""
    if find_spec("aioimaplib") is None or find_spec("aiosmtplib") is None:
        raise Unavailable("Mail needs an extra.", code="mail_missing", fix=f"Run {build_install_command('mail')}")
    from aioimaplib import IMAP4, IMAP4_SSL, AioImapException

    server = account.imap
    imap: Any = None
    try:
        with anyio.fail_after(TIMEOUT_S):
            if server.security == "tls":
                imap = IMAP4_SSL(server.host, server.port, timeout=TIMEOUT_S, ssl_context=ssl.create_default_context())
            else:
                imap = IMAP4(server.host, server.port, timeout=TIMEOUT_S)
            await imap.wait_hello_from_server()
            signed_in = await imap.login(account.user, account.password)
            if signed_in.result != "OK":
                raise NeedsAttention(
                    f"{server.host} does not let {account.user} in.",
                    code="mail_sign_in",
                    fix="Check tools.mail.user and password; some providers want a password for programs.",
                )
            yield imap
    except (OSError, TimeoutError, AioImapException) as error:
        raise _away(server, error) from error
    finally:
        if imap is not None:
            await _leave(imap)


async def _leave(imap: Any) -> None:  # noqa: ANN401 - untyped
    """Says goodbye, and closes the connection, which the library leaves to the server."""
    from aioimaplib import AioImapException

    with (
        anyio.CancelScope(shield=True),
        anyio.move_on_after(GOODBYE_S),
        suppress(OSError, TimeoutError, AioImapException),
    ):
        await imap.logout()
    if imap.protocol is not None and imap.protocol.transport is not None:
        imap.protocol.transport.close()


async def _append(imap: Any, folder: str, mail: EmailMessage, flags: str) -> None:  # noqa: ANN401 - untyped
    """Puts a copy into a folder, which is made where it is not there."""
    for is_first in (True, False):
        answer = await imap.append(mail.as_bytes(), mailbox=_quote(folder), flags=flags)
        if answer.result == "OK":
            return
        if is_first:
            await imap.create(_quote(folder))
    raise NeedsAttention(
        f"The folder {folder} takes no mail.",
        code="mail_folder",
        fix="Name the mailbox's own folders under tools.mail.drafts and tools.mail.sent.",
    )


async def _send(account: MailAccount, mail: EmailMessage) -> None:
    from aiosmtplib import SMTPAuthenticationError, SMTPException, SMTPRecipientsRefused, send

    server = account.smtp
    try:
        await send(
            mail,
            hostname=server.host,
            port=server.port,
            username=account.user if server.security != "none" else None,
            password=account.password if server.security != "none" else None,
            use_tls=server.security == "tls",
            start_tls=server.security == "starttls",
            timeout=TIMEOUT_S,
        )
    except SMTPRecipientsRefused as error:
        raise InvalidInput(
            "The server takes no mail for these addresses.", code="mail_address", fix="Check the addresses."
        ) from error
    except SMTPAuthenticationError as error:
        raise NeedsAttention(
            f"{server.host} does not let {account.user} in.", code="mail_sign_in", fix="Check tools.mail.password."
        ) from error
    except (OSError, SMTPException) as error:
        raise _away(server, error) from error


def _away(server: MailServer, error: Exception) -> Unavailable:
    return Unavailable(
        f"The mail server {server.host}:{server.port} does not answer.",
        code="mail_unavailable",
        why=str(error)[:200] or type(error).__name__,
    )


def _rows(lines: Sequence[bytes]) -> list[bytes]:
    """Returns the lines of an answer to a search, without its last one, which tells how it went."""
    return [bytes(line) for line in lines[:-1] if re.fullmatch(rb"[\d ]*", bytes(line))]


def _read_fetched(lines: Sequence[bytes]) -> Iterator[tuple[str, bool, bytes]]:
    """Yields number, whether it was read, and bytes of each mail of an answer to a fetch."""
    for line, literal in itertools.pairwise(lines):
        found = _UID.search(bytes(line))
        if found and b"FETCH" in line and isinstance(literal, bytearray):
            yield found[1].decode(), rb"\Seen" in line, bytes(literal)


def _summary(number: str, is_read: bool, data: bytes) -> MailSummary:  # noqa: FBT001 - a row of an answer
    mail = message_from_bytes(data, policy=default)
    return MailSummary(
        id=number, sender=_head(mail, "From"), subject=_head(mail, "Subject"), date=_head(mail, "Date"), is_read=is_read
    )


def _read(number: str, is_read: bool, data: bytes) -> ReceivedMail:  # noqa: FBT001 - a row of an answer
    mail = message_from_bytes(data, policy=default)
    body = mail.get_body(("plain", "html"))
    text = ""
    if body is not None:
        with suppress(LookupError, UnicodeError):
            text = str(body.get_content())
    return ReceivedMail(
        summary=_summary(number, is_read, data),
        to=_head(mail, "To"),
        reply_to=_head(mail, "Reply-To") or _head(mail, "From"),
        message_id=_head(mail, "Message-ID"),
        references=_head(mail, "References"),
        text=text,
        is_html=body is not None and body.get_content_subtype() == "html",
        attachments=[part.get_filename() or "unnamed" for part in mail.iter_attachments()],
    )


def _head(mail: EmailMessage, name: str) -> str:
    """Returns a heading on one line; empty for one that cannot be read."""
    try:
        return " ".join(str(mail.get(name, "")).split())[:500]
    except (ValueError, LookupError, AttributeError, IndexError):  # of a heading that breaks the parser
        return ""


def _is_address(text: str) -> bool:
    return re.fullmatch(r"[^\s@<>,;\"]{1,64}@[^\s@<>,;\"]{1,253}", text) is not None


def _quote(folder: str) -> str:
    return '"' + _QUOTED.sub("", folder) + '"'
