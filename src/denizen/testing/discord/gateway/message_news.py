"""What bots are told about messages: sent, edited, deleted, reacted to, voted on, pinned; and about typing."""

from __future__ import annotations

from collections.abc import Iterable

from denizen.testing.discord.gateway.news import Ear, News, either, in_channel, member_part, place
from denizen.testing.discord.payloads.messages import emoji_part, event_payload, with_nonce
from denizen.testing.discord.payloads.people import Payload
from denizen.testing.discord.state import changes
from denizen.testing.discord.state.channels import Channel
from denizen.testing.discord.state.intents import Intent
from denizen.testing.discord.state.messages import Message
from denizen.testing.discord.state.realm import Realm
from denizen.testing.discord.state.snowflakes import stamp_or_none


def _message_news(realm: Realm, name: str, channel: Channel, message: Message) -> News:
    def body(ear: Ear) -> Payload:
        payload = event_payload(realm, message, ear.application, ear.intents)
        return with_nonce(message, payload) if name == "MESSAGE_CREATE" else payload

    if message.ephemeral:
        own = message.application_id
        return News(name, Intent.DIRECT_MESSAGES, None, lambda ear: ear.application.id == own, body)
    intents = either(channel, Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES)
    return News(name, intents, channel.guild_id, in_channel(realm, channel), body)


def message_sent(change: changes.MessageSent, realm: Realm) -> Iterable[News]:
    channel = change.channel
    yield _message_news(realm, "MESSAGE_CREATE", channel, change.message)


def message_edited(change: changes.MessageEdited, realm: Realm) -> Iterable[News]:
    yield _message_news(realm, "MESSAGE_UPDATE", change.channel, change.message)


def messages_deleted(change: changes.MessagesDeleted, realm: Realm) -> Iterable[News]:
    channel = change.channel
    intents = either(channel, Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES)
    ids = [str(each.id) for each in change.messages]
    if change.bulk:
        yield News(
            "MESSAGE_DELETE_BULK",
            intents,
            channel.guild_id,
            in_channel(realm, channel),
            lambda _: {"ids": ids} | place(channel),
        )
        return
    for message in change.messages:
        gone = {"id": str(message.id)} | place(channel)
        if message.ephemeral:
            continue
        yield News("MESSAGE_DELETE", intents, channel.guild_id, in_channel(realm, channel), lambda _, body=gone: body)


def reacted(change: changes.Reacted, realm: Realm) -> Iterable[News]:
    channel, message = change.channel, change.message
    body: Payload = {
        "user_id": str(change.user.id),
        "message_id": str(message.id),
        "emoji": emoji_part(change.emoji),
        "burst": False,
        "type": 0,
        **place(channel),
    }
    if change.added:
        body |= {"message_author_id": str(message.author.id), **member_part(realm, channel, change.user.id)}
    name = "MESSAGE_REACTION_ADD" if change.added else "MESSAGE_REACTION_REMOVE"
    intents = either(channel, Intent.GUILD_MESSAGE_REACTIONS, Intent.DIRECT_MESSAGE_REACTIONS)
    yield News(name, intents, channel.guild_id, in_channel(realm, channel), lambda _: body)


def reactions_cleared(change: changes.ReactionsCleared, realm: Realm) -> Iterable[News]:
    channel = change.channel
    body = {"message_id": str(change.message.id)} | place(channel)
    name = "MESSAGE_REACTION_REMOVE_ALL"
    if change.emoji is not None:
        name, body["emoji"] = "MESSAGE_REACTION_REMOVE_EMOJI", emoji_part(change.emoji)
    intents = either(channel, Intent.GUILD_MESSAGE_REACTIONS, Intent.DIRECT_MESSAGE_REACTIONS)
    yield News(name, intents, channel.guild_id, in_channel(realm, channel), lambda _: body)


def voted(change: changes.Voted, realm: Realm) -> Iterable[News]:
    channel = change.channel
    ids = {"user_id": str(change.user.id), "message_id": str(change.message.id), "answer_id": change.answer_id}
    name = "MESSAGE_POLL_VOTE_ADD" if change.added else "MESSAGE_POLL_VOTE_REMOVE"
    intents = either(channel, Intent.GUILD_MESSAGE_POLLS, Intent.DIRECT_MESSAGE_POLLS)
    yield News(name, intents, channel.guild_id, in_channel(realm, channel), lambda _: ids | place(channel))


def pins_changed(change: changes.PinsChanged, realm: Realm) -> Iterable[News]:
    channel = change.channel
    intents = either(channel, Intent.GUILDS, Intent.DIRECT_MESSAGES)
    body = place(channel) | {"last_pin_timestamp": stamp_or_none(channel.last_pin_at)}
    yield News("CHANNEL_PINS_UPDATE", intents, channel.guild_id, in_channel(realm, channel), lambda _: body)


def typing(change: changes.Typing, realm: Realm) -> Iterable[News]:
    channel = change.channel
    body: Payload = {
        "user_id": str(change.user.id),
        "timestamp": int(change.at.timestamp()),
        **place(channel),
        **member_part(realm, channel, change.user.id),
    }
    intents = either(channel, Intent.GUILD_MESSAGE_TYPING, Intent.DIRECT_MESSAGE_TYPING)
    yield News("TYPING_START", intents, channel.guild_id, in_channel(realm, channel), lambda _: body)
