"""Implements `denizen.ports.mail.Mailbox` with aioimaplib and aiosmtplib. Each call has connections of its own."""

from __future__ import annotations

import itertools
import logging
import re
import ssl
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from email.message import EmailMessage
from functools import partial
from importlib.util import find_spec
from typing import Any

import anyio
from anyio import to_thread

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotFound, Unavailable
from denizen.domain.installation import build_install_command
from denizen.domain.mail import (
    MAX_BYTES,
    MailSummary,
    OutgoingMail,
    ReceivedMail,
    read_mail,
    summarize_mail,
    write_mail,
)
from denizen.ports.mail import MailAccount, MailServer

TIMEOUT_S = 20.0
GOODBYE_S = 2.0
MAX_HEADINGS_BYTES = 10_000
"""How much of the headings of a mail in a list is read."""
_HEADERS = f"(UID FLAGS BODY.PEEK[HEADER.FIELDS (FROM SUBJECT DATE)]<0.{MAX_HEADINGS_BYTES}>)"
_WHOLE = f"(UID FLAGS BODY.PEEK[]<0.{MAX_BYTES}>)"
_UID = re.compile(rb"UID (\d+)")
_log = logging.getLogger("denizen.mail")
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
            return [
                summarize_mail(number, data, is_read=is_read)
                for number, is_read, data in sorted(_read_fetched(answer.lines), key=lambda row: -int(row[0]))
            ]

    async def read_mail(self, account: MailAccount, mail: str) -> ReceivedMail:
        async with _open_imap(account) as imap:
            await imap.select("INBOX")
            answer = await imap.uid("fetch", mail, _WHOLE) if mail.isdecimal() and mail.isascii() else None
            found = list(_read_fetched(answer.lines)) if answer is not None else []
        if not found:
            raise NotFound(
                f"There is no mail {mail[:40]}.", code="mail_not_found", fix="list_mail shows their numbers."
            )
        number, is_read, data = found[0]
        return await to_thread.run_sync(partial(read_mail, number, data, is_read=is_read), abandon_on_cancel=True)

    async def draft(self, account: MailAccount, mail: OutgoingMail) -> None:
        written = self._write(account, mail)
        async with _open_imap(account) as imap:
            await _append(imap, account.drafts, written, r"(\Draft)")

    async def send(self, account: MailAccount, mail: OutgoingMail) -> bool:
        written = self._write(account, mail)
        async with _open_imap(account) as imap:
            # A call that ran before left a copy. Where it left none, as a process that was killed in between, the mail
            # is sent once more, with the same Message-ID, by which receivers know it.
            if (await imap.select(_quote(account.sent))).result == "OK":
                found = await imap.uid_search(f'HEADER Message-ID "{written["Message-ID"]}"', charset=None)
                if b" ".join(_rows(found.lines)).split():
                    return False
        await _send(account, written)
        try:
            async with _open_imap(account) as imap:
                await _append(imap, account.sent, written, r"(\Seen)")
        except DenizenError as error:  # it has left: whoever took this for a failure would send it again
            _log.warning("a mail was sent, but no copy of it was kept: %s", error.message, extra=error.fields)
        return True

    def _write(self, account: MailAccount, mail: OutgoingMail) -> EmailMessage:
        return write_mail(mail, account.address, now=self._clock.now())


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


def _quote(folder: str) -> str:
    return '"' + _QUOTED.sub("", folder) + '"'
