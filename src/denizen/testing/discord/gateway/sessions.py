"""Gateway sessions: what a bot has identified as, the channels that it sees, and the numbered events that it can resume
from.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from denizen.testing.discord.gateway.events import EventReceiver, GatewayEvent, list_gateway_events
from denizen.testing.discord.payloads.channels import channel_payload, gateway_channel_payload, thread_member_payload
from denizen.testing.discord.payloads.guilds import guild_create_payload
from denizen.testing.discord.payloads.people import Payload, own_user_payload
from denizen.testing.discord.state import changes
from denizen.testing.discord.state.access import can_see, is_shown
from denizen.testing.discord.state.changes import PresenceChanged, SimChange
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.guilds import SimGuild
from denizen.testing.discord.state.people import GatewayIntent, SimApplication, SimPresence, SimUser, application_flags
from denizen.testing.discord.state.store import SimStore


@dataclass(slots=True)
class GatewayFaults:
    """The faults that a test has asked for. `duplicates` maps event names (None: any) to how many of the next ones come
    twice. While `holding`, events are numbered and kept. While `frozen`, nothing leaves and nothing is answered: the
    connection looks alive.
    """

    refusals: int = 0
    acks: bool = True
    holding: bool = False
    frozen: bool = False
    duplicates: dict[str | None, int] = field(default_factory=dict[str | None, int])
    heartbeat: timedelta = timedelta(milliseconds=41250)
    ack_delay_s: float = 0.02
    """If the acknowledgement came before discord.py has noted its heartbeat, the latency would look like 41 s."""
    zombie_check: bool = False
    """Whether connections close (4009) after one and a half heartbeat intervals of silence."""

    def duplicates_next(self, name: str) -> bool:
        """Whether this event comes twice. Uses up one of the duplicates."""
        for key in (name, None):
            if self.duplicates.get(key, 0) > 0:
                self.duplicates[key] -= 1
                return True
        return False


class VisibleChannels:
    """The channels that one bot has received in full, by guild."""

    def __init__(self, store: SimStore, bot: SimUser) -> None:
        self._store = store
        self._bot = bot
        self._shown: dict[int, set[int]] = {}

    def look(self, guild: SimGuild) -> None:
        """Notes the channels of a guild as GUILD_CREATE reports them."""
        self._shown[guild.id] = self._find(guild)

    def look_again(self, guild: SimGuild, told: SimChannel | None) -> Iterator[tuple[str, Payload]]:
        """Returns the events for channels that opened or closed since. `told` has had its event already."""
        before, now = self._shown.get(guild.id), self._find(guild)
        self._shown[guild.id] = now
        if before is None:
            return
        for channel in guild.channels.values():
            if (channel.id in before) == (channel.id in now):
                continue
            if channel is not told:
                yield "CHANNEL_UPDATE", gateway_channel_payload(self._store, channel, self._bot)
            threads = self._threads(guild, channel)
            if channel.id in now and threads:
                yield "THREAD_LIST_SYNC", self._list(guild, channel, threads)

    def _find(self, guild: SimGuild) -> set[int]:
        return {each.id for each in guild.channels.values() if is_shown(self._store, self._bot, each)}

    def _threads(self, guild: SimGuild, parent: SimChannel) -> list[SimChannel]:
        active = [each for each in guild.threads.values() if each.thread and not each.thread.archived]
        return [each for each in active if each.parent is parent and can_see(self._store, self._bot, each)]

    def _list(self, guild: SimGuild, parent: SimChannel, threads: list[SimChannel]) -> Payload:
        own = [each for each in threads if each.thread and self._bot.id in each.thread.members]
        return {
            "guild_id": str(guild.id),
            "channel_ids": [str(parent.id)],
            "threads": [channel_payload(each, self._bot) for each in threads],
            "members": [thread_member_payload(self._store, each, self._bot) for each in own],
        }


def find_touched(change: SimChange, store: SimStore) -> tuple[SimGuild | None, SimChannel | None]:
    """Returns the guild in which a change may open or close channels, and the channel that it is about."""
    match change:
        case changes.ChannelChanged(channel, _):
            return store.get_guild_for(channel), channel
        case changes.MemberChanged(guild, _, "updated" | "joined") | changes.RoleChanged(guild, _, _):
            return guild, None
        case _:
            return None, None


_KEPT = 10_000
"""The number of events that a session keeps. A bot that has missed more cannot resume."""


class SessionSocket(Protocol):
    """A websocket connection, as a session uses it."""

    def send(self, frame: str) -> None:
        """Sends as soon as possible, in order."""
        ...

    def close(self, code: int) -> None: ...
    def cut(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SentEvent:
    """One numbered event as it was sent."""

    sequence: int
    name: str
    frame: str

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.frame)["d"]
        return body


@dataclass(slots=True, eq=False)
class GatewaySession:
    """One shard of one bot."""

    id: str
    application: SimApplication
    intents: GatewayIntent
    shard: tuple[int, int]
    faults: GatewayFaults
    visible: VisibleChannels
    line: SessionSocket | None = None
    sequence: int = 0
    events: list[SentEvent] = field(default_factory=list[SentEvent])
    held: list[SentEvent] = field(default_factory=list[SentEvent])

    @property
    def receiver(self) -> EventReceiver:
        return EventReceiver(self.application, self.intents)

    def covers(self, guild_id: int | None) -> bool:
        number, count = self.shard
        return (0 if guild_id is None else (guild_id >> 22) % count) == number

    def wants(self, news: GatewayEvent) -> bool:
        heard = not news.intents or bool(news.intents & self.intents)
        return heard and self.covers(news.guild_id) and news.reaches(self.receiver)

    def push(self, name: str, body: Mapping[str, Any]) -> None:
        """Numbers an event and sends it, or keeps it for the next connection."""
        self.sequence += 1
        frame = json.dumps({"op": 0, "s": self.sequence, "t": name, "d": body})
        event = SentEvent(self.sequence, name, frame)
        self.events.append(event)
        if len(self.events) > _KEPT:
            del self.events[: _KEPT // 2]
        if self.faults.holding:
            self.held.append(event)
            return
        self._send(event)

    def release(self) -> None:
        """Sends what was held back."""
        held, self.held = self.held, []
        for event in held:
            self._send(event)

    def can_replay(self, after: int) -> bool:
        """Whether every event after that number is still available."""
        return not self.events or after >= self.events[0].sequence - 1

    def replay(self, after: int) -> None:
        """Sends all events after that number again, in order."""
        missed = [event for event in self.events if event.sequence > after]
        self.held = missed if self.faults.holding else []
        for event in missed if not self.faults.holding else ():
            if self.line is not None:
                self.line.send(event.frame)

    def _send(self, event: SentEvent) -> None:
        if self.line is None:
            return
        for _ in range(2 if self.faults.duplicates_next(event.name) else 1):
            self.line.send(event.frame)


class GatewaySessions:
    """All sessions. It subscribes to the store and passes its changes on to them."""

    def __init__(self, store: SimStore, faults: GatewayFaults, noticed: Callable[[], None]) -> None:
        self._store = store
        self._faults = faults
        self._noticed = noticed
        self._sessions: dict[str, GatewaySession] = {}
        self._members_sent_s: dict[tuple[int, str], float] = {}
        self.identified = 0
        self.resumed = 0
        store.subscribe(self._hear)

    @property
    def all(self) -> list[GatewaySession]:
        return list(self._sessions.values())

    def of(self, application: SimApplication | None) -> list[GatewaySession]:
        """Returns the sessions of one bot, or all of them."""
        return [each for each in self.all if application in (None, each.application)]

    def open(
        self, application: SimApplication, intents: GatewayIntent, shard: tuple[int, int], line: SessionSocket
    ) -> GatewaySession:
        visible = VisibleChannels(self._store, application.user)
        session = GatewaySession(
            id=secrets.token_hex(16),
            application=application,
            intents=intents,
            shard=shard,
            faults=self._faults,
            visible=visible,
            line=line,
        )
        self._sessions[session.id] = session
        self.identified += 1
        return session

    def greet(self, session: GatewaySession, gateway_url: str) -> None:
        """Sends READY, then each guild of this shard."""
        application = session.application
        guilds = [each for each in self._store.guilds.values() if self._belongs(session, each)]
        ready = {
            "v": 10,
            "user": own_user_payload(application.user),
            "guilds": [{"id": str(each.id), "unavailable": True} for each in guilds],
            "session_id": session.id,
            "resume_gateway_url": gateway_url,
            "shard": list(session.shard),
            "application": {"id": str(application.id), "flags": application_flags(application.intents)},
            "private_channels": [],
            "session_type": "normal",
        }
        session.push("READY", ready)
        for guild in guilds:
            if guild.available and session.intents & GatewayIntent.GUILDS:
                session.visible.look(guild)
                session.push("GUILD_CREATE", guild_create_payload(self._store, guild, application, session.intents))
        self._noticed()

    def find(self, session_id: str) -> GatewaySession | None:
        return self._sessions.get(session_id)

    def resume(self, session: GatewaySession, line: SessionSocket, after: int) -> None:
        """Takes over the session, replays what was missed and says so."""
        if session.line is not None and session.line is not line:
            session.line.close(4000)
        session.line = line
        session.replay(after)
        self.resumed += 1
        session.push("RESUMED", {"_trace": []})
        self._noticed()

    def forget(self, session: GatewaySession) -> None:
        """Ends a session for good. A bot without sessions appears offline."""
        if self._sessions.pop(session.id, None) and not self.of(session.application):
            self.set_presence(session.application, "offline", [])
        self._noticed()

    def take_members(self, session: GatewaySession, guild_id: str) -> float:
        """Counts a request for all members of a guild. Returns how many seconds it came too early; 0 if it counts."""
        now_s, key = self._store.clock.monotonic_s(), (session.application.id, guild_id)
        sent_s = self._members_sent_s.get(key)
        wait_s = 0.0 if sent_s is None else sent_s + self._store.rules.member_pause.total_seconds() - now_s
        if wait_s <= 0:
            self._members_sent_s[key] = now_s
        return max(wait_s, 0.0)

    def set_presence(self, application: SimApplication, status: str, activities: list[Any]) -> None:
        application.user.presence = SimPresence(status, activities)
        self._store.tell(PresenceChanged(application.user))

    def _belongs(self, session: GatewaySession, guild: SimGuild) -> bool:
        return session.application.id in guild.members and session.covers(guild.id)

    def _hear(self, change: SimChange) -> None:
        for news in list_gateway_events(change, self._store):
            for session in self.all:
                if session.wants(news):
                    session.push(news.name, news.body(session.receiver))
        guild, told = find_touched(change, self._store)
        if guild is not None:
            for session in self.all:
                if session.intents & GatewayIntent.GUILDS and self._belongs(session, guild):
                    for name, body in session.visible.look_again(guild, told):
                        session.push(name, body)
        self._noticed()
