"""The routes of the page: people write, react, open threads, and use commands, buttons and forms of applications."""

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


def see_world(request: PageRequest) -> object:
    return request.view.see_world()


def add_person(request: PageRequest) -> object:
    """`{"name"}`: adds a person, who joins every guild."""
    name = (request.form.text("name", 32, required=True) or "").strip()
    request.form.check()
    if not name or name.isdigit():
        raise bad_field("name", "BASE_TYPE_REQUIRED", "Give the new person a name.")
    try:
        find_person(request.world, name)
    except RefusedError:
        person = request.world.add_person(name)
    else:
        raise bad_field("name", "NAME_TAKEN", f"There is somebody called {name} already.")
    for guild in request.world.guilds:
        guild.join(person)
    return {"id": str(person.id)}


def open_direct(request: PageRequest) -> object:
    """`{"with"}`: opens the direct message with that person or bot."""
    return {"id": str(request.world.open_dm(request.person, request.user("with")).id)}


def read_messages(request: PageRequest) -> object:
    """Returns the newest messages, oldest first; `before` an id goes further back. Ephemeral answers are not kept."""
    channel, before = request.channel(), request.query.get("before", "")
    newest = channel.history.before(int(before), _PAGE + 1) if before.isdigit() else channel.history.newest(_PAGE + 1)
    return {"messages": request.view.see_messages(newest[_PAGE - 1 :: -1]), "more": len(newest) > _PAGE}


def say(request: PageRequest) -> object:
    """`{"text", "reply_to"?, "ping"?, "files"?}`. `@Name` in a text is a mention, wherever people write."""
    channel, form = request.channel(), request.form
    text, reply = form.text("text") or "", form.snowflake("reply_to")
    extras = MessageExtras(ping=form.flag("ping", default=True), attachments=request.files())
    form.check()
    if reply is not None:
        extras["reply_to"] = request.world.store.get_message(channel, reply)
    return request.view.see_message(request.world.say(request.person, channel, request.written(text), **extras))


def edit(request: PageRequest) -> object:
    """`{"text"}`."""
    message = request.message()
    if message.author is not request.person:
        raise forbidden(50005, "Cannot edit a message authored by another user")
    return request.view.see_message(request.world.edit(message, request.written(request.form.text("text") or "")))


def delete(request: PageRequest) -> object:
    request.world.delete(_public(request), request.person)
    return None


def _public(request: PageRequest) -> SimMessage:
    message = request.message()
    if message.ephemeral:
        raise unknown("Message")
    return message


def react(request: PageRequest) -> object:
    request.world.react(request.person, _public(request), request.place["emoji"])
    return None


def unreact(request: PageRequest) -> object:
    request.world.unreact(request.person, _public(request), request.place["emoji"])
    return None


def vote(request: PageRequest) -> object:
    """`{"answer"}`: its number, from 1."""
    request.world.vote(request.person, _public(request), request.form.integer("answer") or 0)
    return None


def type_in(request: PageRequest) -> object:
    request.world.type_in(request.person, request.channel())
    return None


def branch(request: PageRequest) -> object:
    """`{"name"}`: a thread from a message."""
    return _thread(request.world.open_thread(request.person, _public(request), _name(request)))


def open_thread(request: PageRequest) -> object:
    """`{"name", "text"?, "private"?}`: a thread, or a post of a forum."""
    private, text = request.form.flag("private"), request.form.text("text")
    text = None if text is None else request.written(text)
    return _thread(
        request.world.open_thread(request.person, request.channel(), _name(request), private=private, text=text)
    )


def _name(request: PageRequest) -> str:
    name = request.form.text("name", 100, required=True)
    request.form.check()
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
_TEXT_OPTION, _USER_OPTION, _CHANNEL_OPTION, _ROLE_OPTION, _ANYBODY_OPTION, _FILE_OPTION = 3, 6, 7, 8, 9, 11
_SELECTS: Mapping[int, int] = {5: _USER_OPTION, 6: _ROLE_OPTION, 7: _ANYBODY_OPTION, 8: _CHANNEL_OPTION}
"""Types of selects to the types of options that take the same values."""


def list_commands(request: PageRequest) -> object:
    """Slash commands, or with `kind=3` those for a message."""
    kind = int(request.query["kind"]) if request.query.get("kind") in ("1", "2", "3") else 1
    return [
        request.view.see_command(each) for each in request.world.list_commands(request.person, request.channel(), kind)
    ]


