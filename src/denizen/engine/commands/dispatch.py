"""Who may give which command. The one place that says it; `commands.py` checks it before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType

from denizen.domain.attention import Attention, MessageFacts, decide_attention
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound
from denizen.domain.ids import AgentName
from denizen.engine.choices import agent_of
from denizen.engine.commands.admin import ALLOW, OBSERVER
from denizen.engine.commands.command import CallerContext, CommandContext, CommandDefinition, CommandDeps
from denizen.engine.commands.custom import build_custom
from denizen.engine.commands.insight import USAGE, WHY
from denizen.engine.commands.models import AGENT, MODE_COMMAND, MODEL_COMMAND
from denizen.engine.commands.personal_data import MEMORY, REMINDERS
from denizen.engine.commands.session import ASK, COMPACT, CONTEXT, NEW, RESET
from denizen.engine.commands.text import (
    MAX_SUGGESTIONS,
    ParsedCommand,
    closest_match,
    format_usage,
    parse_text,
    private_reply,
    rank_suggestions,
    truncate,
)
from denizen.ports.channel import CommandCall, CommandOption, CommandReply, CommandSpec
from denizen.ports.reception import AllowedKind
from denizen.ports.store import Work


class PermissionLevel(IntEnum):
    """ANYBODY also when the agent does not talk with them: what is kept about a person is theirs to see and to end.
    TALKER is whoever the agent talks with there. An owner is an admin too.
    """

    ANYBODY = 0
    TALKER = 1
    ADMIN = 2
    OWNER = 3


PERMISSIONS: Mapping[str, PermissionLevel] = MappingProxyType(
    {
        "ask": PermissionLevel.TALKER,
        "new": PermissionLevel.TALKER,
        "reset": PermissionLevel.TALKER,
        "agent": PermissionLevel.TALKER,  # to which agents: `agent.py`
        "model": PermissionLevel.TALKER,
        "model:user": PermissionLevel.ADMIN,
        "mode": PermissionLevel.TALKER,
        "context": PermissionLevel.TALKER,
        "compact": PermissionLevel.TALKER,
        "why": PermissionLevel.TALKER,
        "allow": PermissionLevel.ADMIN,
        "observer": PermissionLevel.OWNER,
        "usage": PermissionLevel.ANYBODY,  # one's own; what else: `usage.py`
        "memory": PermissionLevel.ANYBODY,
        "reminders": PermissionLevel.ANYBODY,
        "help": PermissionLevel.ANYBODY,
    }
)
"""By command, and by `command:option` where an option needs more than its command. Configured ones say it."""


@dataclass(frozen=True, slots=True)
class CallerPermissions:
    """What somebody is, at an account in a room."""

    attention: Attention
    is_admin: bool
    is_owner: bool

    def may(self, level: PermissionLevel) -> bool:
        if level is PermissionLevel.ANYBODY:
            return True
        if not self.attention.answers or level is PermissionLevel.TALKER:
            return self.attention.answers
        return self.is_owner if level is PermissionLevel.OWNER else self.is_admin


async def load_caller_permissions(work: Work, call: CommandCall, at: CallerContext) -> CallerPermissions:
    """By the same rule as for messages (inventory V24, T34): a command is as good as a mention."""
    platform = call.room.platform
    sighting = MessageFacts(
        call.room,
        call.author_id,
        call.roles,
        is_bot=False,
        text="",
        mentions_me=True,
        mentioned_roles=frozenset(),
        replies_to_me=False,
        is_followed=False,
        exchanges=0,
        allowed_users=await work.reception.list_allowed(at.account, platform, AllowedKind.USER),
        allowed_roles=await work.reception.list_allowed(at.account, platform, AllowedKind.ROLE),
    )
    return CallerPermissions(
        decide_attention(sighting, replace(at.account_policy, mentions=True)), at.is_admin, at.is_owner
    )


def check_permission(standing: CallerPermissions, level: PermissionLevel, what: str) -> None:
    """Raises NotAllowed with the reason. `what` is the command, as people write it."""
    if standing.may(level):
        return
    if standing.attention.trigger is None:
        raise NotAllowed("I do not talk here.", code="command_place", fix="Ask me in another channel.")
    if standing.attention.refusal is not None:
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
    """Of a built-in command with the options that were given, and how people write what needs it."""
    level, what = PERMISSIONS[call.name], f"/{call.name}"
    for option in (name for name, value in call.options.items() if value.strip()):
        own = PERMISSIONS.get(f"{call.name}:{option}", level)
        if own > level:
            level, what = own, f"The option `{option}` of /{call.name}"
    return level, what


async def _help(given: CommandContext) -> CommandReply:
    name = given.option("command").lstrip("/").lower()
    if name:
        return private_reply(*_describe_command(_find_offered(given, name)))
    lines = [f"- `/{spec.name}` {spec.description}" for spec in given.offered]
    return private_reply("What you can do here:", *lines, "`/help <command>` tells more about one.")


def _find_offered(given: CommandContext, name: str) -> CommandSpec:
    specs = {spec.name: spec for spec in given.offered}
    if name not in specs:
        near = closest_match(name, specs)
        fix = f"Did you mean /{near}?" if near else "/help lists all of them."
        raise NotFound(f"There is no command '{name}' for you here.", code="command_unknown", fix=fix)
    return specs[name]


def _describe_command(spec: CommandSpec) -> Iterator[str]:
    yield f"`/{spec.name}` {spec.description}"
    for group in spec.groups:
        yield f"- `{format_usage(spec, group)}` {group.description}"
        yield from _option_lines(group, indent="  ")
    if not spec.groups:
        yield f"- `{format_usage(spec)}`"
        yield from _option_lines(spec, indent="  ")


def _option_lines(spec: CommandSpec, *, indent: str) -> Iterator[str]:
    for option in spec.options:
        choices = f" One of: {', '.join(option.choices)}." if option.choices else ""
        yield f"{indent}- `{option.name}` {option.description}{choices}"


async def _suggest_command(given: CommandContext, typed: str) -> Sequence[str]:
    return rank_suggestions(typed, [spec.name for spec in given.offered])


HELP = CommandDefinition(
    CommandSpec(
        "help",
        "See what you can do here.",
        (CommandOption("command", "Tell more about this one.", suggests=True),),
    ),
    _help,
    {"command": _suggest_command},
)


COMMANDS: Mapping[str, CommandDefinition] = MappingProxyType({
    command.spec.name: command
    for command in (
        ASK, NEW, RESET, AGENT, MODEL_COMMAND, MODE_COMMAND, CONTEXT, COMPACT, WHY, USAGE, MEMORY, REMINDERS, ALLOW,
        OBSERVER, HELP,
    )
})  # fmt: skip


class CommandDispatcher:
    """The commands of every account of this process."""

    def __init__(self, services: CommandDeps) -> None:
        self._on = services

    def specs(self, account: AgentName) -> Sequence[CommandSpec]:
        """What the platform should offer now for an account: the built-in ones, then the configured ones by name."""
        specs = [command.spec for command in self._all().values()]
        ask = f"Ask {account} something."
        return [replace(spec, description=ask) if spec.name == "ask" else spec for spec in specs]

    def parse_text(self, text: str) -> ParsedCommand | None:
        """Name, subcommand and options of a message that begins with `/`, None for what is no command. An unknown
        command is one too: `run` answers it with a hint.
        """
        return parse_text(text, [command.spec for command in self._all().values()])

    async def run(self, call: CommandCall, at: CallerContext) -> CommandReply:
        """Gives the command. What cannot be done is answered in words; only faults are raised."""
        try:
            reply = await self._run(call, at)
        except DenizenError as error:
            reply = CommandReply(error.explain(), is_failure=True)
        return replace(reply, text=truncate(reply.text, at.account_policy.message_limit))

    async def suggest(self, call: CommandCall, option: str, typed: str, at: CallerContext) -> Sequence[str]:
        """At most 25 completions, of what this person may give."""
        command = self._all().get(call.name)
        suggest = command.suggests.get(option) if command else None
        if command is None or suggest is None:
            return []
        standing, given = await self._look(call, at)
        level, _ = self._level(command, call)
        if not standing.may(level):
            return []
        return list(await suggest(given, typed))[:MAX_SUGGESTIONS]

    async def _run(self, call: CommandCall, at: CallerContext) -> CommandReply:
        command = self._all().get(call.name)
        if command is None:
            raise self._unknown(call.name)
        standing, given = await self._look(call, at)
        check_permission(standing, *self._level(command, call))
        options = read_options(call, command.spec)
        return await command.run(replace(given, command=replace(call, options=options)))

    def _all(self) -> dict[str, CommandDefinition]:
        """A configured command cannot take the place of a built-in one."""
        own = {custom.name: build_custom(custom) for custom in self._on.customs().commands}
        return {**COMMANDS, **{name: own[name] for name in sorted(own) if name not in COMMANDS}}

    async def _look(self, call: CommandCall, at: CallerContext) -> tuple[CallerPermissions, CommandContext]:
        current = self._on.runtime.current
        async with self._on.services.store.work(write=False) as work:
            standing = await load_caller_permissions(work, call, at)
            here = call.room.place.conversation_id
            name = await agent_of(work, at.account, here, known=current.agents)
        offered = [command.spec for command in self._all().values() if standing.may(self._level_of_spec(command.spec))]
        return standing, CommandContext(call, at, self._on, current.agent(name), offered)

    def _level(self, command: CommandDefinition, call: CommandCall) -> tuple[PermissionLevel, str]:
        if command.spec.name in PERMISSIONS:
            return required_level(call)
        return self._level_of_spec(command.spec), f"/{call.name}"

    def _level_of_spec(self, spec: CommandSpec) -> PermissionLevel:
        return PERMISSIONS.get(spec.name, PermissionLevel.ADMIN if spec.admin_only else PermissionLevel.TALKER)

    def _unknown(self, name: str) -> NotFound:
        near = closest_match(name, self._all())
        hint = f"Did you mean /{near}? " if near else ""
        return NotFound(f"I know no command /{name}.", code="command_unknown", fix=f"{hint}/help lists what I know.")


def read_options(call: CommandCall, spec: CommandSpec) -> dict[str, str]:
    """What was given for the options, stripped, choices as they are offered; blank ones left out. Raises InvalidInput
    with the way it is written.
    """
    group = next((group for group in spec.groups if group.name == call.group), None)
    if spec.groups and group is None:
        raise _unknown_group(call.group, spec)
    written = format_usage(spec, group)
    options = {option.name: option for option in (group or spec).options}
    for name in call.options:
        if name not in options:
            raise InvalidInput(f"There is no option `{name}`.", code="command_usage", fix=f"Write `{written}`.")
    given = {name: _read_choice(options[name], value.strip()) for name, value in call.options.items() if value.strip()}
    for option in options.values():
        if option.required and option.name not in given:
            about, fix = option.description, f"Write `{written}`."
            raise InvalidInput(f"`{option.name}` is missing.", code="command_usage", why=about, fix=fix)
    return given


def _read_choice(option: CommandOption, value: str) -> str:
    if not option.choices:
        return value
    choice = next((choice for choice in option.choices if choice.casefold() == value.casefold()), None)
    if choice is None:
        ways = ", ".join(option.choices)
        raise InvalidInput(f"`{option.name}` cannot be '{value}'.", code="command_usage", fix=f"Write one of: {ways}.")
    return choice


def _unknown_group(word: str, spec: CommandSpec) -> InvalidInput:
    near = closest_match(word, [group.name for group in spec.groups])
    ways = [format_usage(spec, group) for group in spec.groups if not near or group.name == near]
    said = f"/{spec.name} has no '{word}'." if word else f"/{spec.name} needs one more word."
    return InvalidInput(said, code="command_usage", fix=f"Write {_join_ways(ways)}.")


def _join_ways(ways: Iterable[str]) -> str:
    return " or ".join(f"`{way}`" for way in ways)
