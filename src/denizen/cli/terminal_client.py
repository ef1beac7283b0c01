"""The running server of a home folder, reached over its unix socket.

Plain and blocking: `denizen ask` is done before an event loop would be imported. `denizen chat` waits in threads.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any

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
        with closing(_UnixConnection(self._path)) as connection:
            connection.connect()
            try:
                return json.loads(_send(connection, f"/calls/{name}", values).read())
            except (OSError, HTTPException, ValueError) as error:
                raise Unavailable(
                    "Denizen runs on this home folder, but does not answer.",
                    code="server_silent",
                    why=str(error),
                    fix="Look at its log, or stop it.",
                ) from error

    def stream(self, message: TerminalMessage) -> TurnStream:
        """Sends a message and returns what happens in its turn."""
        return TurnStream(_UnixConnection(self._path), message)

    def cancel(self, message: TerminalMessage) -> None:
        """Stops the turn of a message."""
        self.request("cancel", **asdict(message))


class TurnStream:
    """The events of a turn that runs in the server, up to its end."""

    def __init__(self, connection: _UnixConnection, message: TerminalMessage) -> None:
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
                response = _send(connection, "/chat", asdict(message))
                turn = response.headers.get(TURN_HEADER, "")
                for line in response:
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
            except (OSError, HTTPException, ValueError):
                pass
        raise _lost(turn)


class _UnixConnection(HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=SILENCE_S)
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def connect(self) -> None:
        """Raises Unavailable."""
        self.sock = self._socket
        self.sock.settimeout(SILENCE_S)
        try:
            self.sock.connect(str(self._path))
        except OSError as error:  # no socket, nobody behind it, or a path that is too long for one
            raise Unavailable(
                "The server of this home folder has ended.",
                code=_GONE,
                fix="Start `denizen run` in another terminal and say it again, or start this command again: it does "
                "without a server.",
            ) from error

    def abort(self) -> None:
        """Ends the connection for a thread that waits for it."""
        with suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_RDWR)


def _send(connection: HTTPConnection, path: str, body: Mapping[str, object]) -> HTTPResponse:
    """Returns the answer. Raises the error that it tells, OSError and HTTPException."""
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise read_problem(from_json(ProblemDetails, json.loads(response.read())["error"]))
    return response


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