async def run_command(request: PageRequest) -> object:
    """`{"name", "options"?, "application_id"?}`. The name goes on with group and subcommand, as it is typed; users,
    channels and roles are given by id, files as `{"name", "data"}`.
    """
    name, options = _named(request)
    command = _find_command(request, name)
    application = request.world.store.applications[command.application_id]
    values = dict(_fill(request, command, name.split()[1:], options))
    used = await request.world.run_command(request.person, request.channel(), name, values, application=application)
    return _outcome(used)


async def autocomplete(request: PageRequest) -> object:
    """`{"name", "options", "focused"}`: the choices while that option is typed."""
    name, options = _named(request)
    focused = request.form.text("focused", required=True) or ""
    request.form.check()
    return await request.world.autocomplete(request.person, request.channel(), name, options, focused)


async def run_on_message(request: PageRequest) -> object:
    """`{"name"}`: a command from the message's menu."""
    name, _ = _named(request)
    return _outcome(await request.world.run_context_command(request.person, request.channel(), name, request.message()))


async def press(request: PageRequest) -> object:
    """`{"custom_id", "values"?}`: a button, or a select with what was chosen."""
    message, custom_id = request.message(), request.form.text("custom_id", required=True) or ""
    request.form.check()
    component = find_component(message.body.components, custom_id)
    kind = _SELECTS.get(component["type"]) if component else None
    chosen: list[Any] = [_thing(request, kind, each, "values") for each in request.form.items("values")]
    return _outcome(await request.world.press(request.person, message, custom_id, chosen))


async def send_modal(request: PageRequest) -> object:
    """`{"values"}` by custom id, for the modal with which the interaction was answered."""
    for interaction in request.world.store.interactions.by_token.values():
        if str(interaction.id) == request.place["interaction"]:
            return _outcome(await request.world.submit_modal(request.person, interaction, _object(request, "values")))
    raise unknown("interaction")


def _named(request: PageRequest) -> tuple[str, dict[str, Any]]:
    name = (request.form.text("name", required=True) or "").removeprefix("/").strip()
    request.form.check()
    if not name:
        raise unknown("application command")
    return name, _object(request, "options")


def _object(request: PageRequest, name: str) -> dict[str, Any]:
    inner = request.form.inner(name)
    request.form.check()
    return dict(inner.fields) if inner else {}


def _find_command(request: PageRequest, name: str) -> SimCommand:
    wanted = request.form.snowflake("application_id")
    for command in request.world.list_commands(request.person, request.channel()):
        if command.name == name.split(maxsplit=1)[0] and wanted in (None, command.application_id):
            return command
    raise unknown("application command")


def _fill(
    request: PageRequest, command: SimCommand, path: Sequence[str], options: Mapping[str, Any]
) -> Iterator[tuple[str, object]]:
    """The values as the world takes them: things instead of their ids."""
    definitions: list[dict[str, Any]] = command.fields.get("options") or []
    for part in path:
        groups = {each["name"]: each.get("options") for each in definitions}
        definitions = groups.get(part) or []
    kinds = {each["name"]: each["type"] for each in definitions}
    for name, value in options.items():
        yield name, _thing(request, kinds.get(name), value, f"options.{name}")


def _thing(request: PageRequest, kind: int | None, value: object, place: str) -> object:
    if kind == _FILE_OPTION:
        return read_file(value, place)
    if kind == _TEXT_OPTION and isinstance(value, str):
        return request.written(value)
    if kind not in (_USER_OPTION, _CHANNEL_OPTION, _ROLE_OPTION, _ANYBODY_OPTION):
        return value
    store, number = request.world.store, int(value) if isinstance(value, str) and value.isdigit() else 0
    guild = store.get_guild_for(request.channel())
    roles = guild.roles if guild else {}
    known = {
        _USER_OPTION: store.users,
        _CHANNEL_OPTION: store.channels,
        _ROLE_OPTION: roles,
        _ANYBODY_OPTION: {**store.users, **roles},
    }[kind]
    if number not in known:
        raise bad_field(place, "BASE_TYPE_CHOICES", "There is nobody and nothing of this id.")
    return known[number]


def _outcome(used: SimInteraction) -> object:
    modal = {"interaction_id": str(used.id), **used.response.modal} if used.response.modal else None
    return {"acknowledged": used.acknowledged, "modal": modal}


USE_ROUTES = (
    PageRoute("GET", _COMMANDS, list_commands),
    PageRoute("POST", _COMMANDS, run_command),
    PageRoute("POST", "/channels/{channel}/autocomplete", autocomplete),
    PageRoute("POST", f"{_MESSAGE}/commands", run_on_message),
    PageRoute("POST", f"{_MESSAGE}/press", press),
    PageRoute("POST", "/interactions/{interaction}/modal", send_modal),
)
