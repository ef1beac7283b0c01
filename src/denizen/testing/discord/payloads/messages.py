"""Payloads of messages for one bot. Without the Message Content intent most of what people write is withheld."""

from __future__ import annotations

from denizen.testing.discord.payloads.channels import channel_payload, id_or_none
from denizen.testing.discord.payloads.people import Payload, partial_member_payload, user_payload, webhook_user_payload
from denizen.testing.discord.state.clock import format_optional_timestamp, format_timestamp
from denizen.testing.discord.state.messages import (
    MessageFlag,
    SimAttachment,
    SimEmoji,
    SimMessage,
    SimPoll,
    SimSnapshot,
)
from denizen.testing.discord.state.people import GatewayIntent, SimApplication, SimUser
from denizen.testing.discord.state.store import SimStore


def may_read(store: SimStore, message: SimMessage, reader: SimApplication, intents: GatewayIntent) -> bool:
    """Whether this bot gets content, embeds, attachments, components and poll: with the intent, in direct messages, of
    its own messages, and of those that mention it.
    """
    own = message.author is reader.user or message.origin.application_id == reader.id
    channel = store.channels.get(message.channel_id)
    direct = channel is not None and channel.is_dm
    return bool(intents & GatewayIntent.MESSAGE_CONTENT) or own or direct or reader.user in message.mentioned.users


def message_payload(store: SimStore, message: SimMessage, reader: SimApplication, intents: GatewayIntent) -> Payload:
    """Returns a message for REST. `intents` decide about the content: over REST those enabled in the portal."""
    payload = basic_payload(store, message, reader, intents)
    reference = message.reference
    if reference is not None and reference.message_id is not None and reference.kind == 0:
        target = store.find_message(reference.channel_id, reference.message_id)
        payload["referenced_message"] = basic_payload(store, target, reader, intents) if target else None
    thread = store.find_thread_for(message)
    if thread is not None and message.channel_id != thread.id:
        payload["thread"] = channel_payload(thread, reader.user)
    if message.state.reactions:
        payload["reactions"] = [
            {
                "emoji": emoji_part(each.emoji),
                "count": len(each.users),
                "count_details": {"burst": 0, "normal": len(each.users)},
                "burst_colors": [],
                "me_burst": False,
                "me": reader.user in each.users,
                "burst_me": False,
                "burst_count": 0,
            }
            for each in message.state.reactions
        ]
    return payload


def with_nonce(message: SimMessage, payload: Payload) -> Payload:
    """Adds the nonce, which only the answer to the send and MESSAGE_CREATE carry."""
    return payload if message.origin.nonce is None else payload | {"nonce": message.origin.nonce}


def gateway_message_payload(
    store: SimStore, message: SimMessage, reader: SimApplication, intents: GatewayIntent
) -> Payload:
    """Returns a message for a gateway event: with the guild and the author's membership, unless it is ephemeral."""
    payload = message_payload(store, message, reader, intents)
    guild = store.guilds.get(message.guild_id or 0)
    channel = store.channels.get(message.channel_id)
    if channel is not None:
        payload["channel_type"] = int(channel.kind)
    if guild is None or message.ephemeral:
        return payload
    payload["guild_id"] = str(guild.id)
    if message.origin.webhook_id is None and (member := guild.members.get(message.author.id)):
        payload["member"] = partial_member_payload(member)
    payload["mentions"] = [
        user_payload(user) | {"member": partial_member_payload(guild.members[user.id])}
        if user.id in guild.members
        else user_payload(user)
        for user in message.mentioned.users
    ]
    return payload


