"""What people do with what applications offer: slash commands, commands of messages, buttons, selects, modals.

Each answers how the application took it up: `{"acknowledged", "modal"}`. What it says comes as messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from denizen.testing.discord.acts.embeds import find_component
from denizen.testing.discord.page.ask import Ask, SimRoute, read_file
from denizen.testing.discord.state.commands import Command
from denizen.testing.discord.state.interactions import Interaction
from denizen.testing.discord.state.refusals import bad_field, unknown

_COMMANDS = "/channels/{channel}/commands"
_USED_MESSAGE = "/channels/{channel}/messages/{message:[0-9]+}"
_USER, _CHANNEL, _ROLE, _ANYBODY, _FILE = 6, 7, 8, 9, 11
_SELECTS: Mapping[int, int] = {5: _USER, 6: _ROLE, 7: _ANYBODY, 8: _CHANNEL}
"""Types of selects, and the types of options that take the same."""


def list_commands(ask: Ask) -> object:
    """Slash commands, or with `kind=3` those for a message."""
    kind = int(ask.query["kind"]) if ask.query.get("kind") in ("1", "2", "3") else 1
    return [ask.eyes.see_command(each) for each in ask.world.list_commands(ask.person, ask.channel(), kind)]


async def run_command(ask: Ask) -> object:
    """`{"name", "options"?, "application_id"?}`. The name goes on with group and subcommand, as it is typed; users,
    channels and roles are given by id, files as `{"name", "data"}`.
    """
    name, options = _named(ask)
    command = _find_command(ask, name)
    application = ask.world.realm.applications[command.application_id]
    values = dict(_fill(ask, command, name.split()[1:], options))
    used = await ask.world.run_command(ask.person, ask.channel(), name, values, application=application)
    return _outcome(used)


async def autocomplete(ask: Ask) -> object:
    """`{"name", "options", "focused"}`: the choices while that option is typed."""
    name, options = _named(ask)
    focused = ask.form.text("focused", required=True) or ""
    ask.form.check()
    return await ask.world.autocomplete(ask.person, ask.channel(), name, options, focused)


async def run_on_message(ask: Ask) -> object:
    """`{"name"}`: a command from the message's menu."""
    name, _ = _named(ask)
    return _outcome(await ask.world.run_context_command(ask.person, ask.channel(), name, ask.message()))


async def press(ask: Ask) -> object:
    """`{"custom_id", "values"?}`: a button, or a select with what was chosen."""
    message, custom_id = ask.message(), ask.form.text("custom_id", required=True) or ""
    ask.form.check()
    component = find_component(message.components, custom_id)
    kind = _SELECTS.get(component["type"]) if component else None
    chosen: list[Any] = [_thing(ask, kind, each, "values") for each in ask.form.items("values")]
    return _outcome(await ask.world.press(ask.person, message, custom_id, chosen))


async def send_modal(ask: Ask) -> object:
    """`{"values"}` by custom id, for the modal with which the interaction was answered."""
    for interaction in ask.world.realm.interactions.values():
        if str(interaction.id) == ask.place["interaction"]:
            return _outcome(await ask.world.submit_modal(ask.person, interaction, _object(ask, "values")))
    raise unknown("interaction")


def _named(ask: Ask) -> tuple[str, dict[str, Any]]:
    name = (ask.form.text("name", required=True) or "").removeprefix("/").strip()
    ask.form.check()
    if not name:
        raise unknown("application command")
    return name, _object(ask, "options")


def _object(ask: Ask, name: str) -> dict[str, Any]:
    inner = ask.form.inner(name)
    ask.form.check()
    return dict(inner.fields) if inner else {}


def _find_command(ask: Ask, name: str) -> Command:
    wanted = ask.form.snowflake("application_id")
    for command in ask.world.list_commands(ask.person, ask.channel()):
        if command.name == name.split(maxsplit=1)[0] and wanted in (None, command.application_id):
            return command
    raise unknown("application command")


def _fill(ask: Ask, command: Command, path: Sequence[str], options: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The values as the world takes them: things instead of their ids."""
    definitions: list[dict[str, Any]] = command.fields.get("options") or []
    for part in path:
        groups = {each["name"]: each.get("options") for each in definitions}
        definitions = groups.get(part) or []
    kinds = {each["name"]: each["type"] for each in definitions}
    for name, value in options.items():
        yield name, _thing(ask, kinds.get(name), value, f"options.{name}")


def _thing(ask: Ask, kind: int | None, value: object, place: str) -> object:
    if kind == _FILE:
        return read_file(value, place)
    if kind not in (_USER, _CHANNEL, _ROLE, _ANYBODY):
        return value
    realm, number = ask.world.realm, int(value) if isinstance(value, str) and value.isdigit() else 0
    guild = realm.guild_of(ask.channel())
    roles = guild.roles if guild else {}
    known = {_USER: realm.users, _CHANNEL: realm.channels, _ROLE: roles, _ANYBODY: {**realm.users, **roles}}[kind]
    if number not in known:
        raise bad_field(place, "BASE_TYPE_CHOICES", "There is nobody and nothing of this id.")
    return known[number]


def _outcome(used: Interaction) -> object:
    modal = {"interaction_id": str(used.id), **used.modal} if used.modal else None
    return {"acknowledged": used.acknowledged, "modal": modal}


USE_ROUTES = (
    SimRoute("GET", _COMMANDS, list_commands),
    SimRoute("POST", _COMMANDS, run_command),
    SimRoute("POST", "/channels/{channel}/autocomplete", autocomplete),
    SimRoute("POST", f"{_USED_MESSAGE}/commands", run_on_message),
    SimRoute("POST", f"{_USED_MESSAGE}/press", press),
    SimRoute("POST", "/interactions/{interaction}/modal", send_modal),
)
