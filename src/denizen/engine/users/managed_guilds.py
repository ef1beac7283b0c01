"""The communities (guilds) that people with accounts manage, by the Discord account that they have linked.

Each method asks the platform anew who somebody is there; whoever does not manage a community is told that there is
none. What is shown of it is limited to rooms that this person may read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from anyio import to_thread

from denizen.domain.audit import AuditEntry, AuditKind
from denizen.domain.budget import BudgetScope, BudgetScopeKind, BudgetStatus
from denizen.domain.clock import Clock
from denizen.domain.errors import NotFound
from denizen.domain.gap import GapGroup, group_gaps
from denizen.domain.guild_settings import GuildField, GuildSettings, read_settings
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.room import Room, RoomKind
from denizen.engine.accounts.members import MemberDirectory
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.guild_settings import GuildSettingsOverlay, name_guild
from denizen.ports.channel import Membership
from denizen.ports.store import AuditSearch, Store, UnitOfWork

PERIOD = timedelta(days=30)
MAX_GAPS = 1000
SHOWN_GAPS = 20
SHOWN_CALLS = 30
SHOWN_CHANGES = 20


@record
class GuildCall:
    """A call of a tool there, without its arguments: for whom it was, and what came of it."""

    tool: str
    agent: str
    asker: str
    at: datetime
    state: str


@record(kw_only=True)
class GuildReport:
    """A community as those who manage it see it. `channels` are those that they may read, by id and name. `days` are
    requests and US dollars of each day, the newest first; `changes` who set what.
    """

    membership: Membership
    settings: GuildSettings
    allowed: frozenset[GuildField]
    channels: Sequence[tuple[str, str]]
    spent: BudgetStatus
    days: Sequence[tuple[str, int, str]]
    gaps: Sequence[GapGroup]
    calls: Sequence[GuildCall]
    changes: Sequence[AuditEntry]


class ManagedGuilds:
    """Used by the pages `/guilds`."""

    def __init__(
        self, store: Store, clock: Clock, runtime: Runtime, members: MemberDirectory, overlay: GuildSettingsOverlay
    ) -> None:
        self._store = store
        self._clock = clock
        self._runtime = runtime
        self._members = members
        self._overlay = overlay

    async def list_for(self, viewer: Principal) -> tuple[Sequence[Membership], bool, bool]:
        """Returns the communities that the viewer manages by name, whether the platform told of all, and whether the
        viewer has linked an account there.
        """
        member = await self._members.find_linked(viewer)
        if member is None:
            return (), True, False
        managed = sorted((each for each in member.communities if each.manages), key=lambda each: each.name)
        return managed, member.is_complete, True

    async def get(self, viewer: Principal, guild: str) -> Membership:
        """Returns the community as the viewer manages it. Raises NotFound, whether it is not there, the viewer does not
        manage it, or the platform does not say so now.
        """
        managed, _, _ = await self.list_for(viewer)
        found = next((each for each in managed if each.community == guild), None)
        if found is None:
            raise NotFound(
                "There is no such server that you manage.",
                code="guild_not_found",
                fix="It takes the right to manage it on Discord, and an account of Denizen there. Discord may be away.",
            )
        return found

    async def load_report(self, viewer: Principal, guild: str) -> GuildReport:
        """Raises NotFound as `get` does."""
        membership, now, platform = await self.get(viewer, guild), self._clock.now(), self._members.platform
        scope = BudgetScope(BudgetScopeKind.GUILD, f"{self._members.platform}:{guild}")
        async with self._store.work(write=False) as work:
            known = await work.archive.list_rooms(self._members.platform, guild=guild)
            rooms = {room.id: room for room in known if _is_readable(room, membership)}
            spent = (await work.spending.read([scope], now=now)).get(scope, BudgetStatus())
            rows = await work.spending.list_spend(BudgetScopeKind.GUILD, since=now - PERIOD)
            gaps = await work.gaps.list_gaps(since=now - PERIOD, limit=MAX_GAPS)
            calls = await self._list_calls(work, rooms)
            name = name_guild(self._members.platform, guild)
            changes = await work.audit.search(AuditSearch(kind=AuditKind.SETTINGS, words=name, limit=SHOWN_CHANGES))
        here = [
            gap
            for gap in gaps
            if not gap.is_private
            and gap.place.platform == platform
            and (gap.place.thread or gap.place.channel) in rooms
        ]
        return GuildReport(
            membership=membership,
            settings=await self._overlay.load(self._members.platform, guild),
            allowed=self._overlay.allowed,
            channels=sorted(
                ((room.id, room.name) for room in rooms.values() if not room.is_thread), key=lambda each: each[1]
            ),
            spent=spent,
            days=[
                (row.day, row.usage.requests, f"{row.usage.cost_usd or 0:.4f}") for row in rows if row.scope == scope
            ],
            gaps=(await to_thread.run_sync(group_gaps, here))[:SHOWN_GAPS],
            calls=calls,
            changes=[each for each in changes if each.event.subject == name],
        )

    async def save(self, viewer: Principal, guild: str, given: Mapping[GuildField, str]) -> GuildSettings:
        """Sets what was given, of what is left to communities. Channels that the viewer cannot see stay as they are.
        Raises NotFound as `get` does, and InvalidInput.
        """
        membership = await self.get(viewer, guild)
        old, tools = await self._overlay.load(self._members.platform, guild), await self._list_tools()
        async with self._store.work(write=False) as work:
            known = await work.archive.list_rooms(self._members.platform, guild=guild)
        visible = {room.id for room in known if _is_readable(room, membership)}
        chosen = [each for each in given.get(GuildField.CHANNELS, "").split() if each in visible]
        unseen = [each for each in old.channels if each not in visible]
        settings = read_settings({**given, GuildField.CHANNELS: " ".join([*chosen, *unseen])}, tools)
        await self._overlay.save(viewer, self._members.platform, guild, settings)
        return settings

    async def _list_tools(self) -> Sequence[str]:
        return [spec.name for toolset in self._runtime.current.toolsets for spec in await toolset.list_tools()]

    async def _list_calls(self, work: UnitOfWork, rooms: Mapping[str, Room]) -> Sequence[GuildCall]:
        """The newest calls of all agents in these rooms."""
        found = [
            (agent, call)
            for agent in self._runtime.current.agents
            for call in await work.turns.list_calls_in(agent, self._members.platform, list(rooms), limit=SHOWN_CALLS)
        ]
        found.sort(key=lambda each: each[1].created_at, reverse=True)
        shown: list[GuildCall] = []
        for agent, call in found[:SHOWN_CALLS]:
            turn = await work.turns.find(call.turn_id)
            asker = turn.principal.name if turn is not None else ""
            shown.append(GuildCall(call.tool_call.tool, agent, asker, call.created_at, call.outcome.state))
        return shown


def _is_readable(room: Room, membership: Membership) -> bool:
    """An archived thread, of which the platform does not tell any more, is read with its channel."""
    return room.id in membership.rooms or (room.kind is RoomKind.THREAD and room.parent in membership.rooms)
