"""`/help`: what this person may do here, a line each; or one command in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from denizen.domain.errors import NotFound
from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import matching, nearest, say, usage_of
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec


async def _help(given: Given) -> CommandReply:
    name = given.option("command").lstrip("/").lower()
    if name:
        return say(*_describe_command(_find_offered(given, name)))
    lines = [f"- `/{spec.name}` {spec.description}" for spec in given.offered]
    return say("What you can do here:", *lines, "`/help <command>` tells more about one.")


def _find_offered(given: Given, name: str) -> CommandSpec:
    specs = {spec.name: spec for spec in given.offered}
    if name not in specs:
        near = nearest(name, specs)
        fix = f"Did you mean /{near}?" if near else "/help lists all of them."
        raise NotFound(f"There is no command '{name}' for you here.", code="command_unknown", fix=fix)
    return specs[name]


def _describe_command(spec: CommandSpec) -> Iterator[str]:
    yield f"`/{spec.name}` {spec.description}"
    for group in spec.groups:
        yield f"- `{usage_of(spec, group)}` {group.description}"
        yield from _option_lines(group, indent="  ")
    if not spec.groups:
        yield f"- `{usage_of(spec)}`"
        yield from _option_lines(spec, indent="  ")


def _option_lines(spec: CommandSpec, *, indent: str) -> Iterator[str]:
    for option in spec.options:
        choices = f" One of: {', '.join(option.choices)}." if option.choices else ""
        yield f"{indent}- `{option.name}` {option.description}{choices}"


async def _suggest_command(given: Given, typed: str) -> Sequence[str]:
    return matching(typed, [spec.name for spec in given.offered])


HELP = Command(
    CommandSpec(
        "help",
        "See what you can do here.",
        (CommandOption("command", "Tell more about this one.", suggests=True),),
    ),
    _help,
    {"command": _suggest_command},
)
