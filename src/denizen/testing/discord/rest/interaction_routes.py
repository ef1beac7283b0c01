"""Routes of application commands, global and of a guild."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from denizen.testing.discord.actions.channels import ThreadPlan
from denizen.testing.discord.actions.drafts import Draft
from denizen.testing.discord.actions.interactions import FirstAnswer
from denizen.testing.discord.actions.messages import Origin
from denizen.testing.discord.payloads.interactions import callback_payload, command_payload
from denizen.testing.discord.payloads.messages import message_payload
from denizen.testing.discord.payloads.people import Payload, webhook_payload
from denizen.testing.discord.rest.call import Call, Created, Form, Route
from denizen.testing.discord.rest.message_routes import read_draft, read_edit
from denizen.testing.discord.state.channels import FORUMS, Channel
from denizen.testing.discord.state.errors import bad_field, bad_form, missing_access, unauthorized_token, unknown
from denizen.testing.discord.state.interactions import Callback, Command, Interaction
from denizen.testing.discord.state.messages import Message, MessageFlag
from denizen.testing.discord.state.people import Application, Intent, User
from denizen.testing.discord.state.realm import Webhook

_GLOBAL = "/applications/{application_id}/commands"
_GUILD = "/applications/{application_id}/guilds/{guild_id}/commands"


def _own(call: Call) -> tuple[Application, int | None]:
    """The application itself, and the guild of the route. Of others nothing is shown."""
    application = call.application
    if call.id("application_id") != application.id:
        raise missing_access()
    if "guild_id" not in call.path:
        return application, None
    guild = call.realm.get_guild(call.id("guild_id"))
    if application.id not in guild.members:
        raise missing_access()
    return application, guild.id


def _fields(body: object) -> dict[str, Any]:
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _one(call: Call) -> tuple[Application, Command]:
    application, guild_id = _own(call)
    return application, call.acts.commands.get(application, guild_id, call.id("command_id"))


def list_commands(call: Call) -> object:
    return [command_payload(each) for each in call.acts.commands.list(*_own(call))]


def overwrite_commands(call: Call) -> object:
    application, guild_id = _own(call)
    if not isinstance(call.body, list):
        raise bad_form([("", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")])
    bodies = [_fields(each) for each in cast("list[Any]", call.body)]
    return [command_payload(each) for each in call.acts.commands.overwrite(application, guild_id, bodies)]


def create_command(call: Call) -> object:
    application, guild_id = _own(call)
    command, new = call.acts.commands.create(application, guild_id, _fields(call.body))
    return Created(command_payload(command)) if new else command_payload(command)


def read_command(call: Call) -> object:
    return command_payload(_one(call)[1])


def edit_command(call: Call) -> object:
    application, command = _one(call)
    return command_payload(call.acts.commands.edit(application, command, _fields(call.body)))


def delete_command(call: Call) -> object:
    application, command = _one(call)
    call.acts.commands.delete(application, command)
    return None


COMMAND_ROUTES = tuple(
    route
    for base in (_GLOBAL, _GUILD)
    for route in (
        Route("GET", base, list_commands),
        Route("PUT", base, overwrite_commands),
        Route("POST", base, create_command),
        Route("GET", f"{base}/{{command_id}}", read_command),
        Route("PATCH", f"{base}/{{command_id}}", edit_command),
        Route("DELETE", f"{base}/{{command_id}}", delete_command),
    )
)


_WEBHOOK = "/webhooks/{webhook_id}/{webhook_token}"
_MESSAGE = f"{_WEBHOOK}/messages/{{message_ref}}"


def callback(call: Call) -> object:
    form = call.form
    kind = form.integer("type", 1, 12)
    form.check()
    if kind not in (*Callback,):
        raise bad_field("type", "BASE_TYPE_CHOICES", "Value must be one of (1, 4, 5, 6, 7, 8, 9).")
    inner = form.inner("data")
    data: Mapping[str, Any] = inner.fields if inner else {}
    form.check()
    pending = call.realm.interactions.get(call.path["interaction_token"])
    if pending is None:
        raise unknown("interaction")

    def draft() -> Draft:
        return read_draft(data, call.files, pending.channel, call.realm.rules.content_length)

    answer = FirstAnswer(Callback(kind), data, draft, lambda: read_edit(data, call.files), int(data.get("flags") or 0))
    interaction = call.acts.interactions.answer(call.id("interaction_id"), call.path["interaction_token"], answer)
    wants = call.switch("with_response")
    return callback_payload(call.realm, interaction) if wants else None


def execute(call: Call) -> object:
    """A follow-up of an interaction, or a message of an incoming webhook. Without `wait` nothing is answered."""
    interaction = _interaction(call)
    if interaction is not None:
        draft = _draft(call, interaction.channel)
        return _shown(call, interaction.application, call.acts.interactions.follow_up(interaction, draft))
    hook = _webhook(call)
    _, message = _post(call, hook)
    waits = call.switch("wait")
    return _hook_message(call, hook, message) if waits else None


def read_answer(call: Call) -> object:
    interaction = _interaction(call)
    if interaction is None:
        hook = _webhook(call)
        return _hook_message(call, hook, _hook_message_of(call, hook)[1])
    message = call.acts.interactions.message(interaction, call.path["message_ref"])
    return _shown(call, interaction.application, message)


def edit_answer(call: Call) -> object:
    interaction = _interaction(call)
    change = read_edit(call.body, call.files)
    if interaction is None:
        hook = _webhook(call)
        channel, message = _hook_message_of(call, hook)
        return _hook_message(call, hook, call.acts.messages.rewrite(channel, message, change))
    message = call.acts.interactions.message(interaction, call.path["message_ref"])
    return _shown(call, interaction.application, call.acts.interactions.edit(interaction, message, change))


def delete_answer(call: Call) -> object:
    interaction = _interaction(call)
    if interaction is None:
        channel, message = _hook_message_of(call, _webhook(call))
        call.acts.messages.remove(channel, [message])
        return None
    message = call.acts.interactions.message(interaction, call.path["message_ref"])
    call.acts.interactions.delete(interaction, message)
    return None


def read_webhook(call: Call) -> object:
    return webhook_payload(_webhook(call))


def delete_webhook(call: Call) -> object:
    del call.realm.webhooks[_webhook(call).id]
    return None


def _interaction(call: Call) -> Interaction | None:
    if call.id("webhook_id") not in call.realm.applications:
        return None
    interaction = call.acts.interactions.find(call.id("webhook_id"), call.path["webhook_token"])
    if interaction is None:
        raise unauthorized_token()
    return interaction


def _draft(call: Call, channel: Channel) -> Draft:
    return read_draft(call.body, call.files, channel, call.realm.rules.content_length)


def _shown(call: Call, application: Application, message: Message) -> Payload:
    return message_payload(call.realm, message, application, Intent.MESSAGE_CONTENT)


def _webhook(call: Call) -> Webhook:
    hook = call.realm.webhooks.get(call.id("webhook_id"))
    if hook is None:
        raise unknown("Webhook")
    if hook.token != call.path["webhook_token"]:
        raise unauthorized_token()
    return hook


def _post(call: Call, hook: Webhook) -> tuple[Channel, Message]:
    form = Form(call.body)
    name = form.text("username", 80) or hook.name
    thread_name = form.text("thread_name", 100)
    form.check()
    channel = hook.channel
    if (thread_id := call.snowflake("thread_id")) is not None:
        channel = call.realm.get_channel(thread_id)
        if channel.parent is not hook.channel:
            raise unknown("Channel")
    draft = _draft(call, channel)
    draft.flags &= ~MessageFlag.EPHEMERAL
    author = User(hook.id, name, name, bot=True)
    origin = Origin(hook.id, hook.application_id)
    if channel.kind in FORUMS:
        if not thread_name:
            raise bad_field(
                "thread_name",
                "BASE_TYPE_REQUIRED",
                "Webhooks posted to forum channels must have a thread_name or thread_id",
            )
        return call.acts.threads.post(author, channel, ThreadPlan(thread_name), draft, origin)
    return channel, call.acts.messages.send(author, channel, draft, origin)


def _hook_message_of(call: Call, hook: Webhook) -> tuple[Channel, Message]:
    channel = hook.channel
    if (thread_id := call.snowflake("thread_id")) is not None:
        channel = call.realm.get_channel(thread_id)
    ref = call.path["message_ref"]
    message = channel.find(int(ref)) if ref.isdigit() else None
    if message is None or message.webhook_id != hook.id:
        raise unknown("Message")
    return channel, message


def _hook_message(call: Call, hook: Webhook, message: Message) -> Payload:
    reader = Application(hook.id, hook.name, hook.token, hook.creator, hook.creator, Intent.MESSAGE_CONTENT)
    return message_payload(call.realm, message, reader, Intent.MESSAGE_CONTENT)


INTERACTION_ROUTES = (
    Route("POST", "/interactions/{interaction_id}/{interaction_token}/callback", callback, open=True),
    Route("POST", _WEBHOOK, execute, open=True),
    Route("GET", _WEBHOOK, read_webhook, open=True),
    Route("DELETE", _WEBHOOK, delete_webhook, open=True),
    Route("GET", _MESSAGE, read_answer, open=True),
    Route("PATCH", _MESSAGE, edit_answer, open=True),
    Route("DELETE", _MESSAGE, delete_answer, open=True),
)
