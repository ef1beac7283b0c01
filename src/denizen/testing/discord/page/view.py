"""The world as JSON, limited to what one person may see. Ids are text, times ISO 8601."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from denizen.testing.discord.state.access import can_see, has_permission
from denizen.testing.discord.state.channels import FORUMS, WRITABLE, ChannelKind, SimChannel
from denizen.testing.discord.state.clock import format_optional_timestamp, format_timestamp
from denizen.testing.discord.state.guilds import SimGuild
from denizen.testing.discord.state.interactions import SimCommand
from denizen.testing.discord.state.messages import MessageFlag, SimAttachment, SimMessage, SimPoll, SimReaction
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.permissions import P
from denizen.testing.discord.state.store import SimStore

View = dict[str, Any]

_SNIPPET = 160


class PersonView:
    """The part of a store that `viewer` sees."""

    def __init__(self, store: SimStore, viewer: SimUser) -> None:
        self.viewer = viewer
        self._store = store

    def see_world(self) -> View:
        """Returns everything but the messages."""
        return {
            "me": str(self.viewer.id),
            "cdn_url": self._store.files.cdn_url,
            "file_size_bytes": self._store.rules.file_size_bytes,
            "people": [self._person(each) for each in self._store.users.values()],
            "guilds": [self._guild(each) for each in self._store.guilds.values() if self.viewer.id in each.members],
            "direct_messages": [
                self._channel(each)
                for each in self._store.channels.values()
                if each.is_dm and self.viewer in each.recipients
            ],
        }

    def sees(self, message: SimMessage) -> bool:
        """Whether the message exists and is meant for this person."""
        channel = self._store.channels.get(message.channel_id)
        if message.state.deleted or channel is None or not can_see(self._store, self.viewer, channel):
            return False
        return not message.ephemeral or message.origin.seen_by is self.viewer

    def see_messages(self, messages: Sequence[SimMessage]) -> list[View]:
        return [self.see_message(each) for each in messages if self.sees(each)]

    def see_message(self, message: SimMessage) -> View:
        thread = self._store.find_thread_for(message)
        guild = self._store.guilds.get(message.guild_id or 0)
        roles = guild.members[self.viewer.id].roles if guild and self.viewer.id in guild.members else []
        return {
            "id": str(message.id),
            "channel_id": str(message.channel_id),
            "kind": message.kind.name.lower(),
            "author_id": str(message.author.id),
            "text": message.content,
            "time": format_timestamp(message.timestamp),
            "edited": format_optional_timestamp(message.state.edited),
            "ephemeral": message.ephemeral,
            "loading": message.loading,
            "pinned": message.pinned,
            "for_me": self.viewer in message.mentioned.users
            or message.mentioned.everyone
            or any(each in roles for each in message.mentioned.roles),
            "reply": self._reply(message),
            "used": _used(message),
            "embeds": [] if message.flags & MessageFlag.SUPPRESS_EMBEDS else message.body.embeds,
            "components": message.body.components,
            "attachments": [self._attachment(message, each) for each in message.body.attachments],
            "stickers": [each.name for each in message.body.stickers],
            "reactions": [self._reaction(each) for each in message.state.reactions],
            "forwarded": [
                {
                    "text": each.body.content,
                    "embeds": list(each.body.embeds),
                    "attachments": [self._attachment(message, file) for file in each.body.attachments],
                }
                for each in message.body.snapshots
            ],
            "poll": self._poll(message.body.poll) if message.body.poll else None,
            "thread": None if thread is None or thread.id == message.channel_id else self._thread_line(thread),
        }

    def see_command(self, command: SimCommand) -> View:
        """Returns a command, with `options` as the application registered them."""
        application = self._store.applications[command.application_id]
        return {
            "name": command.name,
            "kind": command.kind,
            "application_id": str(application.id),
            "application": application.name,
            "description": command.fields.get("description") or "",
            "options": command.fields.get("options") or [],
        }

    def mark_mentions(self, text: str, channel: SimChannel) -> str:
        """Returns the text as Discord's own client sends it: `@Name` and `#name` are mentions, but not in code. Longer
        names come first: `@Ana Maria` is not `@Ana`.
        """
        guild = self._store.get_guild_for(channel)
        people = [self._store.users[each] for each in guild.members] if guild else channel.recipients
        marks = {f"@{name}".lower(): each.mention for each in people for name in (each.name, self._name(each))}
        for each in guild.roles.values() if guild else ():
            if each.mentionable:
                marks.setdefault(f"@{each.name}".lower(), each.mention)
        for each in self._visible(guild) if guild else ():
            marks.setdefault(f"#{each.name}".lower(), each.mention)
        names = "|".join(re.escape(name) for name in sorted(marks, key=len, reverse=True))
        mention = re.compile(rf"```.*?```|`[^`\n]+`|(?<![\w<])(?P<name>{names})(?![\w-])", re.IGNORECASE | re.DOTALL)
        return mention.sub(lambda found: marks[found["name"].lower()] if found["name"] else found[0], text)

    def _person(self, user: SimUser) -> View:
        status = user.presence.status if user.presence else "offline"
        online = not user.bot or status not in ("offline", "invisible")
        return {"id": str(user.id), "name": self._name(user), "bot": user.bot, "online": online}

    def _name(self, user: SimUser) -> str:
        for guild in self._store.guilds.values():
            if member := guild.members.get(user.id):
                return member.display_name
        return user.display_name

    def _guild(self, guild: SimGuild) -> View:
        return {
            "id": str(guild.id),
            "name": guild.name,
            "members": [str(each) for each in guild.members],
            "roles": [
                {"id": str(each.id), "name": each.name, "mentionable": each.mentionable}
                for each in guild.roles.values()
                if each is not guild.everyone
            ],
            "channels": [self._channel(each) for each in self._visible(guild)],
        }

    def _visible(self, guild: SimGuild) -> Iterator[SimChannel]:
        """Returns the visible channels in their order, threads after all channels."""
        yield from sorted(
            (each for each in guild.channels.values() if can_see(self._store, self.viewer, each)),
            key=lambda each: each.position,
        )
        yield from (each for each in guild.threads.values() if can_see(self._store, self.viewer, each))

    def _channel(self, channel: SimChannel) -> View:
        sends = P.SEND_MESSAGES_IN_THREADS if channel.is_thread else P.SEND_MESSAGES
        allowed = has_permission(self._store, self.viewer, channel, sends)
        thread = channel.thread
        locked = (
            thread is not None
            and thread.locked
            and not has_permission(self._store, self.viewer, channel, P.MANAGE_THREADS)
        )
        everyone = channel.overwrites.get(channel.guild_id or 0)
        private = channel.kind is ChannelKind.PRIVATE_THREAD or bool(everyone and everyone.deny & P.VIEW_CHANNEL)
        return {
            "id": str(channel.id),
            "name": channel.name,
            "kind": channel.kind.name.lower(),
            "is_thread": channel.is_thread,
            "is_forum": channel.kind in FORUMS,
            "is_private": private,
            "is_archived": thread is not None and thread.archived,
            "parent_id": str(channel.parent.id) if channel.parent else None,
            "topic": channel.settings.topic or "",
            "may_write": allowed and channel.kind in (WRITABLE | FORUMS) and not locked,
            "may_manage": has_permission(self._store, self.viewer, channel, P.MANAGE_MESSAGES),
            "with": [str(each.id) for each in channel.recipients if each is not self.viewer],
            "last_message_id": str(channel.history.last_id) if channel.history.last_id else None,
        }

    def _thread_line(self, thread: SimChannel) -> View:
        count = thread.thread.sent if thread.thread else 0
        return {"id": str(thread.id), "name": thread.name, "count": count}

    def _reply(self, message: SimMessage) -> View | None:
        reference = message.reference
        if reference is None or reference.kind != 0 or reference.message_id is None:
            return None
        target = self._store.find_message(reference.channel_id, reference.message_id)
        if target is None or not self.sees(target):
            return {"id": str(reference.message_id), "author_id": None, "text": ""}
        text = target.content or ", ".join(each.filename for each in target.body.attachments)
        return {"id": str(target.id), "author_id": str(target.author.id), "text": text[:_SNIPPET]}

    def _attachment(self, message: SimMessage, file: SimAttachment) -> View:
        return {
            "name": file.filename,
            "url": self._store.files.url(message.channel_id, file),
            "type": file.content_type or "",
            "size_bytes": file.size_bytes,
            "description": file.description or "",
        }

    def _reaction(self, reaction: SimReaction) -> View:
        return {
            "key": reaction.emoji.key,
            "name": reaction.emoji.name if reaction.emoji.id is None else f":{reaction.emoji.name}:",
            "mine": self.viewer in reaction.users,
            "people": [str(each.id) for each in reaction.users],
        }

    def _poll(self, poll: SimPoll) -> View:
        return {
            "question": poll.question,
            "open": not poll.finalized and poll.expiry > self._store.clock.now(),
            "answers": [
                {
                    "id": number,
                    "text": " ".join([*([emoji.name] if emoji else []), text]),
                    "count": len(poll.votes.get(number, [])),
                    "mine": self.viewer in poll.votes.get(number, []),
                }
                for number, (text, emoji) in enumerate(poll.answers, 1)
            ],
        }


def _used(message: SimMessage) -> View | None:
    """Returns who used which command, for the message that answers it."""
    about = message.origin.interaction
    if about is None or "name" not in about:
        return None
    slash = "/" if about["command_type"] == 1 else ""
    return {"person_id": about["user"]["id"], "command": slash + about["name"]}
