"""Routes of messages: create, read, edit, delete, reactions, pins, polls, typing; and the bodies of messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from denizen.testing.discord.actions.drafts import AllowedMentions, MessageDraft, MessageEdit
from denizen.testing.discord.payloads.messages import message_payload, with_nonce
from denizen.testing.discord.payloads.people import Payload, user_payload
from denizen.testing.discord.rest.call import Form, RestCall, RestRoute
from denizen.testing.discord.state.access import has_permission
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.clock import format_timestamp
from denizen.testing.discord.state.errors import bad_form
from denizen.testing.discord.state.messages import (
    MessageFlag,
    SimAttachment,
    SimEmoji,
    SimMessage,
    SimPollDraft,
    SimReference,
)
from denizen.testing.discord.state.permissions import P

_MAX_NONCE = 25
_KINDS = frozenset({"users", "roles", "everyone"})
_SETTABLE = (
    MessageFlag.SUPPRESS_EMBEDS
    | MessageFlag.SUPPRESS_NOTIFICATIONS
    | MessageFlag.IS_COMPONENTS_V2
    | MessageFlag.IS_VOICE_MESSAGE
    | MessageFlag.EPHEMERAL
)


def read_draft(
    body: object, files: Mapping[int, SimAttachment], channel: SimChannel, content_limit: int = 2000
) -> MessageDraft:
    """Reads a new message. `files` are those of a multipart body by their number. Raises 50035."""
    form = Form(body)
    draft = MessageDraft(
        content=form.text("content", content_limit) or "",
        embeds=form.objects("embeds", 10),
        components=form.objects("components"),
        attachments=_described(form, files),
        sticker_ids=form.snowflakes("sticker_ids"),
        poll=_poll(form),
        mentions=read_mentions(form),
        nonce=_nonce(form),
        enforce_nonce=form.flag("enforce_nonce"),
        flags=(form.integer("flags") or 0) & _SETTABLE,
        tts=form.flag("tts"),
    )
    reference = form.inner("message_reference")
    if reference is not None:
        kind = reference.integer("type", 0, 1) or 0
        message_id = reference.snowflake("message_id", required=True)
        channel_id = reference.snowflake("channel_id", required=kind == 1) or channel.id
        must_exist = reference.flag("fail_if_not_exists", default=True)
        draft.reference = SimReference(channel_id, message_id, channel.guild_id, kind, fail_if_not_exists=must_exist)
    form.check()
    return draft


def read_edit(body: object, files: Mapping[int, SimAttachment], content_limit: int = 2000) -> MessageEdit:
    """Reads an edit: an absent field stays, null empties it. Raises 50035."""
    form = Form(body)
    content = form.text("content", content_limit)
    edit = MessageEdit(
        content=content or "" if form.has("content") else None,
        embeds=form.objects("embeds", 10) if form.has("embeds") else None,
        components=form.objects("components") if form.has("components") else None,
        flags=form.integer("flags"),
        mentions=read_mentions(form),
        files=_described(form, files),
    )
    if form.has("attachments"):
        ids = [each.snowflake("id") for each in form.forms("attachments")]
        edit.keep = [each for each in ids if each is not None and each not in files]
    form.check()
    return edit


def read_mentions(form: Form) -> AllowedMentions:
    """Reads the allowed mentions. Without the field everything counts."""
    inner = form.inner("allowed_mentions")
    if inner is None:
        return AllowedMentions()
    parse = frozenset(each for each in inner.items("parse") if isinstance(each, str))
    for wrong in parse - _KINDS:
        inner.fault("parse", "BASE_TYPE_CHOICES", f"Value ('{wrong}') must be one of ('everyone', 'users', 'roles').")
    users = frozenset(inner.snowflakes("users"))
    roles = frozenset(inner.snowflakes("roles"))
    for name, chosen in (("users", users), ("roles", roles)):
        if name in parse and chosen:
            inner.fault(
                name,
                "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
                f"parse:['{name}'] and {name}: [ids...] are mutually exclusive.",
            )
    return AllowedMentions(parse, users, roles, inner.flag("replied_user"))


def _nonce(form: Form) -> str | int | None:
    nonce = form.fields.get("nonce")
    if nonce is None or isinstance(nonce, int):
        return nonce
    text = form.text("nonce", _MAX_NONCE)
    return text or None


def _described(form: Form, files: Mapping[int, SimAttachment]) -> list[SimAttachment]:
    """Returns the uploaded files with what `attachments` says about them."""
    described = dict(files)
    for each in form.forms("attachments", 10):
        number = each.snowflake("id")
        file = described.get(number) if number is not None else None
        if file is None or number is None:
            continue
        described[number] = replace(
            file,
            filename=each.text("filename", 1024) or file.filename,
            description=each.text("description", 1024),
            title=each.text("title", 1024),
            waveform=each.text("waveform", 400),
            duration_s=each.fields.get("duration_secs"),
        )
    return list(described.values())


def _poll(form: Form) -> SimPollDraft | None:
    inner = form.inner("poll")
    if inner is None:
        return None
    question = inner.inner("question")
    answers: list[tuple[str, SimEmoji | None]] = []
    for answer in inner.forms("answers", 10):
        media = answer.inner("poll_media")
        text = media.text("text", 55) if media else None
        emoji = media.inner("emoji") if media else None
        name = emoji.text("name") if emoji else None
        answers.append((text or "", SimEmoji(name) if name else None))
    return SimPollDraft(
        question.text("text", 300, required=True) or "" if question else "",
        answers,
        timedelta(hours=inner.integer("duration", 1, 768) or 24),
        multiple=inner.flag("allow_multiselect"),
    )


_CHANNEL = "/channels/{channel_id}"
_MESSAGES = f"{_CHANNEL}/messages"
_MESSAGE = f"{_MESSAGES}/{{message_id}}"
_REACTION = f"{_MESSAGE}/reactions/{{emoji_name}}"


def _shown(call: RestCall, message: SimMessage) -> Payload:
    return message_payload(call.store, message, call.application, call.application.intents)


def create(call: RestCall) -> object:
    channel = call.channel()
    draft = read_draft(call.body, call.files, channel, call.store.rules.content_length)
    message = call.acts.messages.send(call.bot, channel, draft)
    return with_nonce(message, _shown(call, message))


def read_many(call: RestCall) -> object:
    """Returns messages, newest first. Without the right to read the history it is empty, as on Discord."""
    channel = call.channel()
    limit = call.number("limit", 50, 1, 100)
    anchors = {name: at for name in ("around", "before", "after") if (at := call.snowflake(name)) is not None}
    if len(anchors) > 1:
        raise bad_form([("", "INVALID_FORM", "Only one of around, before and after may be given")])
    if not has_permission(call.store, call.bot, channel, P.READ_MESSAGE_HISTORY):
        return []
    return [_shown(call, each) for each in _page(channel, anchors, limit)]


def _page(channel: SimChannel, anchors: dict[str, int], limit: int) -> list[SimMessage]:
    match anchors:
        case {"around": at}:
            return channel.history.around(at, limit)
        case {"before": at}:
            return channel.history.before(at, limit)
        case {"after": at}:
            return channel.history.after(at, limit)
        case _:
            return channel.history.newest(limit)


def read(call: RestCall) -> object:
    return _shown(call, call.message(call.channel()))


def edit(call: RestCall) -> object:
    channel = call.channel()
    message = call.store.get_message(channel, call.id("message_id"))
    change = read_edit(call.body, call.files, call.store.rules.content_length)
    return _shown(call, call.acts.messages.edit(call.bot, channel, message, change))


def delete(call: RestCall) -> object:
    channel = call.channel()
    call.acts.messages.delete(call.bot, channel, call.store.get_message(channel, call.id("message_id")))
    return None


def delete_many(call: RestCall) -> object:
    channel, form = call.channel(), call.form
    ids = form.snowflakes("messages")
    form.check()
    call.acts.messages.delete_many(call.bot, channel, ids)
    return None


def crosspost(call: RestCall) -> object:
    channel = call.channel()
    message = call.message(channel)
    call.acts.messages.crosspost(call.bot, channel, message)
    return _shown(call, message)


def react(call: RestCall) -> object:
    channel = call.channel()
    emoji = call.acts.marks.parse_emoji(call.path["emoji_name"])
    call.acts.marks.react(call.bot, channel, call.message(channel), emoji)
    return None


def unreact(call: RestCall) -> object:
    channel = call.channel()
    emoji = call.acts.marks.parse_emoji(call.path["emoji_name"])
    user = call.store.get_user(call.id("user_id")) if "user_id" in call.path else call.bot
    call.acts.marks.unreact(call.bot, channel, call.message(channel), emoji, user)
    return None


def list_reactions(call: RestCall) -> object:
    channel = call.channel()
    message = call.message(channel)
    emoji = call.acts.marks.parse_emoji(call.path["emoji_name"])
    after, limit = call.snowflake("after") or 0, call.number("limit", 25, 1, 100)
    users = [user for each in message.state.reactions if each.emoji.key == emoji.key for user in each.users]
    found = sorted((each for each in users if each.id > after), key=lambda each: each.id)
    return [user_payload(each) for each in found[:limit]]


def clear_reactions(call: RestCall) -> object:
    channel = call.channel()
    name = call.path.get("emoji_name")
    emoji = None if name is None else call.acts.marks.parse_emoji(name)
    call.acts.marks.clear_reactions(call.bot, channel, call.message(channel), emoji)
    return None


def list_pins(call: RestCall) -> object:
    channel = call.channel()
    limit = call.number("limit", 50, 1, 50)
    before = call.query.get("before")
    pinned = [(each.state.pinned_at, each) for each in channel.history if each.state.pinned_at is not None]
    pinned.sort(key=lambda pair: pair[0], reverse=True)
    found = [(at, each) for at, each in pinned if before is None or format_timestamp(at) < before]
    items = [{"pinned_at": format_timestamp(at), "message": _shown(call, each)} for at, each in found[:limit]]
    return {"items": items, "has_more": len(found) > limit}


def list_pins_old(call: RestCall) -> object:
    pinned = [each for each in call.channel().history if each.pinned]
    return [_shown(call, each) for each in reversed(pinned)]


def pin(call: RestCall) -> object:
    channel = call.channel()
    call.acts.marks.pin(call.bot, channel, call.store.get_message(channel, call.id("message_id")))
    return None


def unpin(call: RestCall) -> object:
    channel = call.channel()
    call.acts.marks.unpin(call.bot, channel, call.store.get_message(channel, call.id("message_id")))
    return None


def type_in(call: RestCall) -> object:
    call.acts.marks.type_in(call.bot, call.channel())
    return None


def end_poll(call: RestCall) -> object:
    channel = call.channel()
    message = call.message(channel)
    call.acts.marks.end_poll(call.bot, channel, message)
    return _shown(call, message)


def list_voters(call: RestCall) -> object:
    message = call.message(call.channel())
    users = message.body.poll.votes.get(call.id("answer_id"), []) if message.body.poll else []
    return {"users": [user_payload(each) for each in users]}


ROUTES = (
    RestRoute("GET", f"{_MESSAGES}/pins", list_pins),
    RestRoute("PUT", f"{_MESSAGES}/pins/{{message_id}}", pin),
    RestRoute("DELETE", f"{_MESSAGES}/pins/{{message_id}}", unpin),
    RestRoute("GET", f"{_CHANNEL}/pins", list_pins_old),
    RestRoute("PUT", f"{_CHANNEL}/pins/{{message_id}}", pin),
    RestRoute("DELETE", f"{_CHANNEL}/pins/{{message_id}}", unpin),
    RestRoute("POST", f"{_MESSAGES}/bulk-delete", delete_many),
    RestRoute("POST", _MESSAGES, create),
    RestRoute("GET", _MESSAGES, read_many),
    RestRoute("GET", _MESSAGE, read),
    RestRoute("PATCH", _MESSAGE, edit),
    RestRoute("DELETE", _MESSAGE, delete),
    RestRoute("POST", f"{_MESSAGE}/crosspost", crosspost),
    RestRoute("DELETE", f"{_MESSAGE}/reactions", clear_reactions),
    RestRoute("PUT", f"{_REACTION}/@me", react),
    RestRoute("DELETE", f"{_REACTION}/@me", unreact),
    RestRoute("DELETE", f"{_REACTION}/{{user_id}}", unreact),
    RestRoute("GET", _REACTION, list_reactions),
    RestRoute("DELETE", _REACTION, clear_reactions),
    RestRoute("POST", f"{_CHANNEL}/typing", type_in),
    RestRoute("POST", f"{_CHANNEL}/polls/{{message_id}}/expire", end_poll),
    RestRoute("GET", f"{_CHANNEL}/polls/{{message_id}}/answers/{{answer_id}}", list_voters),
)
