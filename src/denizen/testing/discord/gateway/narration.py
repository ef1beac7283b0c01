"""From a change to the events that follow from it, in order. Some changes concern no bot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from denizen.testing.discord.gateway import channel_news, guild_news, message_news
from denizen.testing.discord.gateway.news import News
from denizen.testing.discord.state import changes
from denizen.testing.discord.state.changes import Change
from denizen.testing.discord.state.realm import Realm

_Teller = Callable[[Any, Realm], Iterable[News]]
_TELLERS: Mapping[type[Any], _Teller] = MappingProxyType(
    {
        changes.MessageSent: message_news.message_sent,
        changes.MessageEdited: message_news.message_edited,
        changes.MessagesDeleted: message_news.messages_deleted,
        changes.Reacted: message_news.reacted,
        changes.ReactionsCleared: message_news.reactions_cleared,
        changes.Voted: message_news.voted,
        changes.PinsChanged: message_news.pins_changed,
        changes.Typing: message_news.typing,
        changes.ChannelChanged: channel_news.channel_changed,
        changes.ThreadChanged: channel_news.thread_changed,
        changes.ThreadMembersChanged: channel_news.thread_members_changed,
        changes.InviteChanged: channel_news.invite_changed,
        changes.WebhooksChanged: channel_news.webhooks_changed,
        changes.GuildChanged: guild_news.guild_changed,
        changes.GuildAvailability: guild_news.guild_availability,
        changes.MemberChanged: guild_news.member_changed,
        changes.BanChanged: guild_news.ban_changed,
        changes.RoleChanged: guild_news.role_changed,
        changes.ExpressionsChanged: guild_news.expressions_changed,
        changes.EventChanged: guild_news.event_changed,
        changes.PresenceChanged: guild_news.presence_changed,
        changes.Interacted: guild_news.interacted,
    }
)


def narrate(change: Change, realm: Realm) -> Iterable[News]:
    teller = _TELLERS.get(type(change))
    return () if teller is None else teller(change, realm)
