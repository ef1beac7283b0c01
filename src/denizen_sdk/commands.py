"""Commands: text that begins with `/`, such as `/new`, `/model set cheap`, or one that the operator configured."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import asdict
from typing import Any

from denizen_sdk.calls import ClientCalls, idempotency_headers
from denizen_sdk.records import record
from denizen_sdk.turns import ChatEvent, UnknownEvent, decode_event


@record
class CommandOptionInfo:
    """An option of a command. With `choices` only these are allowed."""

    name: str
    description: str
    required: bool = False
    choices: tuple[str, ...] = ()


@record
class SubcommandInfo:
    """A subcommand. `usage` is how it is written."""

    name: str
    description: str
    usage: str
    options: tuple[CommandOptionInfo, ...] = ()


@record(kw_only=True)
class CommandInfo:
    """A command that the caller may give. `allowed` says who may: everybody, admins or owners. A command has
    subcommands or options of its own. `is_configured`: the operator wrote it.
    """

    name: str
    description: str
    usage: str
    allowed: str
    is_configured: bool = False
    options: tuple[CommandOptionInfo, ...] = ()
    subcommands: tuple[SubcommandInfo, ...] = ()


@record
class CommandRequest:
    """A command. `chat` is the chat that it is about; without one it is about the caller's session of that name, which
    is `default` if it has none. An empty `agent` is the one of the chat, or else the default one.
    """

    input: str
    chat: str = ""
    session: str = ""
    agent: str = ""
    wait_for_approval: bool = True


class CommandCalls(ClientCalls):
    """The calls of `/api/commands` and `/api/command`. All raise ApiError and NetworkError."""

    async def list_commands(self, *, agent: str = "") -> list[CommandInfo]:
        """Returns the commands that the caller may give."""
        return await self._list(CommandInfo, "/api/commands", agent=agent)

    async def run_command(
        self, request: CommandRequest | str, *, idempotency_key: str = ""
    ) -> AsyncGenerator[ChatEvent | UnknownEvent]:
        """Gives a command and yields what happens: `ShellOutputEvent` if it has a program, then the events of the turn
        that it starts, or `CommandFinishedEvent`.
        """
        body = CommandRequest(request) if isinstance(request, str) else request
        async with self._connection.stream(
            "POST", "/api/command", body=asdict(body), headers=idempotency_headers(idempotency_key)
        ) as source:
            async for sent in source:
                row: Any = sent.json()
                yield decode_event(row)
