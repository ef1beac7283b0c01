"""The definition of a command, and the context of its handler: the call, its caller, and the engine's services.

Whoever listens to an account makes these. The protocols say what commands need from the rest of the program.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field, replace
from datetime import datetime
from typing import Protocol

from denizen.domain.agent import Agent
from denizen.domain.attention import AccountPolicy
from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import AgentName, ConversationId
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal, RoleName
from denizen.domain.record import record
from denizen.engine.agents.catalog import AgentCatalog
from denizen.engine.configuration.choices import put_agent
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.loop.services import EngineServices
from denizen.engine.schedules.own_schedules import OwnSchedules
from denizen.ports.channel import CommandCall, CommandReply, CommandSpec, MentionNames
from denizen.ports.store import Store

_USER_ID = re.compile(r"(?:<@!?)?([0-9]+)>?")
_ROLE_ID = re.compile(r"(?:<@&)?([0-9]+)>?")


@record(kw_only=True)
class CallerContext:
    """Who gives a command, and at which account.

    `account` is the agent whose login received the command; another agent may answer in its place (`/agent`). The id
    of `principal` ends in the caller's id on the platform. `find_session_place` returns where an agent's session is for
    this room and principal. `find_names` is the channel's. `answering` is the agent of the conversation where that is
    known otherwise than by `/agent`.
    """

    account: AgentName
    account_policy: AccountPolicy
    principal: Principal
    find_session_place: Callable[[Agent], Place]
    find_names: Callable[[Place, str], Awaitable[MentionNames]]
    answering: AgentName | None = None

    @property
    def is_admin(self) -> bool:
        return bool(self.principal.roles & {RoleName.ADMIN, RoleName.OWNER})

    @property
    def is_owner(self) -> bool:
        return RoleName.OWNER in self.principal.roles


class TurnOpener(Protocol):
    """Opens a turn for a command; its answer is delivered with the command's ticket.

    Without `agent`, the agent of the conversation answers. With the start of a `workflow` the turn is a run of it.
    Raises what keeps the turn from being opened (LimitExceeded, NotFound).
    """

    async def __call__(
        self,
        call: CommandCall,
        text: str,
        *,
        agent: str = "",
        new_session: bool = False,
        workflow: JsonObject | None = None,
    ) -> object: ...


class SessionLock(Protocol):
    """Locks the session of an agent. It waits for the turns that began before; no turn runs there until the block
    ends.
    """

    def __call__(self, agent: AgentName, conversation_id: ConversationId, /) -> AbstractAsyncContextManager[object]: ...


@record
class UserDataSummary:
    """How much is stored about a user: posts in the archive, and their messages in sessions."""

    posts: int
    messages: int
    is_opted_out: bool


class UserDataAccess(Protocol):
    """Everything that stores the words of a platform's user, and their deletion. Settings are not part of it."""

    async def describe(self, platform: str, user_id: str) -> UserDataSummary: ...

    async def forget(self, platform: str, user_id: str) -> int:
        """Returns how many posts were deleted."""
        ...

    async def opt_out(self, platform: str, user_id: str) -> None:
        """Deletes the user's words, and stores no more."""
        ...

    async def opt_in(self, platform: str, user_id: str) -> None: ...


class AgentChooser(Protocol):
    """Lets an agent answer in the conversation of a command from now on. Raises NotAllowed where none can be chosen."""

    async def __call__(self, context: CommandContext, agent: AgentName, /) -> None: ...


async def keep_agent_choice(context: CommandContext, agent: AgentName) -> None:
    """Keeps who answers what is said to an account in the conversation."""
    async with context.store.work() as work:
        await put_agent(work, context.caller.account, context.conversation_id, agent, now=context.now())


@record(kw_only=True)
class CommandCatalogs:
    """The parts of the configuration that commands show and change. `schedules` is None where no server runs them."""

    agents: AgentCatalog
    schedules: OwnSchedules | None = None


@record(kw_only=True)
class CommandDeps:
    """The parts of the engine that commands act on."""

    runtime: Runtime
    services: EngineServices
    open_turn: TurnOpener
    lock_session: SessionLock
    user_data: UserDataAccess
    catalogs: CommandCatalogs
    choose_agent: AgentChooser = keep_agent_choice


@record(kw_only=True)
class CommandContext:
    """A command as its handler gets it: the caller may give it, and its options are those of its spec.

    `agent` answers in this conversation now. `offered` are the commands that the caller may give here.
    """

    command: CommandCall
    caller: CallerContext
    deps: CommandDeps
    agent: Agent
    offered: Sequence[CommandSpec] = field(default_factory=tuple)

    def option(self, name: str) -> str:
        """Returns the value of an option; empty when it was not given."""
        return self.command.options.get(name, "")

    @property
    def services(self) -> EngineServices:
        return self.deps.services

    @property
    def store(self) -> Store:
        return self.deps.services.store

    @property
    def generation(self) -> Generation:
        return self.deps.runtime.current

    @property
    def conversation_id(self) -> ConversationId:
        """The conversation of the room."""
        return self.command.room.place.conversation_id

    @property
    def session_place(self) -> Place:
        return self.caller.find_session_place(self.agent)

    @property
    def message_limit(self) -> int:
        """How many characters a reply may have."""
        return self.caller.account_policy.style.message_limit

    def now(self) -> datetime:
        return self.deps.services.clock.now()

    def user_key(self, user_id: str) -> str:
        """Returns the settings key of another user of the platform."""
        prefix = self.caller.principal.id.removesuffix(self.command.author_id)
        return replace(self.caller.principal, id=f"{prefix}{user_id}").key

    async def find_user(self, text: str) -> str:
        """Returns the id of a user, written as an id, a mention or `@Name`.

        Raises NotFound for a name that nobody here has, InvalidInput for a role.
        """
        if match := _USER_ID.fullmatch(text):
            return match.group(1)
        names = await self.caller.find_names(self.command.room.place, _with_at(text))
        if found := _find_by_name(names.users, text):
            return found
        if text.startswith("<@&") or _find_by_name(names.roles, text):
            raise InvalidInput(f"{text} is a role.", code="command_role", fix=f"Write role: {text}.")
        raise _unknown_name("user", text)

    async def find_role(self, text: str) -> str:
        """Returns the id of a role. Raises NotFound for a name that no role here has."""
        if match := _ROLE_ID.fullmatch(text):
            return match.group(1)
        names = await self.caller.find_names(self.command.room.place, _with_at(text))
        if found := _find_by_name(names.roles, text):
            return found
        raise _unknown_name("role", text)


CommandHandler = Callable[[CommandContext], Awaitable[CommandReply]]
OptionSuggester = Callable[[CommandContext, str], Awaitable[Sequence[str]]]
"""Returns completions of what was typed for an option."""


@record
class CommandDefinition:
    """One command: how it is offered, what it does, and what it suggests for its options while the user types."""

    spec: CommandSpec
    run: CommandHandler
    suggests: Mapping[str, OptionSuggester] = field(default_factory=dict[str, OptionSuggester])


def _with_at(text: str) -> str:
    return f"@{text.removeprefix('@')}"


def _find_by_name(names: Mapping[str, str], text: str) -> str:
    """Returns the id of that name in any case; the exact spelling comes first."""
    wanted = text.removeprefix("@").strip()
    folded = {name.casefold(): found for name, found in names.items()}
    return names.get(wanted) or folded.get(wanted.casefold(), "")


def _unknown_name(noun: str, text: str) -> NotFound:
    return NotFound(f"There is no {noun} '{text}' here.", code=f"command_{noun}", fix="Write @Name, or the id.")
