"""Real servers of mail on loopback: pymap for IMAP, in a process of its own, and aiosmtpd for SMTP."""

from __future__ import annotations

import imaplib
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller

from tests.timing import wait_until

USER, PASSWORD = "ada@example.org", "pass word"


class _Handler:
    """Takes mail for everybody but those of `refused.example`."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.on_taken: Callable[[], None] = lambda: None

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802
        del server, session, options
        if address.endswith("@refused.example"):
            return "550 nobody here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        del server, session
        self.taken.append(envelope.content)
        self.on_taken()
        return "250 OK"


@dataclass(slots=True)
class MailServers:
    """Both servers, and what they were given."""

    imap_port: int
    smtp_port: int
    handler: _Handler = field(repr=False)
    imap: subprocess.Popen[bytes] = field(repr=False)

    @property
    def sent(self) -> list[bytes]:
        return self.handler.taken

    def stop_imap(self) -> None:
        self.imap.kill()
        self.imap.wait()

    def deliver(self, mail: EmailMessage | bytes) -> None:
        """Puts a mail into the inbox."""
        with imaplib.IMAP4("127.0.0.1", self.imap_port) as imap:
            imap.login(USER, PASSWORD)
            assert imap.append("INBOX", "", "", bytes(mail))[0] == "OK"

    def read_folder(self, folder: str) -> list[bytes]:
        with imaplib.IMAP4("127.0.0.1", self.imap_port) as imap:
            imap.login(USER, PASSWORD)
            if imap.select(folder)[0] != "OK":
                return []
            found: list[bytes] = []
            for number in imap.search(None, "ALL")[1][0].split():
                rows: Any = imap.fetch(number.decode(), "(BODY.PEEK[])")[1]
                found.append(rows[0][1])
            return found


@contextmanager
def open_mail_servers() -> Generator[MailServers]:
    port, smtp_port = _find_free_port(), _find_free_port()
    handler = _Handler()
    controller = Controller(handler, hostname="127.0.0.1", port=smtp_port)
    program = Path(sys.executable).with_name("pymap")
    options = ["--demo-data", "--demo-user", USER, "--demo-password", PASSWORD]
    command = [
        program,
        "--no-service",
        "admin",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-tls",
        "dict",
        *options,
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(port))
        controller.start()
        yield MailServers(port, smtp_port, handler, process)
    finally:
        controller.stop(no_assert=True)
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
