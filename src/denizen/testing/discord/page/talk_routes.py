"""What people do by themselves: write, edit, delete, react, vote, open threads and direct messages."""

from __future__ import annotations

from denizen.testing.discord.page.ask import Ask, SimRoute, find_person
from denizen.testing.discord.state.channels import Channel
from denizen.testing.discord.state.messages import Message
from denizen.testing.discord.state.refusals import RefusedError, bad_field, forbidden, unknown
from denizen.testing.discord.world import Extras

_CHANNEL = "/channels/{channel}"
_MESSAGES = f"{_CHANNEL}/messages"
_MESSAGE = f"{_MESSAGES}/{{message:[0-9]+}}"
_REACTION = f"{_MESSAGE}/reactions/{{emoji}}"
_PAGE = 50


def see_world(ask: Ask) -> object:
    return ask.eyes.see_world()


def add_person(ask: Ask) -> object:
    """`{"name"}`: somebody new, who joins every guild."""
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


def open_direct(ask: Ask) -> object:
    """`{"with"}`: the direct message with that person or bot."""
    return {"id": str(ask.world.open_dm(ask.person, ask.user("with")).id)}


def read_messages(ask: Ask) -> object:
    """The newest, oldest first; `before` an id goes further back. Answers for one person alone are not kept."""
    channel, before = ask.channel(), ask.query.get("before", "")
    newest = channel.before(int(before), _PAGE + 1) if before.isdigit() else channel.newest(_PAGE + 1)
    return {"messages": ask.eyes.see_messages(newest[_PAGE - 1 :: -1]), "more": len(newest) > _PAGE}


def say(ask: Ask) -> object:
    """`{"text", "reply_to"?, "ping"?, "files"?}`."""
    channel, form = ask.channel(), ask.form
    text, reply = form.text("text") or "", form.snowflake("reply_to")
    extras = Extras(ping=form.flag("ping", default=True), attachments=ask.files())
    form.check()
    if reply is not None:
        extras["reply_to"] = ask.world.realm.get_message(channel, reply)
    return ask.eyes.see_message(ask.world.say(ask.person, channel, text, **extras))


def edit(ask: Ask) -> object:
    """`{"text"}`."""
    message = _own(ask)
    return ask.eyes.see_message(ask.world.edit(message, ask.form.text("text") or ""))


def _own(ask: Ask) -> Message:
    message = ask.message()
    if message.author is not ask.person:
        raise forbidden(50005, "Cannot edit a message authored by another user")
    return message


def delete(ask: Ask) -> object:
    ask.world.delete(_public(ask), ask.person)
    return None


def _public(ask: Ask) -> Message:
    message = ask.message()
    if message.ephemeral:
        raise unknown("Message")
    return message


def react(ask: Ask) -> object:
    ask.world.react(ask.person, _public(ask), ask.place["emoji"])
    return None


def unreact(ask: Ask) -> object:
    ask.world.unreact(ask.person, _public(ask), ask.place["emoji"])
    return None


def vote(ask: Ask) -> object:
    """`{"answer"}`: its number, from 1."""
    ask.world.vote(ask.person, _public(ask), ask.form.integer("answer") or 0)
    return None


def type_in(ask: Ask) -> object:
    ask.world.type_in(ask.person, ask.channel())
    return None


def branch(ask: Ask) -> object:
    """`{"name"}`: a thread from a message."""
    return _thread(ask.world.open_thread(ask.person, _public(ask), _name(ask)))


def open_thread(ask: Ask) -> object:
    """`{"name", "text"?, "private"?}`: a thread, or a post of a forum."""
    private, text = ask.form.flag("private"), ask.form.text("text")
    return _thread(ask.world.open_thread(ask.person, ask.channel(), _name(ask), private=private, text=text))


def _name(ask: Ask) -> str:
    name = ask.form.text("name", 100, required=True)
    ask.form.check()
    return name or ""


def _thread(thread: Channel) -> object:
    return {"id": str(thread.id)}


TALK_ROUTES = (
    SimRoute("GET", "/world", see_world),
    SimRoute("POST", "/people", add_person),
    SimRoute("POST", "/direct", open_direct),
    SimRoute("GET", _MESSAGES, read_messages),
    SimRoute("POST", _MESSAGES, say),
    SimRoute("PATCH", _MESSAGE, edit),
    SimRoute("DELETE", _MESSAGE, delete),
    SimRoute("PUT", _REACTION, react),
    SimRoute("DELETE", _REACTION, unreact),
    SimRoute("POST", f"{_MESSAGE}/vote", vote),
    SimRoute("POST", f"{_MESSAGE}/thread", branch),
    SimRoute("POST", f"{_CHANNEL}/threads", open_thread),
    SimRoute("POST", f"{_CHANNEL}/typing", type_in),
)
