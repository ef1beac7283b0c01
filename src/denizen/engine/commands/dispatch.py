"""The entry point of commands: which there are, who may give them, running them and completing their options.

Whoever listens to an account calls `CommandDispatcher` for slash commands and for messages that begin with `/`. A new
built-in command is added to `COMMANDS` and to `PERMISSIONS`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from types import MappingProxyType

from denizen.domain.attention import AllowedPeople, Attention, AuthorFacts, MessageFacts, decide_attention
from denizen.domain.errors import DenizenError, NeedsAttention, NotAllowed, NotFound, Unavailable
from denizen.domain.ids import AgentName, fresh
from denizen.domain.record import record
from denizen.domain.words import truncate
from denizen.engine.commands.admin import ALLOW, OBSERVER
from denizen.engine.commands.agents import AGENTS
from denizen.engine.commands.command import CallerContext, CommandContext, CommandDefinition, CommandDeps
from denizen.engine.commands.custom import build_custom
from denizen.engine.commands.insight import USAGE, WHY
from denizen.engine.commands.models import AGENT, HANDOVER, MODE_COMMAND, MODEL_COMMAND
from denizen.engine.commands.personal_data import MEMORY, REMINDERS
from denizen.engine.commands.schedules import SCHEDULES
from denizen.engine.commands.session import ASK, COMPACT, CONTEXT, NEW, RESET
from denizen.engine.commands.store import MIGRATE
from denizen.engine.commands.tasks import TASKS
from denizen.engine.commands.text import (
    MAX_SUGGESTIONS,
    ParsedCommand,
    closest_match,
    format_usage,
    parse_text,
    private_reply,
    rank_suggestions,
    read_options,
)
from denizen.engine.commands.workflows import RUN
from denizen.engine.configuration.choices import find_agent_choice
from denizen.ports.channel import CommandCall, CommandOption, CommandReply, CommandSpec
from denizen.ports.inbox import AllowedKind
from denizen.ports.store import UnitOfWork

_log = logging.getLogger("denizen.command")

# --- who may give which command ---------------------------------------------------------------------------------------


class PermissionLevel(IntEnum):
    """The standing that a command needs. An owner is an admin too.

    ANYBODY includes people with whom the agent does not talk: what is stored about a person is theirs to see and to
    delete. TALKER is whoever the agent talks with in that room.
    """

    ANYBODY = 0
    TALKER = 1
    ADMIN = 2
    OWNER = 3


PERMISSIONS: Mapping[str, PermissionLevel] = MappingProxyType(
    {
        "ask": PermissionLevel.TALKER,
        "new": PermissionLevel.TALKER,
        "run": PermissionLevel.TALKER,
        "reset": PermissionLevel.TALKER,
        "agent": PermissionLevel.TALKER,  # `models.py` says to which agents
        "handover": PermissionLevel.TALKER,  # the same
        "agents": PermissionLevel.OWNER,
        "model": PermissionLevel.TALKER,
        "model:user": PermissionLevel.ADMIN,
        "mode": PermissionLevel.TALKER,
        "context": PermissionLevel.TALKER,
        "compact": PermissionLevel.TALKER,
        "why": PermissionLevel.TALKER,
        "allow": PermissionLevel.ADMIN,
        "observer": PermissionLevel.OWNER,
        "migrate": PermissionLevel.OWNER,
        "usage": PermissionLevel.ANYBODY,  # their own spending; `insight.py` shows the rest to admins
        "memory": PermissionLevel.ANYBODY,
        "reminders": PermissionLevel.ANYBODY,
        "tasks": PermissionLevel.TALKER,
        "schedules": PermissionLevel.ADMIN,  # as its routes
        **dict.fromkeys((f"schedules {group}" for group in ("add", "on", "off", "remove")), PermissionLevel.OWNER),
        "help": PermissionLevel.ANYBODY,
    }
)
"""The level of each built-in command, by its name; by `command group` and `command:option` where that needs more than
its command.
"""


@record
class CallerPermissions:
    """The permissions of somebody, at an account in a room."""

    attention: Attention
    is_admin: bool
    is_owner: bool

    def allows(self, level: PermissionLevel) -> bool:
        if level is PermissionLevel.ANYBODY:
            return True
        if not self.attention.answers or level is PermissionLevel.TALKER:
            return self.attention.answers
        return self.is_owner if level is PermissionLevel.OWNER else self.is_admin


async def load_caller_permissions(work: UnitOfWork, call: CommandCall, caller: CallerContext) -> CallerPermissions:
    """Applies the rules for messages: a command counts as a mention."""
    platform = call.room.platform
    facts = MessageFacts(
        room=call.room,
        author=AuthorFacts(id=call.author_id, roles=call.roles),
        mentions_me=True,
        allowed=AllowedPeople(
            await work.inbox.list_allowed(caller.account, platform, AllowedKind.USER),
            await work.inbox.list_allowed(caller.account, platform, AllowedKind.ROLE),
        ),
    )
    policy = caller.account_policy
    policy = replace(policy, triggers=replace(policy.triggers, mentions=True))
    return CallerPermissions(decide_attention(facts, policy), caller.is_admin, caller.is_owner)


def check_permission(permissions: CallerPermissions, level: PermissionLevel, what: str) -> None:
    """Raises NotAllowed with the reason. `what` is the command, as people write it."""
    if permissions.allows(level):
        return
    if permissions.attention.trigger is None:
        raise NotAllowed("I do not talk here.", code="command_place", fix="Ask me in another channel.")
    if permissions.attention.refusal is not None:
        raise NotAllowed(
            "I may not talk with you.",
            code="command_not_listed",
            why="I talk with certain people only, and you are not on the list.",
            fix="An admin can put you on it with /allow add.",
        )
    if level is PermissionLevel.OWNER:
        raise NotAllowed(
            f"{what} is for owners only.",
            code="command_owner_only",
            why="Owners are named in the configuration of this account.",
            fix="Ask one of them.",
        )
    raise NotAllowed(
        f"{what} is for admins only.",
        code="command_admin_only",
        why="Admins and owners are named in the configuration of this account.",
        fix="Ask one of them.",
    )


def required_level(call: CommandCall) -> tuple[PermissionLevel, str]:
    """Returns the level that a call of a built-in command needs, and how people write the part that needs it."""
    level, what = PERMISSIONS[call.name], f"/{call.name}"
    of_group = PERMISSIONS.get(f"{call.name} {call.group}", level)
    if of_group > level:
        level, what = of_group, f"/{call.name} {call.group}"
    for option in (name for name, value in call.options.items() if value.strip()):
        own = PERMISSIONS.get(f"{call.name}:{option}", level)
        if own > level:
            level, what = own, f"The option `{option}` of /{call.name}"
    return level, what


# --- `/help` and the list of commands ---------------------------------------------------------------------------------


async def _help(context: CommandContext) -> CommandReply:
    """Lists what the caller may do here, a line for each command; or describes one command in full."""
    name = context.option("command").lstrip("/").lower()
    if name:
        return private_reply(*_describe_command(_find_offered(context, name)))
    lines = [f"- `/{spec.name}` {spec.description}" for spec in context.offered]
    return private_reply("What you can do here:", *lines, "`/help <command>` tells more about a command.")


def _find_offered(context: CommandContext, name: str) -> CommandSpec:
    specs = {spec.name: spec for spec in context.offered}
    if name not in specs:
        near = closest_match(name, specs)
        fix = f"Did you mean /{near}?" if near else "/help lists all of them."
        raise NotFound(f"There is no command '{name}' for you here.", code="command_unknown", fix=fix)
    return specs[name]


def _describe_command(spec: CommandSpec) -> Iterator[str]:
    yield f"`/{spec.name}` {spec.description}"
    for group in spec.groups:
        yield f"- `{format_usage(spec, group)}` {group.description}"
        yield from _option_lines(group)
    if not spec.groups:
        yield f"- `{format_usage(spec)}`"
        yield from _option_lines(spec)


def _option_lines(spec: CommandSpec) -> Iterator[str]:
    for option in spec.options:
        choices = f" One of: {', '.join(option.choices)}." if option.choices else ""
        yield f"  - `{option.name}` {option.description}{choices}"


async def _suggest_command(context: CommandContext, typed: str) -> Sequence[str]:
    return rank_suggestions(typed, [spec.name for spec in context.offered])


HELP = CommandDefinition(
    CommandSpec(
        "help",
        "See what you can do here.",
        (CommandOption("command", "The command to describe in full.", suggests=True),),
    ),
    _help,
    {"command": _suggest_command},
)

_IN_ORDER = (
    ASK,
    NEW,
    RESET,
    AGENT,
    HANDOVER,
    AGENTS,
    MODEL_COMMAND,
    MODE_COMMAND,
    CONTEXT,
    COMPACT,
    WHY,
    USAGE,
    MEMORY,
    REMINDERS,
    TASKS,
    SCHEDULES,
    RUN,
    ALLOW,
    OBSERVER,
    MIGRATE,
    HELP,
)
COMMANDS: Mapping[str, CommandDefinition] = MappingProxyType({command.spec.name: command for command in _IN_ORDER})
"""The built-in commands by name, in the order in which they are offered."""


# --- running them -----------------------------------------------------------------------------------------------------


class CommandDispatcher:
    """Runs the commands of one account: the built-in and the configured ones. `left_out` names built-in commands that
    are not given here, each with the reason.
    """

    def __init__(self, deps: CommandDeps, left_out: Mapping[str, str] = MappingProxyType({})) -> None:
        self._deps = deps
        self._left_out = left_out

    def specs(self, account: AgentName) -> Sequence[CommandSpec]:
        """Returns what the platform should offer: the built-in commands, then the configured ones by name."""
        specs = [command.spec for command in self._all().values()]
        ask = f"Ask {account} something."
        return [replace(spec, description=ask) if spec.name == "ask" else spec for spec in specs]

    async def list_offered(
        self, call: CommandCall, caller: CallerContext
    ) -> Sequence[tuple[CommandSpec, PermissionLevel]]:
        """Returns the commands that the caller may give in the room of the call, each with the level that it needs."""
        _, context = await self._build_context(call, caller)
        return [(spec, self._level_for(spec)) for spec in context.offered]

    def parse_text(self, text: str) -> ParsedCommand | None:
        """Returns the command of a message that begins with `/`; None for a message that is no command.

        An unknown command is a command too: `run` answers it with a hint.
        """
        return parse_text(text, [command.spec for command in self._all().values()])

    async def run(self, call: CommandCall, caller: CallerContext) -> CommandReply:
        """Runs the command. Errors become a reply in words; only faults are raised."""
        try:
            if call.name in self._left_out:
                raise NotAllowed(
                    f"/{call.name} is not given here.", code="command_left_out", why=self._left_out[call.name]
                )
            command = self._all().get(call.name)
            if command is None:
                near = closest_match(call.name, self._all())
                hint = f"Did you mean /{near}? " if near else ""
                fix = f"{hint}/help lists what I know."
                raise NotFound(f"There is no command /{call.name}.", code="command_unknown", fix=fix)
            permissions, context = await self._build_context(call, caller)
            check_permission(permissions, *self._required_level(command, call))
            options = read_options(call, command.spec)
            reply = await command.run(replace(context, command=replace(call, options=options)))
        except (Unavailable, NeedsAttention) as error:
            # Whole rooms may read a reply, and the reason of such an error names paths and addresses of the operator.
            reference = fresh("err")
            extra = {"command": call.name, "reference": reference, **error.fields}
            _log.warning("a command failed: %s", error.message, extra=extra)
            reply = CommandReply(f"{error.message} Reference: {reference}.", is_failure=True)
        except DenizenError as error:
            reply = CommandReply(error.explain(), is_failure=True)
        # A reply that the platform refuses for its length would be no reply at all.
        return replace(reply, text=truncate(reply.text, caller.account_policy.style.message_limit))

    async def suggest(self, call: CommandCall, option: str, typed: str, caller: CallerContext) -> Sequence[str]:
        """Returns at most 25 completions, and none of a command that the caller may not give."""
        command = self._all().get(call.name)
        suggest = command.suggests.get(option) if command else None
        if command is None or suggest is None:
            return []
        permissions, context = await self._build_context(call, caller)
        level, _ = self._required_level(command, call)
        # Suggestions name models, memories and people, so they are for those who may give the command.
        if not permissions.allows(level):
            return []
        return list(await suggest(context, typed))[:MAX_SUGGESTIONS]

    def _all(self) -> dict[str, CommandDefinition]:
        # A configured command never replaces a built-in one: people must be able to rely on `/memory` and `/help`.
        own = {custom.name: build_custom(custom) for custom in self._deps.runtime.current.commands.commands}
        built_in = {name: command for name, command in COMMANDS.items() if name not in self._left_out}
        return {**built_in, **{name: own[name] for name in sorted(own) if name not in COMMANDS}}

    async def _build_context(
        self, call: CommandCall, caller: CallerContext
    ) -> tuple[CallerPermissions, CommandContext]:
        current = self._deps.runtime.current
        async with self._deps.services.store.work(write=False) as work:
            permissions = await load_caller_permissions(work, call, caller)
            conversation_id = call.room.place.conversation_id
            name = caller.answering or await find_agent_choice(
                work, caller.account, conversation_id, known=current.enabled_agents, now=self._deps.services.clock.now()
            )
        specs = [command.spec for command in self._all().values()]
        return permissions, CommandContext(
            command=call,
            caller=caller,
            deps=self._deps,
            agent=current.agent(name),
            offered=[spec for spec in specs if permissions.allows(self._level_for(spec))],
        )

    def _required_level(self, command: CommandDefinition, call: CommandCall) -> tuple[PermissionLevel, str]:
        if command.spec.name in PERMISSIONS:
            return required_level(call)
        return self._level_for(command.spec), f"/{call.name}"

    def _level_for(self, spec: CommandSpec) -> PermissionLevel:
        return PERMISSIONS.get(spec.name, PermissionLevel.ADMIN if spec.admin_only else PermissionLevel.TALKER)
