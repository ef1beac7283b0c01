"""Routes of application commands, interactions and webhooks. Webhooks and interactions carry their token in
the path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from denizen.testing.discord.actions.channels import ThreadPlan
from denizen.testing.discord.actions.drafts import MessageDraft
from denizen.testing.discord.actions.interactions import InteractionCallback
from denizen.testing.discord.payloads.interactions import callback_payload, command_payload
from denizen.testing.discord.payloads.messages import message_payload
from denizen.testing.discord.payloads.people import Payload, webhook_payload
from denizen.testing.discord.rest.call import CreatedResponse, Form, RestCall, RestRoute
from denizen.testing.discord.rest.message_routes import read_draft, read_edit
from denizen.testing.discord.state.channels import FORUMS, SimChannel
from denizen.testing.discord.state.errors import bad_field, bad_form, missing_access, unauthorized_token, unknown
from denizen.testing.discord.state.interactions import CallbackKind, SimCommand, SimInteraction
from denizen.testing.discord.state.messages import MessageFlag, MessageOrigin, SimMessage
from denizen.testing.discord.state.people import GatewayIntent, SimApplication, SimUser
from denizen.testing.discord.state.store import SimWebhook

_GLOBAL = "/applications/{application_id}/commands"
_GUILD = "/applications/{application_id}/guilds/{guild_id}/commands"


def _own(call: RestCall) -> tuple[SimApplication, int | None]:
    """Returns the application itself and the guild of the route. Other applications are not shown."""
    application = call.application
    if call.id("application_id") != application.id:
        raise missing_access()
    if "guild_id" not in call.path:
        return application, None
    guild = call.store.get_guild(call.id("guild_id"))
    if application.id not in guild.members:
        raise missing_access()
    return application, guild.id


def _fields(body: object) -> dict[str, Any]:
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _one(call: RestCall) -> tuple[SimApplication, SimCommand]:
    application, guild_id = _own(call)
    return application, call.acts.commands.get(application, guild_id, call.id("command_id"))


def list_commands(call: RestCall) -> object:
    return [command_payload(each) for each in call.acts.commands.list(*_own(call))]


def overwrite_commands(call: RestCall) -> object:
    application, guild_id = _own(call)
    if not isinstance(call.body, list):
        raise bad_form([("", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")])
    bodies = [_fields(each) for each in cast("list[Any]", call.body)]
    return [command_payload(each) for each in call.acts.commands.overwrite(application, guild_id, bodies)]


def create_command(call: RestCall) -> object:
    application, guild_id = _own(call)
    command, new = call.acts.commands.create(application, guild_id, _fields(call.body))
    return CreatedResponse(command_payload(command)) if new else command_payload(command)


def read_command(call: RestCall) -> object:
    return command_payload(_one(call)[1])


def edit_command(call: RestCall) -> object:
    application, command = _one(call)
    return command_payload(call.acts.commands.edit(application, command, _fields(call.body)))


def delete_command(call: RestCall) -> object:
    application, command = _one(call)
    call.acts.commands.delete(application, command)
    return None


COMMAND_ROUTES = tuple(
    route
    for base in (_GLOBAL, _GUILD)
    for route in (
        RestRoute("GET", base, list_commands),
        RestRoute("PUT", base, overwrite_commands),
        RestRoute("POST", base, create_command),
        RestRoute("GET", f"{base}/{{command_id}}", read_command),
        RestRoute("PATCH", f"{base}/{{command_id}}", edit_command),
        RestRoute("DELETE", f"{base}/{{command_id}}", delete_command),
    )
)


_WEBHOOK = "/webhooks/{webhook_id}/{webhook_token}"
_MESSAGE = f"{_WEBHOOK}/messages/{{message_ref}}"


def callback(call: RestCall) -> object:
    form = call.form
    kind = form.integer("type", 1, 12)
    form.check()
    if kind not in (*CallbackKind,):
        raise bad_field("type", "BASE_TYPE_CHOICES", "Value must be one of (1, 4, 5, 6, 7, 8, 9).")
    inner = form.inner("data")
    data: Mapping[str, Any] = inner.fields if inner else {}
    form.check()
    pending = call.store.interactions.by_token.get(call.path["interaction_token"])
    if pending is None:
        raise unknown("interaction")

    def draft() -> MessageDraft:
        return read_draft(data, call.files, pending.channel, call.store.rules.content_length)

    answer = InteractionCallback(
        CallbackKind(kind), data, draft, lambda: read_edit(data, call.files), int(data.get("flags") or 0)
    )
    interaction = call.acts.interactions.answer(call.id("interaction_id"), call.path["interaction_token"], answer)
    wants = call.switch("with_response")
    return callback_payload(call.store, interaction) if wants else None


def execute(call: RestCall) -> object:
    """Sends a follow-up of an interaction, or a message of an incoming webhook. Without `wait` the answer is empty."""
    interaction = _interaction(call)
    if interaction is not None:
        draft = _draft(call, interaction.channel)
        return _shown(call, interaction.application, call.acts.interactions.follow_up(interaction, draft))
    hook = _webhook(call)
    _, message = _post(call, hook)
    waits = call.switch("wait")
    return _render_webhook_message(call, hook, message) if waits else None


def read_answer(call: RestCall) -> object:
    interaction = _interaction(call)
    if interaction is None:
        hook = _webhook(call)
        return _render_webhook_message(call, hook, _find_webhook_message(call, hook)[1])
    message = call.acts.interactions.message(interaction, call.path["message_ref"])
    return _shown(call, interaction.application, message)


def edit_answer(call: RestCall) -> object:
    interaction = _interaction(call)
    change = read_edit(call.body, call.files)
    if interaction is None:
        hook = _webhook(call)
        channel, message = _find_webhook_message(call, hook)
        return _render_webhook_message(call, hook, call.acts.messages.rewrite(channel, message, change))
    message = call.acts.interactions.message(interaction, call.path["message_ref"])
    return _shown(call, interaction.application, call.acts.interactions.edit(interaction, message, change))


def delete_answer(call: RestCall) -> object:
    interaction = _interaction(call)
    if interaction is None:
        channel, message = _find_webhook_message(call, _webhook(call))
        call.acts.messages.remove(channel, [message])
        return None
    message = call.acts.interactions.message(interaction, call.path["message_ref"])
    call.acts.interactions.delete(interaction, message)
    return None


def read_webhook(call: RestCall) -> object:
    return webhook_payload(_webhook(call))


def delete_webhook(call: RestCall) -> object:
    del call.store.webhooks[_webhook(call).id]
    return None


def _interaction(call: RestCall) -> SimInteraction | None:
    if call.id("webhook_id") not in call.store.applications:
        return None
    interaction = call.acts.interactions.find(call.id("webhook_id"), call.path["webhook_token"])
    if interaction is None:
        raise unauthorized_token()
    return interaction


def _draft(call: RestCall, channel: SimChannel) -> MessageDraft:
    return read_draft(call.body, call.files, channel, call.store.rules.content_length)


def _shown(call: RestCall, application: SimApplication, message: SimMessage) -> Payload:
    return message_payload(call.store, message, application, GatewayIntent.MESSAGE_CONTENT)


def _webhook(call: RestCall) -> SimWebhook:
    hook = call.store.webhooks.get(call.id("webhook_id"))
    if hook is None:
        raise unknown("Webhook")
    if hook.token != call.path["webhook_token"]:
        raise unauthorized_token()
    return hook


def _post(call: RestCall, hook: SimWebhook) -> tuple[SimChannel, SimMessage]:
    form = Form(call.body)
    name = form.text("username", 80) or hook.name
    thread_name = form.text("thread_name", 100)
    form.check()
    channel = hook.channel
    if (thread_id := call.snowflake("thread_id")) is not None:
        channel = call.store.get_channel(thread_id)
        if channel.parent is not hook.channel:
            raise unknown("Channel")
    draft = _draft(call, channel)
    draft.flags &= ~MessageFlag.EPHEMERAL
    author = SimUser(hook.id, name, name, bot=True)
    origin = MessageOrigin(hook.id, hook.application_id)
    if channel.kind in FORUMS:
        if not thread_name:
            raise bad_field(
                "thread_name",
                "BASE_TYPE_REQUIRED",
                "Webhooks posted to forum channels must have a thread_name or thread_id",
            )
        return call.acts.threads.post(author, channel, ThreadPlan(thread_name), draft, origin)
    return channel, call.acts.messages.send(author, channel, draft, origin)


def _find_webhook_message(call: RestCall, hook: SimWebhook) -> tuple[SimChannel, SimMessage]:
    channel = hook.channel
    if (thread_id := call.snowflake("thread_id")) is not None:
        channel = call.store.get_channel(thread_id)
    ref = call.path["message_ref"]
    message = channel.find(int(ref)) if ref.isdigit() else None
    if message is None or message.origin.webhook_id != hook.id:
        raise unknown("Message")
    return channel, message


def _render_webhook_message(call: RestCall, hook: SimWebhook, message: SimMessage) -> Payload:
    reader = SimApplication(
        id=hook.id,
        name=hook.name,
        token=hook.token,
        user=hook.creator,
        owner=hook.creator,
        intents=GatewayIntent.MESSAGE_CONTENT,
    )
    return message_payload(call.store, message, reader, GatewayIntent.MESSAGE_CONTENT)


INTERACTION_ROUTES = (
    RestRoute("POST", "/interactions/{interaction_id}/{interaction_token}/callback", callback, open=True),
    RestRoute("POST", _WEBHOOK, execute, open=True),
    RestRoute("GET", _WEBHOOK, read_webhook, open=True),
    RestRoute("DELETE", _WEBHOOK, delete_webhook, open=True),
    RestRoute("GET", _MESSAGE, read_answer, open=True),
    RestRoute("PATCH", _MESSAGE, edit_answer, open=True),
    RestRoute("DELETE", _MESSAGE, delete_answer, open=True),
)
