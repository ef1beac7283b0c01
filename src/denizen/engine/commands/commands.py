"""The way in: which commands there are, reading them from text, giving them, completing them.

Whoever listens to an account calls this for slash commands and for messages that begin with `/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from denizen.domain.errors import DenizenError, InvalidInput, NotFound
from denizen.domain.ids import AgentName
from denizen.engine.choices import agent_of
from denizen.engine.commands.custom import build_custom
from denizen.engine.commands.permissions import PERMISSIONS, Level, Standing, check_standing, level_of, load_standing
from denizen.engine.commands.scene import Command, CommandScene, CommandServices, Given
from denizen.engine.commands.table import COMMANDS
from denizen.engine.commands.text import ParsedCommand, parse_text
from denizen.engine.commands.words import MAX_SUGGESTIONS, cut, nearest, usage_of
from denizen.ports.channel import CommandCall, CommandOption, CommandReply, CommandSpec


class Commands:
    """The commands of every account of this process."""

    def __init__(self, services: CommandServices) -> None:
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

    async def run(self, call: CommandCall, at: CommandScene) -> CommandReply:
        """Gives the command. What cannot be done is answered in words; only faults are raised."""
        try:
            reply = await self._run(call, at)
        except DenizenError as error:
            reply = CommandReply(error.explain(), is_failure=True)
        return replace(reply, text=cut(reply.text, at.manners.message_limit))

    async def suggest(self, call: CommandCall, option: str, typed: str, at: CommandScene) -> Sequence[str]:
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

    async def _run(self, call: CommandCall, at: CommandScene) -> CommandReply:
        command = self._all().get(call.name)
        if command is None:
            raise self._unknown(call.name)
        standing, given = await self._look(call, at)
        check_standing(standing, *self._level(command, call))
        options = read_options(call, command.spec)
        return await command.run(replace(given, command=replace(call, options=options)))

    def _all(self) -> dict[str, Command]:
        """A configured command cannot take the place of a built-in one."""
        own = {custom.name: build_custom(custom) for custom in self._on.customs().commands}
        return {**COMMANDS, **{name: own[name] for name in sorted(own) if name not in COMMANDS}}

    async def _look(self, call: CommandCall, at: CommandScene) -> tuple[Standing, Given]:
        current = self._on.runtime.current
        async with self._on.services.store.work(write=False) as work:
            standing = await load_standing(work, call, at)
            here = call.room.place.conversation_id
            name = await agent_of(work, at.account, here, known=current.agents)
        offered = [command.spec for command in self._all().values() if standing.may(self._level_of_spec(command.spec))]
        return standing, Given(call, at, self._on, current.agent(name), offered)

    def _level(self, command: Command, call: CommandCall) -> tuple[Level, str]:
        if command.spec.name in PERMISSIONS:
            return level_of(call)
        return self._level_of_spec(command.spec), f"/{call.name}"

    def _level_of_spec(self, spec: CommandSpec) -> Level:
        return PERMISSIONS.get(spec.name, Level.ADMIN if spec.admin_only else Level.TALKER)

    def _unknown(self, name: str) -> NotFound:
        near = nearest(name, self._all())
        hint = f"Did you mean /{near}? " if near else ""
        return NotFound(f"I know no command /{name}.", code="command_unknown", fix=f"{hint}/help lists what I know.")


def read_options(call: CommandCall, spec: CommandSpec) -> dict[str, str]:
    """What was given for the options, stripped, choices as they are offered; blank ones left out. Raises InvalidInput
    with the way it is written.
    """
    group = next((group for group in spec.groups if group.name == call.group), None)
    if spec.groups and group is None:
        raise _unknown_group(call.group, spec)
    written = usage_of(spec, group)
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
    near = nearest(word, [group.name for group in spec.groups])
    ways = [usage_of(spec, group) for group in spec.groups if not near or group.name == near]
    said = f"/{spec.name} has no '{word}'." if word else f"/{spec.name} needs one more word."
    return InvalidInput(said, code="command_usage", fix=f"Write {_either(ways)}.")


def _join_ways(ways: Iterable[str]) -> str:
    return " or ".join(f"`{way}`" for way in ways)
