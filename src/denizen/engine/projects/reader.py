"""Who looks at projects from where: what they may read there, and for whom is what they make there.

In a turn, only what everybody may read who reads the answer; outside of turns (the page, the API, the command line)
what that one person may read. `domain/project` has the rule about audiences.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError
from denizen.domain.ids import AgentName, SessionId, TurnId
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.project import EVERYBODY, OWNERS, AudienceFilter, Editor, find_room, person_audience, room_audience
from denizen.domain.record import record
from denizen.domain.room import RoomKind
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.accounts.members import MemberDirectory
from denizen.engine.memory.keeper import MemoryKeeper, is_private
from denizen.ports.store import Store, UnitOfWork
from denizen.ports.toolset import CallScope

TASKS = "tasks"
"""The platform of the sessions in which the task watcher's agent works: a project is a channel, a task a thread."""


@record(kw_only=True)
class ProjectReader:
    """Somebody at a place. `own` is the audience of what they make there, and `project_id` the project of tasks that
    name none, empty for the default one. `scope` is the call of a turn, None outside of turns.
    """

    principal: Principal
    audiences: AudienceFilter
    own: str
    project_id: str = ""
    scope: CallScope | None = None

    @property
    def editor(self) -> Editor:
        """Who is said to have written what they write."""
        kind = self.principal.kind
        name = self.scope.agent if self.scope and kind is PrincipalKind.TASK_WATCHER else self.principal.name
        return Editor(self.principal.key, name)

    @property
    def is_admin(self) -> bool:
        return bool(self.principal.roles & {RoleName.OWNER, RoleName.ADMIN})

    @property
    def is_tainted(self) -> bool:
        """Whether the turn has read what neither the owner nor the asker wrote."""
        return self.scope is not None and bool(self.scope.taint | self.scope.trail.taint)


class ReaderDirectory:
    """Finds out what somebody may read. One for a process."""

    def __init__(
        self, store: Store, channels: ConnectedAccounts, members: MemberDirectory, memories: MemoryKeeper
    ) -> None:
        self._store = store
        self._channels = channels
        self._members = members
        self._memories = memories

    async def find_person(self, principal: Principal) -> ProjectReader:
        """Returns the reader outside of turns, where nobody else reads along."""
        rooms: frozenset[str] = frozenset()
        named = {EVERYBODY, person_audience(principal.key)}
        member = await self._members.find_linked(principal)
        if member is not None:
            named.add(person_audience(member.principal.key))
            rooms = await self._add_threads(self._members.platform, member.rooms)
        named |= {room_audience(self._members.platform, room) for room in rooms}
        return _make_private(principal, named)

    async def find(self, scope: CallScope, *, is_alone: bool | None = None) -> ProjectReader:
        """Returns the reader in a turn: everybody who reads its answer. `is_alone` tells that nobody but the asker
        does, where that is known already.
        """
        if scope.principal.kind is PrincipalKind.TASK_WATCHER:
            return await self._find_watcher(scope)
        if is_alone is None:
            async with self._store.work(write=False) as work:
                is_alone = await is_private(work, scope)
        if is_alone and scope.principal.kind is not PrincipalKind.PLATFORM_USER:
            return replace(await self.find_person(scope.principal), scope=scope)
        platform, room = scope.place.platform, scope.place.thread or scope.place.channel
        rooms = await self._memories.find_rooms(scope)
        if is_alone:
            named = {EVERYBODY, person_audience(scope.principal.key)}
            named |= {room_audience(platform, each) for each in rooms - {room}}
            return replace(_make_private(scope.principal, named), scope=scope)
        if self._channels.find(platform, scope.account or scope.agent) is None:
            # Off platforms, what names a room is chosen by who asks, and only the whole place is one for sure.
            room, rooms = scope.conversation_id, frozenset({str(scope.conversation_id)})
        named = {EVERYBODY} | {room_audience(platform, each) for each in rooms}
        own = room_audience(platform, room)
        return ProjectReader(
            principal=scope.principal, audiences=AudienceFilter(frozenset(named)), own=own, scope=scope
        )

    async def find_room(
        self, principal: Principal, place: Place, account: AgentName, *, is_alone: bool
    ) -> ProjectReader:
        """Returns the reader in a room of a platform, outside of turns: everybody who reads there."""
        scope = CallScope(
            agent=account,
            principal=principal,
            place=place,
            session_id=SessionId(""),
            turn_id=TurnId(""),
            account=account,
        )
        return replace(await self.find(scope, is_alone=is_alone), scope=None)

    async def may_tell(self, reader: ProjectReader, audience: str) -> bool:
        """Whether all who may read that audience could have read along where the reader is."""
        if audience == reader.own:
            return True
        here, there = find_room(reader.own), find_room(audience)
        if reader.scope is None or here is None or there is None or here[0] != there[0]:
            return False
        async with self._store.work(write=False) as work:
            room = await work.archive.find_room(*there)
        if room is None:
            return False
        beyond = replace(reader.scope, place=room.place)
        return here[1] in await self._memories.find_rooms(beyond)

    async def may_hear(self, audience: str, place: Place, account: AgentName) -> bool:
        """Whether everybody who reads at a place of a platform may read the audience."""
        reader = await self.find_room(
            Principal(PrincipalKind.HOOK, "delivery", "delivery"), place, account, is_alone=False
        )
        return reader.audiences.allows(audience)

    async def _find_watcher(self, scope: CallScope) -> ProjectReader:
        """Returns the reader of the one project whose task was changed: its session tells which."""
        async with self._store.work(write=False) as work:
            audience, project_id = await _find_watched(work, scope.session_id)
        named = frozenset({audience}) if audience else frozenset[str]()
        return ProjectReader(
            principal=scope.principal, audiences=AudienceFilter(named), own=audience, project_id=project_id, scope=scope
        )

    async def _add_threads(self, platform: str, rooms: Collection[str]) -> frozenset[str]:
        """Returns the rooms with their public threads."""
        if not rooms:
            return frozenset()
        async with self._store.work(write=False) as work:
            known = await work.archive.list_rooms(platform)
        return frozenset(rooms) | {room.id for room in known if room.kind is RoomKind.THREAD and room.parent in rooms}


async def _find_watched(work: UnitOfWork, session_id: SessionId) -> tuple[str, str]:
    """Returns audience and id of the project that a session of the watcher is about; empty when it is gone."""
    try:
        session = await work.sessions.get(session_id)
        conversation = await work.conversations.get(session.conversation_id)
    except DenizenError:
        return "", ""
    project = await work.projects.find(conversation.place.channel) if conversation.place.platform == TASKS else None
    return (project.audience, project.id) if project is not None else ("", "")


def _make_private(principal: Principal, named: Collection[str]) -> ProjectReader:
    """Returns the reader where nobody but one person reads. Owners and admins see what is shared, and who has a shell
    on the machine sees everything.
    """
    is_admin = bool(principal.roles & {RoleName.OWNER, RoleName.ADMIN})
    is_operator = is_admin and principal.kind is PrincipalKind.LOCAL
    return ProjectReader(
        principal=principal,
        audiences=AudienceFilter(frozenset(named), shared=is_admin, personal=is_operator),
        own=OWNERS if is_admin else person_audience(principal.key),
    )
