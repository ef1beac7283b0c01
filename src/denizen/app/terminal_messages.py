"""Messages from a terminal to the server of its home folder. Imports next to nothing: `denizen ask` has to be quick."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from denizen.domain.record import record

SOCKET = "denizen.sock"
"""The name of the server's unix socket in the home folder."""
CLOSED = "durable_closed"
"""The code of the error that ends a stream when the server is told to stop. The turn itself goes on later."""


def find_fleet_socket(home: Path) -> Path:
    """Returns where a process of a fleet has its socket: machines that share the home folder have one each, since none
    can tell whether that of another is in use.
    """
    return home / f"denizen-{os.uname().nodename}.sock"


def list_sockets(home: Path) -> Sequence[Path]:
    """Returns where a server of this home folder may have its socket on this machine."""
    return home / SOCKET, find_fleet_socket(home)


@record(kw_only=True)
class TerminalMessage:
    """A message that was typed at a terminal, with `denizen ask` or `denizen chat` as its `command`. `key` is its own,
    by which it can be stopped. `can_prompt` tells whether somebody sits there who can be asked about a call;
    with `waits`, calls may wait for people elsewhere where nobody does.
    """

    key: str
    command: str
    session: str
    text: str
    agent: str = ""
    model: str = ""
    is_new: bool = False
    can_prompt: bool = False
    waits: bool = False


@record
class AnsweringAgent:
    """Who answers the next message of a session. `note` tells of a hand-over that is over."""

    agent: str
    note: str = ""


@record(kw_only=True)
class MoveReport:
    """The reply of `/migrate`, and whether the store is being moved."""

    text: str
    is_running: bool
