"""What one session sees of a guild, and what it is told when that changes: channels that open, close, their threads."""

from __future__ import annotations

from collections.abc import Iterator

from denizen.testing.discord.payloads.channels import channel_payload, gateway_channel_payload, thread_member_payload
from denizen.testing.discord.payloads.people import Payload
from denizen.testing.discord.state import changes
from denizen.testing.discord.state.access import sees, shows
from denizen.testing.discord.state.changes import Change
from denizen.testing.discord.state.channels import Channel
from denizen.testing.discord.state.guilds import Guild
from denizen.testing.discord.state.people import User
from denizen.testing.discord.state.realm import Realm


class Sight:
    """The channels that one bot has in full, by guild."""

    def __init__(self, realm: Realm, bot: User) -> None:
        self._realm = realm
        self._bot = bot
        self._shown: dict[int, set[int]] = {}

    def look(self, guild: Guild) -> None:
        """Takes in the guild as it is told in GUILD_CREATE."""
        self._shown[guild.id] = self._find(guild)

    def look_again(self, guild: Guild, told: Channel | None) -> Iterator[tuple[str, Payload]]:
        """The events for channels that opened or closed since. `told` has had its event already."""
        before, now = self._shown.get(guild.id), self._find(guild)
        self._shown[guild.id] = now
        if before is None:
            return
        for channel in guild.channels.values():
            if (channel.id in before) == (channel.id in now):
                continue
            if channel is not told:
                yield "CHANNEL_UPDATE", gateway_channel_payload(self._realm, channel, self._bot)
            threads = self._threads(guild, channel)
            if channel.id in now and threads:
                yield "THREAD_LIST_SYNC", self._list(guild, channel, threads)

    def _find(self, guild: Guild) -> set[int]:
        return {each.id for each in guild.channels.values() if shows(self._realm, self._bot, each)}

    def _threads(self, guild: Guild, parent: Channel) -> list[Channel]:
        active = [each for each in guild.threads.values() if each.thread and not each.thread.archived]
        return [each for each in active if each.parent is parent and sees(self._realm, self._bot, each)]

    def _list(self, guild: Guild, parent: Channel, threads: list[Channel]) -> Payload:
        own = [each for each in threads if each.thread and self._bot.id in each.thread.members]
        return {
            "guild_id": str(guild.id),
            "channel_ids": [str(parent.id)],
            "threads": [channel_payload(each, self._bot) for each in threads],
            "members": [thread_member_payload(self._realm, each, self._bot) for each in own],
        }


def find_touched(change: Change, realm: Realm) -> tuple[Guild | None, Channel | None]:
    """The guild in which somebody may see more or less after this change, and the channel that it is about."""
    match change:
        case changes.ChannelChanged(channel, _):
            return realm.guild_of(channel), channel
        case changes.MemberChanged(guild, _, "updated" | "joined") | changes.RoleChanged(guild, _, _):
            return guild, None
        case _:
            return None, None
