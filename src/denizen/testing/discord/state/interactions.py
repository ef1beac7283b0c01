"""Registered commands, and interactions: one use of a command, component, autocompletion or modal, and its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any

import anyio

from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.clock import ChangeSignal
from denizen.testing.discord.state.messages import SimMessage
from denizen.testing.discord.state.people import SimApplication, SimUser


@dataclass(slots=True)
class SimCommand:
    """A slash command (kind 1), or a user (2) or message (3) command. `fields` is its body as registered."""

    id: int
    application_id: int
    guild_id: int | None
    version: int
    fields: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.fields["name"])

    @property
    def kind(self) -> int:
        return int(self.fields.get("type") or 1)


@dataclass(frozen=True, slots=True)
class SimCommandWrite:
    """One write: `create`, `edit`, `delete` or `overwrite`, global or for one guild."""

    application_id: int
    guild_id: int | None
    how: str
    names: tuple[str, ...]


class InteractionKind(IntEnum):
    COMMAND = 2
    COMPONENT = 3
    AUTOCOMPLETE = 4
    MODAL = 5


class CallbackKind(IntEnum):
    """The kind of an application's first answer."""

    PONG = 1
    MESSAGE = 4
    DEFERRED_MESSAGE = 5
    DEFERRED_UPDATE = 6
    UPDATE = 7
    CHOICES = 8
    MODAL = 9


@dataclass(slots=True)
class SimResponse:
    """An application's answers to an interaction. `kind` is that of the first; `messages` has the original first."""

    kind: CallbackKind | None = None
    original: SimMessage | None = None
    messages: list[SimMessage] = field(default_factory=list[SimMessage])
    choices: list[dict[str, Any]] | None = None
    modal: dict[str, Any] | None = None


@dataclass(slots=True, eq=False)
class SimInteraction:
    """An act of a person, and the response of the application. `message` is the one with the used component."""

    id: int
    kind: InteractionKind
    token: str
    application: SimApplication
    user: SimUser
    channel: SimChannel
    data: dict[str, Any]
    created_at: datetime
    message: SimMessage | None = None
    source: SimInteraction | None = None
    """The interaction that opened a modal; None for other kinds."""
    response: SimResponse = field(default_factory=SimResponse)
    pulse: ChangeSignal = field(default_factory=ChangeSignal)
    """Beats with every answer."""

    @property
    def acknowledged(self) -> bool:
        return self.response.kind is not None

    @property
    def followups(self) -> list[SimMessage]:
        """The answers after the original one."""
        return [message for message in self.response.messages if message is not self.response.original]

    @property
    def finished(self) -> bool:
        """Whether it is acknowledged and no deferred answer is pending."""
        return self.acknowledged and not (self.response.original and self.response.original.loading)

    @property
    def text(self) -> str | None:
        """The text of the original answer; None while there is none."""
        return (
            None if self.response.original is None or self.response.original.loading else self.response.original.content
        )

    @property
    def custom_id(self) -> str | None:
        return self.data.get("custom_id")

    async def until_acknowledged(self, timeout_s: float = 30) -> None:
        """Waits for the acknowledgement. Raises TimeoutError."""
        with anyio.fail_after(timeout_s):
            await self.pulse.until(lambda: self.acknowledged)

    async def until_answered(self, timeout_s: float = 30) -> SimMessage:
        """Returns the original answer, once it has its text. Raises TimeoutError."""
        with anyio.fail_after(timeout_s):
            await self.pulse.until(lambda: self.response.original is not None and not self.response.original.loading)
        if self.response.original is None:
            raise TimeoutError("the answer was deleted")
        return self.response.original

    async def until_followups(self, count: int = 1, timeout_s: float = 30) -> list[SimMessage]:
        """Returns the first `count` follow-ups. Raises TimeoutError."""
        with anyio.fail_after(timeout_s):
            await self.pulse.until(lambda: len(self.followups) >= count)
        return self.followups[:count]


@dataclass(slots=True)
class SimInteractions:
    """The commands of all applications, every write to them, and the uses of commands and components by token."""

    commands: dict[int, SimCommand] = field(default_factory=dict[int, SimCommand])
    command_writes: list[SimCommandWrite] = field(default_factory=list[SimCommandWrite])
    by_token: dict[str, SimInteraction] = field(default_factory=dict[str, SimInteraction])
