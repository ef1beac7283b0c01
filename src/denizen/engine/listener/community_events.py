"""Tells the bus what happens on a platform. Nothing is gathered or kept that no listener waits for.

What agents themselves do is no event, so that a listener cannot trigger itself with its own post. Of people who opted
out, and in rooms that did, nothing is kept.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from denizen.domain.archiving import is_opted_out, is_room_opted_out
from denizen.domain.clock import Clock
from denizen.domain.cloud_event import MESSAGE, REACTION, CloudEvent, event_key
from denizen.domain.ids import AgentName, derive
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Room
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.event_bus.bus import EventBus
from denizen.ports.channel import Channel, CommunityEvent, IncomingMessage, ReactionChange

ECHO_WINDOW = timedelta(seconds=10)
"""Another account's report of the same thing comes within this time."""
MAX_REPORTS = 1000


class CommunityEvents:
    """One for a process, which all accounts tell what happens."""

    def __init__(self, bus: EventBus, clock: Clock, mirror: ArchiveMirror, channels: ConnectedAccounts) -> None:
        self._bus = bus
        self._clock = clock
        self._mirror = mirror
        self._channels = channels
        self._reports: OrderedDict[str, tuple[AgentName, datetime]] = OrderedDict()

    def awaits(self, platform: str, kind: str, guild: str = "") -> bool:
        """Tells whether any listener waits for it; without a guild, in any."""
        return self._bus.awaits(f"{platform}.{kind}", f"/{platform}/{guild}")

    async def add_message(self, message: IncomingMessage) -> None:
        """Adds a new message of a community. Direct talk is no event, nor is an edit."""
        post, room = message.post, message.room
        if not post.guild or message.is_edit or not self.awaits(room.platform, MESSAGE, post.guild):
            return
        if message.is_mine or post.author.id in self._list_own(room.platform):
            return
        chosen = await self._mirror.load_opt_outs(room.platform)
        if is_opted_out(post, message.roles, self._mirror.policy, chosen):
            return
        data = _describe(room) | {
            "message": {"id": post.id, "text": post.text, "reply_to": post.reply_to},
            "user": _describe_user(
                post.author.id, post.author.name, is_bot=post.author.is_bot, roles=sorted(message.roles)
            ),
        }
        user = post.author.id
        await self._publish(room.platform, MESSAGE, room.guild, f"message:{post.id}", room.id, user, data)

    async def forget_messages(self, room: Room, post_ids: Sequence[str]) -> None:
        """Takes the events of messages that were deleted out of the log."""
        if room.guild:
            source = f"/{room.platform}/{room.guild}"
            await self._bus.forget([event_key(source, f"message:{post_id}") for post_id in post_ids])

    async def add_reaction(self, channel: Channel, reaction: ReactionChange) -> None:
        room = reaction.room
        if not room.guild or not self.awaits(room.platform, REACTION, room.guild):
            return
        data = _describe(room) | {
            "message": {"id": reaction.message_id},
            "reaction": {"emoji": reaction.emoji, "is_on": reaction.is_on},
            "user": _describe_user(
                reaction.user_id, reaction.user_name, is_bot=reaction.is_bot, roles=sorted(reaction.roles)
            ),
        }
        chosen = await self._mirror.load_opt_outs(room.platform)
        if is_room_opted_out(room, self._mirror.policy, chosen):
            return
        told = CommunityEvent(
            kind=REACTION, guild=room.guild, subject=reaction.message_id, user_id=reaction.user_id, data=data
        )
        await self.add(channel, told)

    async def add(self, channel: Channel, told: CommunityEvent) -> None:
        """Adds what an account tells of a community."""
        platform = channel.platform
        if not self.awaits(platform, told.kind, told.guild) or (
            told.user_id and told.user_id in self._list_own(platform)
        ):
            return
        chosen = await self._mirror.load_opt_outs(platform)
        if told.user_id in (self._mirror.policy.opt_outs | chosen).users:
            return
        key = told.id or self._name_report(channel.agent, told)
        if key:
            await self._publish(platform, told.kind, told.guild, key, told.subject, told.user_id, told.data)

    def _name_report(self, account: AgentName, told: CommunityEvent) -> str:
        """Returns an id for what the platform does not name; empty for another account's report of the same."""
        told_as = derive("report", told.kind, told.guild, json.dumps(told.data, sort_keys=True))
        now = self._clock.now()
        known = self._reports.pop(told_as, None)
        is_echo = known is not None and known[0] != account and now - known[1] < ECHO_WINDOW
        self._reports[told_as] = known if known is not None and is_echo else (account, now)
        while len(self._reports) > MAX_REPORTS:
            self._reports.popitem(last=False)
        return "" if is_echo else f"{told_as}:{now.isoformat()}"

    async def _publish(
        self, platform: str, kind: str, guild: str, key: str, subject: str, user: str, data: JsonObject
    ) -> None:
        actor = Principal(PrincipalKind.PLATFORM_USER, f"{platform}:{user}", "").key if user else ""
        await self._bus.publish(
            CloudEvent(
                id=key,
                source=f"/{platform}/{guild}",
                type=f"{platform}.{kind}",
                time=self._clock.now(),
                subject=subject,
                actor=actor,
                data=data,
            )
        )

    def _list_own(self, platform: str) -> Collection[str]:
        return {channel.user_id for channel in self._channels.list_platform(platform)}


def _describe(room: Room) -> JsonObject:
    channel, parent = room.parent or room.id, room.parent_name if room.is_thread else room.name
    described: JsonObject = {
        "guild": {"id": room.guild, "name": room.guild_name},
        "channel": {"id": channel, "name": parent, "mention": f"<#{channel}>"},
    }
    if room.is_thread:
        described["thread"] = {"id": room.id, "name": room.name, "mention": f"<#{room.id}>"}
    return described


def _describe_user(user_id: str, name: str, *, is_bot: bool, roles: Collection[str]) -> JsonObject:
    return {"id": user_id, "name": name, "mention": f"<@{user_id}>", "is_bot": is_bot, "roles": list(roles)}
