"""Bodies of messages: new ones, edits, with files or without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from denizen.testing.discord.acts.drafts import AllowedMentions, Draft, MessageEdit
from denizen.testing.discord.rest.form import Form
from denizen.testing.discord.state.channels import Channel
from denizen.testing.discord.state.messages import Attachment, Emoji, MessageFlag, PollDraft, Reference

_MAX_NONCE = 25
_KINDS = frozenset({"users", "roles", "everyone"})
_SETTABLE = (
    MessageFlag.SUPPRESS_EMBEDS
    | MessageFlag.SUPPRESS_NOTIFICATIONS
    | MessageFlag.IS_COMPONENTS_V2
    | MessageFlag.IS_VOICE_MESSAGE
    | MessageFlag.EPHEMERAL
)


def read_draft(body: object, files: Mapping[int, Attachment], channel: Channel, content_limit: int = 2000) -> Draft:
    """A new message. `files` are those of a multipart body by their number. Raises 50035."""
    form = Form(body)
    draft = Draft(
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
        draft.fail_if_not_exists = reference.flag("fail_if_not_exists", default=True)
        draft.reference = Reference(channel_id, message_id, channel.guild_id, kind)
    form.check()
    return draft


def read_edit(body: object, files: Mapping[int, Attachment], content_limit: int = 2000) -> MessageEdit:
    """A change of a message: what is absent stays, null empties. Raises 50035."""
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
    """Without the field everything counts; with it only what it names."""
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


def _described(form: Form, files: Mapping[int, Attachment]) -> list[Attachment]:
    """The uploaded files with what `attachments` says about them."""
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


def _poll(form: Form) -> PollDraft | None:
    inner = form.inner("poll")
    if inner is None:
        return None
    question = inner.inner("question")
    answers: list[tuple[str, Emoji | None]] = []
    for answer in inner.forms("answers", 10):
        media = answer.inner("poll_media")
        text = media.text("text", 55) if media else None
        emoji = media.inner("emoji") if media else None
        name = emoji.text("name") if emoji else None
        answers.append((text or "", Emoji(name) if name else None))
    return PollDraft(
        question.text("text", 300, required=True) or "" if question else "",
        answers,
        timedelta(hours=inner.integer("duration", 1, 768) or 24),
        multiple=inner.flag("allow_multiselect"),
    )