def basic_payload(store: SimStore, message: SimMessage, reader: SimApplication, intents: GatewayIntent) -> Payload:
    """Returns a message without its references, thread and reactions."""
    author = message.author
    hook = store.webhooks.get(message.origin.webhook_id or 0)
    payload: Payload = {
        "id": str(message.id),
        "channel_id": str(message.channel_id),
        "type": int(message.kind),
        "author": webhook_user_payload(hook.id, author.display_name) if hook else user_payload(author),
        "content": message.content,
        "mentions": [user_payload(each) for each in message.mentioned.users],
        "mention_roles": [str(each) for each in message.mentioned.roles],
        "mention_everyone": message.mentioned.everyone,
        "attachments": [attachment_payload(store, message.channel_id, each) for each in message.body.attachments],
        "embeds": [] if message.flags & MessageFlag.SUPPRESS_EMBEDS else list(message.body.embeds),
        "components": list(message.body.components),
        "timestamp": format_timestamp(message.timestamp),
        "edited_timestamp": format_optional_timestamp(message.state.edited),
        "flags": int(message.flags),
        "pinned": message.pinned,
        "tts": message.body.tts,
    }
    if message.body.poll is not None:
        payload["poll"] = _poll_payload(message.body.poll, reader.user)
    if message.body.snapshots:
        payload["message_snapshots"] = [_snapshot_payload(store, message, each) for each in message.body.snapshots]
    if not may_read(store, message, reader, intents):
        payload |= {"content": "", "embeds": [], "attachments": [], "components": []}
        payload.pop("poll", None)
    return payload | _extras(message) | dict(message.state.odd_fields)


def attachment_payload(store: SimStore, channel_id: int, file: SimAttachment) -> Payload:
    url = store.files.url(channel_id, file)
    payload: Payload = {
        "id": str(file.id),
        "filename": file.filename,
        "size": file.size_bytes,
        "url": url,
        "proxy_url": url,
    }
    size = _png_size(file.content)
    optional = {
        "content_type": file.content_type,
        "description": file.description,
        "title": file.title,
        "duration_secs": file.duration_s,
        "waveform": file.waveform,
        "ephemeral": file.ephemeral or None,
        "width": size[0] if size else None,
        "height": size[1] if size else None,
    }
    return payload | {key: value for key, value in optional.items() if value is not None}


def emoji_part(emoji: SimEmoji) -> Payload:
    part: Payload = {"id": id_or_none(emoji.id), "name": emoji.name}
    return part | {"animated": True} if emoji.animated else part


def _extras(message: SimMessage) -> Payload:
    extras: Payload = {}
    if message.body.stickers:
        extras["sticker_items"] = [
            {"id": str(each.id), "name": each.name, "format_type": each.format} for each in message.body.stickers
        ]
    if message.origin.webhook_id is not None:
        extras["webhook_id"] = str(message.origin.webhook_id)
    if message.origin.application_id is not None:
        extras["application_id"] = str(message.origin.application_id)
    if message.origin.interaction is not None:
        extras["interaction_metadata"] = message.origin.interaction
    if message.state.position is not None:
        extras["position"] = message.state.position
    reference = message.reference
    if reference is not None:
        part: Payload = {"type": reference.kind, "channel_id": str(reference.channel_id)}
        if reference.message_id is not None:
            part["message_id"] = str(reference.message_id)
        if reference.guild_id is not None:
            part["guild_id"] = str(reference.guild_id)
        extras["message_reference"] = part
    return extras


def _snapshot_payload(store: SimStore, message: SimMessage, snapshot: SimSnapshot) -> Payload:
    return {
        "message": {
            "type": int(snapshot.kind),
            "content": snapshot.body.content,
            "mentions": [user_payload(each) for each in snapshot.mentions],
            "mention_roles": [],
            "attachments": [attachment_payload(store, message.channel_id, each) for each in snapshot.body.attachments],
            "embeds": list(snapshot.body.embeds),
            "timestamp": format_timestamp(snapshot.timestamp),
            "edited_timestamp": format_optional_timestamp(snapshot.edited),
            "flags": int(snapshot.flags),
            "components": [],
        }
    }


def _poll_payload(poll: SimPoll, reader: SimUser) -> Payload:
    answers: list[Payload] = []
    for number, (text, emoji) in enumerate(poll.answers, 1):
        media: Payload = {"text": text}
        answers.append({"answer_id": number, "poll_media": media | ({"emoji": emoji_part(emoji)} if emoji else {})})
    counts = [
        {"id": number, "count": len(users), "me_voted": reader in users}
        for number, users in sorted(poll.votes.items())
        if users
    ]
    return {
        "question": {"text": poll.question},
        "answers": answers,
        "expiry": format_timestamp(poll.expiry),
        "allow_multiselect": poll.multiple,
        "layout_type": 1,
        "results": {"answer_counts": counts, "is_finalized": poll.finalized},
    }


def _png_size(content: bytes) -> tuple[int, int] | None:
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or len(content) < 24:
        return None
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")
