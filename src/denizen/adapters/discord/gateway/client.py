"""The gateway client: discord.py's, with as small a cache as an account needs. It hands its events to `events`.

discord.py runs each handler in a task of its own, in the order of arrival; no handler here waits for anything.
Sharding is automatic: Discord decides on the number of shards.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import anyio
import discord
import yarl
from anyio.abc import TaskGroup

from denizen.adapters.discord.client.errors import VENDOR_ERRORS
from denizen.adapters.discord.client.http import CancellableHTTPClient
from denizen.adapters.discord.client.settings import DiscordAccountSettings
from denizen.adapters.discord.gateway.community_events import (
    describe_join,
    describe_leave,
    describe_role,
    describe_room,
    list_role_changes,
    list_thread_changes,
)
from denizen.adapters.discord.gateway.events import DiscordEvents
from denizen.adapters.discord.gateway.tolerance import TolerantParsing
from denizen.domain.cloud_event import CHANNEL, JOIN, LEAVE, ROLE, THREAD

if TYPE_CHECKING:  # the packages of the extra `voice` may be missing
    from denizen.adapters.discord.voice.desk import VoiceDesk

_log = logging.getLogger("denizen.discord")

# discord.py waits out shorter limits itself and raises RateLimited for longer ones.
_LONGEST_RATE_LIMIT_S = 60.0
# A large guild sends its members in many chunks, so this is generous; nobody waits for them.
_MEMBERS_TIMEOUT_S = 120.0
_REQUEST_MEMBERS = 8
"""The opcode of a request for members."""
_MAX_BACKOFF_EXPONENT = 4
"""The pause before a reconnection is at most 2 ** 4 seconds."""
_MAX_MEMBERS = 50_000
"""The members of larger guilds would fill the memory, so they are not loaded, and less is shown."""


class InteractionReceiver(Protocol):
    """Takes the interactions of a login."""

    def take(self, interaction: discord.Interaction) -> None: ...


MakeHandlers: TypeAlias = Callable[[discord.Client], tuple[DiscordEvents, InteractionReceiver]]


class GatewayClient(discord.AutoShardedClient):
    """discord.py's client for one login. `make_handlers` builds the two objects that its events go to."""

    def __init__(
        self, intents: discord.Intents, settings: DiscordAccountSettings, tasks: TaskGroup, make_handlers: MakeHandlers
    ) -> None:
        self._settings = settings
        self._tasks = tasks
        members = discord.MemberCacheFlags.none()
        members.joined = intents.members
        members.voice = intents.voice_states
        super().__init__(
            intents=intents,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=members,
            allowed_mentions=discord.AllowedMentions.none(),
            guild_ready_timeout=settings.ready_wait_s,
        )
        self.voice: VoiceDesk | None = None
        """The voice channels, where the account has a voice."""
        self._events, self._interactions = make_handlers(self)

    @property
    def is_listening(self) -> bool:
        """Whether all shards are connected, so that events come in."""
        return self.is_ready() and not any(shard.is_closed() for shard in self.shards.values())

    def count_shards(self) -> tuple[int, int]:
        """Returns how many shards are connected, and of how many."""
        shards = self.shards.values()
        return sum(not shard.is_closed() for shard in shards), len(shards)

    def _get_state(self, **options: Any) -> Any:  # noqa: ANN401 - as discord.py has it
        """Replaces the HTTP client. discord.py's constructor calls this right after it has made its own."""
        self.http = CancellableHTTPClient(self.loop, self._tasks, longest_rate_limit_s=_LONGEST_RATE_LIMIT_S)
        state = super()._get_state(**options)
        state.parsers["RATE_LIMITED"] = self._heed_rate_limit  # discord.py does not know this event
        TolerantParsing(state)
        return state

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        if not initial:
            await anyio.sleep(self._settings.identify_pause_s)

    async def launch_shard(self, gateway: yarl.URL, shard_id: int, *, initial: bool = False) -> None:
        """Connects a shard. A configured gateway takes precedence over the one that the REST side names."""
        configured = self._settings.endpoints.gateway_url
        await super().launch_shard(yarl.URL(configured) if configured else gateway, shard_id, initial=initial)
        if (shard := self.get_shard(shard_id)) is not None:
            # discord.py doubles its pauses up to 17 minutes, and stays away so long after Discord is back.
            cast("Any", shard)._parent._backoff._max = _MAX_BACKOFF_EXPONENT  # noqa: SLF001

    async def on_error(self, event_method: str, /, *args: object, **kwargs: object) -> None:
        """Logs a failing handler; later events are handled all the same."""
        _log.exception("%s failed", event_method)

    async def on_shard_connect(self, shard_id: int) -> None:
        self._events.start_shard(shard_id, shards=self.shard_count or 1)

    async def on_shard_ready(self, shard_id: int) -> None:
        self._events.finish_shard(shard_id)

    async def on_guild_available(self, guild: discord.Guild) -> None:
        self._events.add_guild(guild)
        self._tasks.start_soon(self._load_members, guild)

    async def on_guild_join(self, guild: discord.Guild) -> None:
        self._events.add_guild(guild)
        self._tasks.start_soon(self._load_members, guild)

    async def _load_members(self, guild: discord.Guild) -> None:
        """Loads the members of a guild in the background. Without all members `guild.audience` is less exact."""
        if not self.intents.members or guild.chunked or (guild.member_count or 0) > _MAX_MEMBERS:
            return
        try:
            with anyio.fail_after(_MEMBERS_TIMEOUT_S):
                await guild.chunk()
        except VENDOR_ERRORS as error:
            _log.info("members of a guild not loaded", extra={"guild": guild.id, "why": type(error).__name__})

    def _heed_rate_limit(self, event: Mapping[str, Any]) -> None:
        """Asks for the members of a guild again, later: Discord answers such a request once in 30 s for each bot."""
        if event["opcode"] == _REQUEST_MEMBERS:
            meta, pause_s = event["meta"], float(event["retry_after"])
            self._tasks.start_soon(self._ask_members_again, int(meta["guild_id"]), meta.get("nonce"), pause_s)

    async def _ask_members_again(self, guild_id: int, nonce: str | None, pause_s: float) -> None:
        """Repeats the request that `guild.chunk` waits for, unless a reconnection has ended it meanwhile."""
        await anyio.sleep(pause_s)
        state = cast("Any", self._connection)
        pending = state._chunk_requests.get(guild_id)  # noqa: SLF001
        if pending is None or pending.nonce != nonce:
            return
        try:
            await state.chunker(guild_id, nonce=nonce)
        except VENDOR_ERRORS as error:
            _log.info("members of a guild not loaded", extra={"guild": guild_id, "why": type(error).__name__})

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        self._events.remove_guild(guild)

    async def on_message(self, message: discord.Message) -> None:
        self._events.add_message(message)

    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        self._events.edit_message(event.message)

    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        self._events.delete_messages(event.channel_id, (event.message_id,), event.guild_id)

    async def on_raw_bulk_message_delete(self, event: discord.RawBulkMessageDeleteEvent) -> None:
        self._events.delete_messages(event.channel_id, tuple(event.message_ids), event.guild_id)

    async def on_raw_reaction_add(self, event: discord.RawReactionActionEvent) -> None:
        self._events.change_reaction(event, is_on=True)

    async def on_raw_reaction_remove(self, event: discord.RawReactionActionEvent) -> None:
        self._events.change_reaction(event, is_on=False)

    async def on_member_join(self, member: discord.Member) -> None:
        self._events.add_event(member.guild, JOIN, lambda: [describe_join(member)])

    async def on_raw_member_remove(self, event: discord.RawMemberRemoveEvent) -> None:
        guild = self.get_guild(event.guild_id)
        if guild is not None:
            self._events.add_event(guild, LEAVE, lambda: [describe_leave(guild, event.user)])

    async def on_voice_state_update(
        self, member: discord.Member, before: discord.VoiceState, after: discord.VoiceState
    ) -> None:
        if self.voice is not None and before.channel != after.channel:
            await self.voice.note_move(member)

    async def on_member_update(self, before: discord.Member, after: discord.Member) -> None:
        self._events.add_event(after.guild, ROLE, lambda: list_role_changes(before, after))

    async def on_guild_role_create(self, role: discord.Role) -> None:
        self._events.add_event(role.guild, ROLE, lambda: [describe_role("created", role)])

    async def on_guild_role_update(self, before: discord.Role, after: discord.Role) -> None:
        if before.name != after.name:
            self._events.add_event(after.guild, ROLE, lambda: [describe_role("renamed", after)])

    async def on_guild_role_delete(self, role: discord.Role) -> None:
        self._events.add_event(role.guild, ROLE, lambda: [describe_role("deleted", role)])

    async def on_guild_channel_create(self, channel: discord.abc.GuildChannel) -> None:
        self._events.add_room(channel)
        self._events.add_event(channel.guild, CHANNEL, lambda: [describe_room("created", channel)])

    async def on_guild_channel_update(self, before: discord.abc.GuildChannel, after: discord.abc.GuildChannel) -> None:
        self._events.change_room(before, after)
        if before.name != after.name:
            self._events.add_event(after.guild, CHANNEL, lambda: [describe_room("renamed", after)])

    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        self._events.remove_room(channel.id, is_deleted=True)
        self._events.add_event(channel.guild, CHANNEL, lambda: [describe_room("deleted", channel)])

    async def on_thread_create(self, thread: discord.Thread) -> None:
        self._events.add_room(thread)
        self._events.add_event(thread.guild, THREAD, lambda: [describe_room("created", thread)])

    async def on_thread_join(self, thread: discord.Thread) -> None:
        self._events.add_room(thread)

    async def on_thread_update(self, before: discord.Thread, after: discord.Thread) -> None:
        self._events.change_room(before, after)
        self._events.add_event(after.guild, THREAD, lambda: list_thread_changes(before, after))

    async def on_raw_thread_update(self, event: discord.RawThreadUpdateEvent) -> None:
        """discord.py forgets a thread that is archived, so of one that is reopened only this tells."""
        guild = self.get_guild(event.guild_id)
        thread = guild.get_thread(event.thread_id) if guild and event.thread is None else None
        if thread is not None:
            self._events.add_event(thread.guild, THREAD, lambda: [describe_room("reopened", thread)])

    async def on_raw_thread_delete(self, event: discord.RawThreadDeleteEvent) -> None:
        self._events.remove_room(event.thread_id, is_deleted=True)
        if (thread := event.thread) is not None:
            self._events.add_event(thread.guild, THREAD, lambda: [describe_room("deleted", thread)])

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        self._interactions.take(interaction)
