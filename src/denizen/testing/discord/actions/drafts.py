"""A message before it is sent, by people, bots and webhooks alike, and whom its text mentions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from denizen.testing.discord.state.access import has_permission
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.messages import SimAttachment, SimMentions, SimMessage, SimPollDraft, SimReference
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.permissions import DiscordPermission
from denizen.testing.discord.state.store import SimStore

_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_USER = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_EVERYONE = re.compile(r"@(?:everyone|here)\b")


@dataclass(frozen=True, slots=True)
class AllowedMentions:
    """The mentions in a text that count. `parse` names whole kinds: users, roles, everyone."""

    parse: frozenset[str] = frozenset({"users", "roles", "everyone"})
    users: frozenset[int] = frozenset()
    roles: frozenset[int] = frozenset()
    replied_user: bool = True


@dataclass(slots=True)
class MessageDraft:
    """A message to be sent. `reference` is a reply (kind 0) or a forward (kind 1)."""

    content: str = ""
    embeds: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    components: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    attachments: list[SimAttachment] = field(default_factory=list[SimAttachment])
    sticker_ids: Sequence[int] = ()
    poll: SimPollDraft | None = None
    reference: SimReference | None = None
    mentions: AllowedMentions = AllowedMentions()
    nonce: str | int | None = None
    enforce_nonce: bool = False
    flags: int = 0
    tts: bool = False

    @property
    def empty(self) -> bool:
        forwards = self.reference is not None and self.reference.kind == 1
        return not (
            self.content
            or self.embeds
            or self.components
            or self.attachments
            or self.sticker_ids
            or self.poll
            or forwards
        )


@dataclass(slots=True)
class MessageEdit:
    """Changes to a message; None leaves a field. `keep` are ids of attachments that stay, None for all of them."""

    content: str | None = None
    embeds: list[dict[str, Any]] | None = None
    components: list[dict[str, Any]] | None = None
    flags: int | None = None
    keep: Sequence[int] | None = None
    files: list[SimAttachment] = field(default_factory=list[SimAttachment])
    mentions: AllowedMentions = AllowedMentions()

    @property
    def only_flags(self) -> bool:
        rest = (self.content, self.embeds, self.components, self.keep)
        return self.flags is not None and all(each is None for each in rest) and not self.files


def find_mentions(store: SimStore, channel: SimChannel, message: SimMessage, allowed: AllowedMentions) -> SimMentions:
    """Returns whom a message mentions, as rights allow for roles and @everyone. Mentions inside code do not count."""
    text = _CODE.sub("", message.content)
    users: dict[int, SimUser] = {}
    for user_id in map(int, _USER.findall(text)):
        user = store.users.get(user_id)
        if user and ("users" in allowed.parse or user_id in allowed.users):
            users[user_id] = user
    reference = message.reference
    if allowed.replied_user and reference and reference.kind == 0 and reference.message_id:
        replied = store.find_message(reference.channel_id, reference.message_id)
        if replied is not None and replied.origin.webhook_id is None and replied.author is not message.author:
            users.setdefault(replied.author.id, replied.author)
    guild = store.get_guild_for(channel)
    if guild is None:
        return SimMentions(list(users.values()))
    loud = message.origin.webhook_id is not None or has_permission(
        store, message.author, channel, DiscordPermission.MENTION_EVERYONE
    )
    roles = [
        number
        for number in dict.fromkeys(map(int, _ROLE.findall(text)))
        if (role := guild.roles.get(number)) is not None
        and ("roles" in allowed.parse or number in allowed.roles)
        and (loud or role.mentionable)
    ]
    everyone = loud and "everyone" in allowed.parse and bool(_EVERYONE.search(text))
    return SimMentions(list(users.values()), roles, everyone)
