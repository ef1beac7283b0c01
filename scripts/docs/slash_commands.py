"""`commands.md`: the commands that people give to an agent, as they are offered, and who may give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from denizen.engine.commands.dispatch import COMMANDS, PERMISSIONS, PermissionLevel
from denizen.engine.commands.text import format_usage
from denizen.ports.channel import CommandOption, CommandSpec
from scripts.docs.table import escape, format_table

_HEAD = """# Commands

What people give to an agent on Discord: slash commands, or messages to the agent that begin with `/`. Commands of your
own are added in the [configuration](configuration.md#commands): see [custom commands](../how-to/custom-commands.md).

**Who.** *Everybody* includes those with whom the agent does not talk; slash commands only. *Talkers* are
those with whom it talks in that place: on its lists, in its channels. *Admins* are the `owners`, the `admins` and the
members of `admin_roles` of the account. Discord offers every command to everybody; the agent refuses.

**As text**, in a message that is for the agent: `@Ada /model set cheap`, or without the mention in a direct message.
Options are `name: value`. Those that are required may be written in order and without their names, and an only option
needs no name. Below, `<option>` is required and `[option]` is not. An unknown command is answered with a hint.

**Answers** are seen by who gave the command, except those of `/ask` and of custom commands with a prompt, which are for
the room. A typed command is answered in the room; `/reset` only with a reaction. In a
thread, a typed `/reset` that names nobody is for all agents.

**In chats** on the page, and with `POST /api/command`, commands act on the chat, and only their user sees the answer.
There is no `/ask`, since every message is for the agent, and no `/allow`; admins and owners are those of the page.
`/agent` changes the agent of the chat, `/model` and `/mode` the model of all chats of their user where none is picked.
`/memory forget` deletes all chats; `/memory opt-out` is refused, since chats are not archived."""

_WHO: Mapping[PermissionLevel, str] = MappingProxyType(
    {
        PermissionLevel.ANYBODY: "everybody",
        PermissionLevel.TALKER: "talkers",
        PermissionLevel.ADMIN: "admins",
        PermissionLevel.OWNER: "owners",
    }
)


def build_slash_commands() -> str:
    """The page."""
    specs = [command.spec for command in COMMANDS.values()]
    rows = [(f"[`/{each.name}`](#{each.name})", escape(each.description), _who(each)) for each in specs]
    parts = [_HEAD, format_table(("command", "does", "who"), rows)]
    return "\n\n".join([*parts, *(part for spec in specs for part in _describe(spec))])


def _describe(spec: CommandSpec) -> Iterator[str]:
    yield f"## /{spec.name}"
    yield f"{escape(spec.description)} For {_who(spec)}."
    if not spec.groups:
        yield f"`{format_usage(spec)}`"
        yield from _options(spec, spec)
    for group in spec.groups:
        level = PERMISSIONS.get(f"{spec.name} {group.name}", PERMISSIONS[spec.name])
        who = "" if level is PERMISSIONS[spec.name] else f" For {_WHO[level]}."
        yield f"`{format_usage(spec, group)}`: {escape(group.description)}{who}"
        yield from _options(spec, group)


def _options(spec: CommandSpec, group: CommandSpec) -> Iterator[str]:
    if group.options:
        rows = [(f"`{each.name}`", _values(each), _embedder(spec, each)) for each in group.options]
        yield format_table(("option", "values", "meaning"), rows)


def _values(option: CommandOption) -> str:
    return ", ".join(f"`{choice}`" for choice in option.choices) or ("text, completed" if option.suggests else "text")


def _embedder(spec: CommandSpec, option: CommandOption) -> str:
    own = PERMISSIONS.get(f"{spec.name}:{option.name}")
    note = f" For {_WHO[own]}." if own is not None and _WHO[own] not in option.description else ""
    return escape(option.description) + note


def _who(spec: CommandSpec) -> str:
    return _WHO[PERMISSIONS[spec.name]]
