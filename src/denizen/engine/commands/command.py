"""What commands work with: the scene (who, where, at which account), the services, and both together for a handler.

Made by whoever listens to an account; the protocols here say what the commands need from the rest of the program.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol

from denizen.domain.agent import Agent
from denizen.domain.attention import AccountPolicy
from denizen.domain.conversation import Place
from denizen.domain.custom_command import CustomCommand
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import AgentName, ConversationId
from denizen.domain.principal import Principal, RoleName
from denizen.engine.runtime import Generation, Runtime
from denizen.engine.services import Services
from denizen.ports.channel import CommandCall, CommandReply, CommandSpec, MentionNames
from denizen.ports.toolset import Toolset


@dataclass(frozen=True, slots=True)
class CallerContext:
    """`account` is the agent whose login was spoken to; another may answer in its place (`/agent`).

    `principal` has its roles as `roles_of` gives them, and an id that ends in the author's id on the platform.
    `session_of` says where an agent's session is for this room and principal; `find_names` is the channel's.
    """

    account: AgentName
    account_policy: AccountPolicy
    principal: Principal
    session_of: Callable[[Agent], Place]
    find_names: Callable[[Place, str], Awaitable[MentionNames]]

    @property
    def is_admin(self) -> bool:
        return bool(self.principal.roles & {RoleName.ADMIN, RoleName.OWNER})

    @property
    def is_owner(self) -> bool:
        return RoleName.OWNER in self.principal.roles


class TurnOpener(Protocol):
    """Opens a turn for a command, whose answer is delivered with its ticket. Without `agent`, whoever answers there.

    Raises what keeps the turn from being opened (Exhausted, NotFound).
    """

    async def __call__(self, call: CommandCall, text: str, *, agent: str = "", new_session: bool = False) -> object: ...


class SessionLock(Protocol):
    """Until the block ends no turn of that agent's session there runs; it begins when those before it have ended."""

    def __call__(self, agent: AgentName, conversation_id: ConversationId, /) -> AbstractAsyncContextManager[object]: ...


@dataclass(frozen=True, slots=True)
class UserDataSummary:
    """What is kept about somebody: posts in the archive, and messages of theirs in sessions."""

    posts: int
    messages: int
    is_opted_out: bool


@dataclass(frozen=True, slots=True)
class DeletedUserData:
    posts: int


class UserDataAccess(Protocol):
    """Everything that keeps a platform user's words, and its end. Settings are not part of it."""

    async def describe(self, platform: str, user_id: str) -> UserDataSummary: ...

    async def forget(self, platform: str, user_id: str) -> DeletedUserData: ...

    async def opt_out(self, platform: str, user_id: str) -> None:
        """Forgets them too."""
        ...

    async def opt_in(self, platform: str, user_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class CustomCommandSet:
    """The configured commands, and the toolset that has the programs of those with `shell`. It is none of the
    generation's toolsets, so that no model can ask for them.
    """

    commands: tuple[CustomCommand, ...] = ()
    toolset: Toolset | None = None


def no_custom_commands() -> CustomCommandSet:
    return CustomCommandSet()


@dataclass(frozen=True, slots=True)
class CommandDeps:
    """What commands act on; the same for every account. `customs` gives those of the current configuration."""

    runtime: Runtime
    services: Services
    open_turn: TurnOpener
    hold: SessionLock
    privacy: UserDataAccess
    customs: Callable[[], CustomCommandSet] = no_custom_commands


@dataclass(frozen=True, slots=True)
class CommandContext:
    """A command as its handler gets it: its giver may give it, and its options are those of its spec.

    `agent` is who answers in this conversation now. `offered` are the commands that this person may give here.
    """

    command: CommandCall
    at: CallerContext
    on: CommandDeps
    agent: Agent
    offered: Sequence[CommandSpec] = field(default_factory=tuple)

    def option(self, name: str) -> str:
        """Empty when it was not given."""
        return self.command.options.get(name, "")

    @property
    def generation(self) -> Generation:
        return self.on.runtime.current

    @property
    def here(self) -> ConversationId:
        """The conversation of the room."""
        return self.command.room.place.conversation_id

    @property
    def session_place(self) -> Place:
        return self.at.session_of(self.agent)

    def key_of(self, user_id: str) -> str:
        """The settings key of another user of the platform."""
        prefix = self.at.principal.id.removesuffix(self.command.author_id)
        return replace(self.at.principal, id=f"{prefix}{user_id}").key


CommandHandler = Callable[[CommandContext], Awaitable[CommandReply]]
OptionSuggester = Callable[[CommandContext, str], Awaitable[Sequence[str]]]
"""Completions of what was typed for an option."""


@dataclass(frozen=True, slots=True)
class CommandDefinition:
    """One command: how it is offered, what it does, what it suggests by option while its user types."""

    spec: CommandSpec
    run: CommandHandler
    suggests: Mapping[str, OptionSuggester] = field(default_factory=dict[str, OptionSuggester])


_USER_ID = re.compile(r"(?:<@!?)?([0-9]+)>?")
_ROLE_ID = re.compile(r"(?:<@&)?([0-9]+)>?")


async def find_user(given: CommandContext, text: str) -> str:
    """The id of a user. Raises NotFound for a name that nobody here has, InvalidInput for a role."""
    if match := _USER_ID.fullmatch(text):
        return match.group(1)
    names = await given.at.find_names(given.command.room.place, _with_at(text))
    if found := _find_by_name(names.users, text):
        return found
    if text.startswith("<@&") or _find_by_name(names.roles, text):
        raise InvalidInput(f"{text} is a role.", code="command_role", fix=f"Write role: {text}.")
    raise _unknown_name("user", text)


async def find_role(given: CommandContext, text: str) -> str:
    """The id of a role. Raises NotFound for a name that no role here has."""
    if match := _ROLE_ID.fullmatch(text):
        return match.group(1)
    names = await given.at.find_names(given.command.room.place, _with_at(text))
    if found := _find_by_name(names.roles, text):
        return found
    raise _unknown_name("role", text)


def _with_at(text: str) -> str:
    return f"@{text.removeprefix('@')}"


def _find_by_name(names: Mapping[str, str], text: str) -> str:
    """The one of that name, in any case; written exactly it goes first."""
    wanted = text.removeprefix("@").strip()
    folded = {name.casefold(): found for name, found in names.items()}
    return names.get(wanted) or folded.get(wanted.casefold(), "")


def _unknown_name(noun: str, text: str) -> NotFound:
    return NotFound(f"I know no {noun} '{text}' here.", code=f"command_{noun}", fix="Write @Name, or the id.")
