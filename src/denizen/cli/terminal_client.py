"""The running server of a home folder, reached over its unix socket.

Plain and blocking: `denizen ask` is done before an event loop would be imported. `denizen chat` waits in threads.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from denizen import __version__
from denizen.app.terminal_messages import CLOSED, TerminalMessage, list_sockets
from denizen.cli.terminal import echo
from denizen.domain.errors import Unavailable
from denizen.web.http.problems import read_problem
from denizen_sdk.errors import ProblemDetails
from denizen_sdk.records import from_json
from denizen_sdk.turns import TURN_HEADER, ChatEvent, TurnFailedEvent, TurnFinishedEvent, UnknownEvent, decode_event

SILENCE_S = 60.0
"""A server that says nothing for so long is given up. While a turn runs it gives a sign of life each 15 s."""

_GONE = "server_gone"


def find_server(home: Path) -> TerminalClient | None:
    """Returns the server that runs on the home folder; None if there is none, or one of another version, which is told.

    Raises NotAllowed when its terminal is switched off, and Unavailable when it does not answer.
    """
    for client in map(TerminalClient, list_sockets(home)):
        try:
            version = client.request("greet")
        except Unavailable as error:
            if error.code == _GONE:
                continue
            raise
        if version == __version__:
            return client
        echo(f"[Denizen {version} runs on this home, but this is {__version__}: going on without it.]", err=True)
    return None


class TerminalClient:
    """Calls of the service behind the socket (`denizen.app.terminal`). Its errors are raised as they are there, and
    Unavailable when the server cannot be reached.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def request(self, name: str, /, **values: object) -> Any:  # noqa: ANN401 - any JSON value
        """Returns what the service's method returned."""
        with closing(_Connection(self._path)) as connection:
            connection.connect()
            try:
                return json.loads(connection.send(f"/calls/{name}", values)[1].read())
            except (OSError, ValueError) as error:
                raise Unavailable(
                    "Denizen runs on this home folder, but does not answer.",
                    code="server_silent",
                    why=str(error),
                    fix="Look at its log, or stop it.",
                ) from error

    def stream(self, message: TerminalMessage) -> TurnStream:
        """Sends a message and returns what happens in its turn."""
        return TurnStream(_Connection(self._path), message)

    def cancel(self, message: TerminalMessage) -> None:
        """Stops the turn of a message."""
        self.request("cancel", **asdict(message))


class TurnStream:
    """The events of a turn that runs in the server, up to its end."""

    def __init__(self, connection: _Connection, message: TerminalMessage) -> None:
        self._connection = connection
        self._events = self._read(message)

    def __iter__(self) -> Iterator[ChatEvent]:
        return self._events

    def close(self) -> None:
        """Ends the connection, also for a thread that waits for an event. The turn goes on."""
        self._connection.abort()

    def _read(self, message: TerminalMessage) -> Generator[ChatEvent]:
        turn = ""
        with closing(self._connection) as connection:
            connection.connect()
            try:
                headers, lines = connection.send("/chat", asdict(message))
                turn = headers.get(TURN_HEADER.lower(), "")
                for line in lines:
                    if not line.startswith(b"data: "):
                        continue
                    event = decode_event(json.loads(line.removeprefix(b"data: ")))
                    if isinstance(event, UnknownEvent):
                        continue
                    if isinstance(event, TurnFailedEvent) and event.error.code == CLOSED:
                        break
                    yield event
                    if isinstance(event, TurnFinishedEvent | TurnFailedEvent):
                        return
            except (OSError, ValueError):
                pass
        raise _lost(turn)


class _Connection:
    """A connection for one request, with HTTP 1.0: the answer ends where the connection does. Python's own client would
    take as long to import as everything else that a question needs.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(SILENCE_S)
        self._answer = self._socket.makefile("rb")

    def connect(self) -> None:
        """Raises Unavailable."""
        try:
            self._socket.connect(str(self._path))
        except OSError as error:  # no socket, nobody behind it, or a path that is too long for one
            raise Unavailable(
                "The server of this home folder has ended.",
                code=_GONE,
                fix="Start `denizen run` in another terminal and say it again, or start this command again: it does "
                "without a server.",
            ) from error

    def send(self, path: str, body: Mapping[str, object]) -> tuple[Mapping[str, str], BinaryIO]:
        """Returns the headers of the answer, with small letters, and its body. Raises the error that the answer tells,
        OSError, and ValueError for what is no answer.
        """
        sent = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
        self._socket.sendall(head.encode() + sent)
        _, status, *_ = self._answer.readline().split()
        headers: dict[str, str] = {}
        while line := self._answer.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        if status != b"200":
            raise read_problem(from_json(ProblemDetails, json.loads(self._answer.read())["error"]))
        return headers, self._answer

    def abort(self) -> None:
        """Ends the connection for a thread that waits for it."""
        with suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._answer.close()
        self._socket.close()


def _lost(turn: str) -> Unavailable:
    if not turn:
        return Unavailable(
            "Denizen went away before it had taken the question.",
            code=_GONE,
            fix="Ask again. `denizen trace --last` shows the newest question that was taken.",
        )
    return Unavailable(
        "Denizen went away before the answer was complete.",
        code=_GONE,
        why="It was stopped, or it crashed. The turn goes on when Denizen runs again.",
        fix=f"Start `denizen run`. Then `denizen trace {turn}` shows the answer.",
    )
