"""A real server of CalDAV on loopback: Radicale, in a process of its own."""

from __future__ import annotations

import base64
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from tests.timing import wait_until

USER, PASSWORD = "ada@example.org", "pass word"


@dataclass(frozen=True, slots=True)
class CalDavServer:
    url: str

    def add_calendar(self, name: str, *, title: str = "", kind: str = "VEVENT") -> str:
        """Makes a calendar, or a list of tasks, of the user, and returns its path."""
        path = f"/{USER}/{name}/"
        body = (
            '<c:mkcalendar xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop>'
            f"<d:displayname>{title or name}</d:displayname><c:supported-calendar-component-set>"
            f'<c:comp name="{kind}"/></c:supported-calendar-component-set></d:prop></d:set></c:mkcalendar>'
        )
        self._send("MKCALENDAR", path, body)
        return path

    def put(self, path: str, text: str) -> None:
        """Puts a resource, given in lines, at this path."""
        self._send("PUT", path, text.replace("\n", "\r\n"), "text/calendar; charset=utf-8")

    def read(self, path: str) -> str:
        return self._send("GET", path)

    def _send(self, method: str, path: str, body: str = "", kind: str = "application/xml") -> str:
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": kind}
        request = Request(f"{self.url}{path}", body.encode() or None, headers, method=method)
        with urlopen(request) as answer:
            return answer.read().decode()


def make_event(uid: str, *lines: str) -> str:
    """Returns a resource with one event, or with several where a line is `--`."""
    text = "\n".join(lines).replace("\n--\n", f"\nEND:VEVENT\nBEGIN:VEVENT\nUID:{uid}\nDTSTAMP:20261101T000000Z\n")
    return (
        f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//T//T//EN\nBEGIN:VEVENT\nUID:{uid}\nDTSTAMP:20261101T000000Z\n{text}\n"
        "END:VEVENT\nEND:VCALENDAR\n"
    )


@contextmanager
def open_caldav_server(folder: Path) -> Generator[CalDavServer]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    users = folder / "users"
    users.write_text(f"{USER}:{PASSWORD}\n", encoding="utf-8")
    options = {
        "server-hosts": f"127.0.0.1:{port}",
        "auth-type": "htpasswd",
        "auth-htpasswd-filename": str(users),
        "auth-htpasswd-encryption": "plain",
        "auth-delay": "0",
        "storage-filesystem-folder": str(folder / "collections"),
    }
    command = [
        sys.executable,
        "-m",
        "radicale",
        *(part for name, value in options.items() for part in (f"--{name}", value)),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(port))
        yield CalDavServer(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
