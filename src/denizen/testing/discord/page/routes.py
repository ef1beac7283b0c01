"""What people do on the page: write, react, open threads, and use the commands, buttons and forms of applications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from denizen.testing.discord.actions.embeds import find_component
from denizen.testing.discord.page.requests import PageRequest, PageRoute, find_person, read_file
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.errors import RefusedError, bad_field, forbidden, unknown
from denizen.testing.discord.state.interactions import SimCommand, SimInteraction
from denizen.testing.discord.state.messages import SimMessage
from denizen.testing.discord.world.world import MessageExtras

_CHANNEL = "/channels/{channel}"
_MESSAGES = f"{_CHANNEL}/messages"
_MESSAGE = f"{_MESSAGES}/{{message:[0-9]+}}"
_REACTION = f"{_MESSAGE}/reactions/{{emoji}}"
_PAGE = 50


def see_world(ask: PageRequest) -> object:
    return ask.eyes.see_world()


def add_person(ask: PageRequest) -> object:
    """`{"name"}`: adds a person, who joins every guild."""
    name = (ask.form.text("name", 32, required=True) or "").strip()
    ask.form.check()
    if not name or name.isdigit():
        raise bad_field("name", "BASE_TYPE_REQUIRED", "Give the new person a name.")
    try:
        find_person(ask.world, name)
    except RefusedError:
        person = ask.world.add_person(name)
    else:
        raise bad_field("name", "NAME_TAKEN", f"There is somebody called {name} already.")
    for guild in ask.world.guilds:
        guild.join(person)
    return {"id": str(person.id)}


def open_direct(ask: PageRequest) -> object:
    """`{"with"}`: opens the direct message with that person or bot."""
    return {"id": str(ask.world.open_dm(ask.person, ask.user("with")).id)}


def read_messages(ask: PageRequest) -> object:
    """Returns the newest messages, oldest first; `before` an id goes further back. Ephemeral answers are not kept."""
    channel, before = ask.channel(), ask.query.get("before", "")
    newest = channel.before(int(before), _PAGE + 1) if before.isdigit() else channel.newest(_PAGE + 1)
    return {"messages": ask.eyes.see_messages(newest[_PAGE - 1 :: -1]), "more": len(newest) > _PAGE}


def say(ask: PageRequest) -> object:
    """`{"text", "reply_to"?, "ping"?, "files"?}`."""
    channel, form = ask.channel(), ask.form
    text, reply = form.text("text") or "", form.snowflake("reply_to")
    extras = MessageExtras(ping=form.flag("ping", default=True), attachments=ask.files())
    form.check()
    if reply is not None:
        extras["reply_to"] = ask.world.store.get_message(channel, reply)
    return ask.eyes.see_message(ask.world.say(ask.person, channel, text, **extras))


def edit(ask: PageRequest) -> object:
    """`{"text"}`."""
    message = _own(ask)
    return ask.eyes.see_message(ask.world.edit(message, ask.form.text("text") or ""))


def _own(ask: PageRequest) -> SimMessage:
    message = ask.message()
    if message.author is not ask.person:
        raise forbidden(50005, "Cannot edit a message authored by another user")
    return message


def delete(ask: PageRequest) -> object:
    ask.world.delete(_public(ask), ask.person)
    return None


def _public(ask: PageRequest) -> SimMessage:
    message = ask.message()
    if message.ephemeral:
        raise unknown("Message")
    return message


def react(ask: PageRequest) -> object:
    ask.world.react(ask.person, _public(ask), ask.place["emoji"])
    return None


def unreact(ask: PageRequest) -> object:
    ask.world.unreact(ask.person, _public(ask), ask.place["emoji"])
    return None


def vote(ask: PageRequest) -> object:
    """`{"answer"}`: its number, from 1."""
    ask.world.vote(ask.person, _public(ask), ask.form.integer("answer") or 0)
    return None


def type_in(ask: PageRequest) -> object:
    ask.world.type_in(ask.person, ask.channel())
    return None


def branch(ask: PageRequest) -> object:
    """`{"name"}`: a thread from a message."""
    return _thread(ask.world.open_thread(ask.person, _public(ask), _name(ask)))


def open_thread(ask: PageRequest) -> object:
    """`{"name", "text"?, "private"?}`: a thread, or a post of a forum."""
    private, text = ask.form.flag("private"), ask.form.text("text")
    return _thread(ask.world.open_thread(ask.person, ask.channel(), _name(ask), private=private, text=text))


def _name(ask: PageRequest) -> str:
    name = ask.form.text("name", 100, required=True)
    ask.form.check()
    return name or ""


def _thread(thread: SimChannel) -> object:
    return {"id": str(thread.id)}


TALK_ROUTES = (
    PageRoute("GET", "/world", see_world),
    PageRoute("POST", "/people", add_person),
    PageRoute("POST", "/direct", open_direct),
    PageRoute("GET", _MESSAGES, read_messages),
    PageRoute("POST", _MESSAGES, say),
    PageRoute("PATCH", _MESSAGE, edit),
    PageRoute("DELETE", _MESSAGE, delete),
    PageRoute("PUT", _REACTION, react),
    PageRoute("DELETE", _REACTION, unreact),
    PageRoute("POST", f"{_MESSAGE}/vote", vote),
    PageRoute("POST", f"{_MESSAGE}/thread", branch),
    PageRoute("POST", f"{_CHANNEL}/threads", open_thread),
    PageRoute("POST", f"{_CHANNEL}/typing", type_in),
)


_COMMANDS = f"{_CHANNEL}/commands"
_USER_OPTION, _CHANNEL_OPTION, _ROLE_OPTION, _ANYBODY_OPTION, _FILE_OPTION = 6, 7, 8, 9, 11
_SELECTS: Mapping[int, int] = {5: _USER_OPTION, 6: _ROLE_OPTION, 7: _ANYBODY_OPTION, 8: _CHANNEL_OPTION}
"""Types of selects, and the types of options that take the same."""


def list_commands(ask: PageRequest) -> object:
    """Slash commands, or with `kind=3` those for a message."""
    kind = int(ask.query["kind"]) if ask.query.get("kind") in ("1", "2", "3") else 1
    return [ask.eyes.see_command(each) for each in ask.world.list_commands(ask.person, ask.channel(), kind)]


async def run_command(ask: PageRequest) -> object:
    """`{"name", "options"?, "application_id"?}`. The name goes on with group and subcommand, as it is typed; users,
    channels and roles are given by id, files as `{"name", "data"}`.
    """
    name, options = _named(ask)
    command = _find_command(ask, name)
    application = ask.world.store.applications[command.application_id]
    values = dict(_fill(ask, command, name.split()[1:], options))
    used = await ask.world.run_command(ask.person, ask.channel(), name, values, application=application)
    return _outcome(used)


async def autocomplete(ask: PageRequest) -> object:
    """`{"name", "options", "focused"}`: the choices while that option is typed."""
    name, options = _named(ask)
    focused = ask.form.text("focused", required=True) or ""
    ask.form.check()
    return await ask.world.autocomplete(ask.person, ask.channel(), name, options, focused)


async def run_on_message(ask: PageRequest) -> object:
    """`{"name"}`: a command from the message's menu."""
    name, _ = _named(ask)
    return _outcome(await ask.world.run_context_command(ask.person, ask.channel(), name, ask.message()))


async def press(ask: PageRequest) -> object:
    """`{"custom_id", "values"?}`: a button, or a select with what was chosen."""
    message, custom_id = ask.message(), ask.form.text("custom_id", required=True) or ""
    ask.form.check()
    component = find_component(message.components, custom_id)
    kind = _SELECTS.get(component["type"]) if component else None
    chosen: list[Any] = [_thing(ask, kind, each, "values") for each in ask.form.items("values")]
    return _outcome(await ask.world.press(ask.person, message, custom_id, chosen))


async def send_modal(ask: PageRequest) -> object:
    """`{"values"}` by custom id, for the modal with which the interaction was answered."""
    for interaction in ask.world.store.interactions.values():
        if str(interaction.id) == ask.place["interaction"]:
            return _outcome(await ask.world.submit_modal(ask.person, interaction, _object(ask, "values")))
    raise unknown("interaction")


def _named(ask: PageRequest) -> tuple[str, dict[str, Any]]:
    name = (ask.form.text("name", required=True) or "").removeprefix("/").strip()
    ask.form.check()
    if not name:
        raise unknown("application command")
    return name, _object(ask, "options")


def _object(ask: PageRequest, name: str) -> dict[str, Any]:
    inner = ask.form.inner(name)
    ask.form.check()
    return dict(inner.fields) if inner else {}


def _find_command(ask: PageRequest, name: str) -> SimCommand:
    wanted = ask.form.snowflake("application_id")
    for command in ask.world.list_commands(ask.person, ask.channel()):
        if command.name == name.split(maxsplit=1)[0] and wanted in (None, command.application_id):
            return command
    raise unknown("application command")


def _fill(
    ask: PageRequest, command: SimCommand, path: Sequence[str], options: Mapping[str, Any]
) -> Iterator[tuple[str, object]]:
    """The values as the world takes them: things instead of their ids."""
    definitions: list[dict[str, Any]] = command.fields.get("options") or []
    for part in path:
        groups = {each["name"]: each.get("options") for each in definitions}
        definitions = groups.get(part) or []
    kinds = {each["name"]: each["type"] for each in definitions}
    for name, value in options.items():
        yield name, _thing(ask, kinds.get(name), value, f"options.{name}")


def _thing(ask: PageRequest, kind: int | None, value: object, place: str) -> object:
    if kind == _FILE_OPTION:
        return read_file(value, place)
    if kind not in (_USER_OPTION, _CHANNEL_OPTION, _ROLE_OPTION, _ANYBODY_OPTION):
        return value
    store, number = ask.world.store, int(value) if isinstance(value, str) and value.isdigit() else 0
    guild = store.get_guild_for(ask.channel())
    roles = guild.roles if guild else {}
    known = {
        _USER_OPTION: store.users,
        _CHANNEL: store.channels,
        _ROLE_OPTION: roles,
        _ANYBODY_OPTION: {**store.users, **roles},
    }[kind]
    if number not in known:
        raise bad_field(place, "BASE_TYPE_CHOICES", "There is nobody and nothing of this id.")
    return known[number]


def _outcome(used: SimInteraction) -> object:
    modal = {"interaction_id": str(used.id), **used.modal} if used.modal else None
    return {"acknowledged": used.acknowledged, "modal": modal}


USE_ROUTES = (
    PageRoute("GET", _COMMANDS, list_commands),
    PageRoute("POST", _COMMANDS, run_command),
    PageRoute("POST", "/channels/{channel}/autocomplete", autocomplete),
    PageRoute("POST", f"{_MESSAGE}/commands", run_on_message),
    PageRoute("POST", f"{_MESSAGE}/press", press),
    PageRoute("POST", "/interactions/{interaction}/modal", send_modal),
)
