"""Who people of the web are on platforms: the linked identity, and what the platform says of that member now.

The only place where somebody's rights on a platform come to them outside of it. The archive asks what such a person may
read (`archive/view`), the gate which roles they have (`gate/decision`), and the pages of community owners what they
manage. The link is read each time, so unlinking ends everything at once; what a platform says is kept for `KEPT_S`.
While it does not answer, nothing is known, which means fewer rights and never more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from weakref import WeakValueDictionary

import anyio

from denizen.domain.attention import name_roles
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError
from denizen.domain.ids import AgentName
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.record import record
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.ports.channel import Channel, Membership, MembershipList
from denizen.ports.store import Store

KEPT_S = 5.0
PATIENCE_S = 5.0
MAX_KEPT = 1000

_log = logging.getLogger("denizen.members")


@record(kw_only=True)
class PlatformMember:
    """A person as a member of a platform's communities. `principal` is the one that they have there, without roles of
    Denizen. `channel` is the account that tells of them. `is_complete` says whether nothing is missing in
    `communities`.
    """

    principal: Principal
    communities: Sequence[Membership]
    is_complete: bool
    channel: Channel | None = None

    @property
    def rooms(self) -> frozenset[str]:
        """Those that the person may read."""
        return frozenset[str]().union(*(each.rooms for each in self.communities))

    @property
    def roles(self) -> frozenset[str]:
        """The platform's roles, as those of a principal: never one of Denizen's own."""
        return frozenset[str]().union(*(name_roles(each.roles) for each in self.communities))


class MemberDirectory:
    """One for a process. `platform` is the one whose members have rights in rooms; its name is that of the site which
    people link. Empty: nobody has any.
    """

    def __init__(self, store: Store, channels: ConnectedAccounts, clock: Clock, platform: str) -> None:
        self.platform = platform
        self._store = store
        self._channels = channels
        self._clock = clock
        self._known: dict[tuple[AgentName, str], tuple[float, MembershipList]] = {}
        self._locks: WeakValueDictionary[tuple[AgentName, str], anyio.Lock] = WeakValueDictionary()

    async def find_linked(self, principal: Principal, account: AgentName | None = None) -> PlatformMember | None:
        """Returns whom a person of the web has linked, as that agent's account knows them, or as all accounts do. None
        for whoever has linked nobody, and for all who are not people of the web.
        """
        if principal.kind is not PrincipalKind.WEB_USER:
            return None
        async with self._store.work(write=False) as work:
            linked = await work.identities.list_for(principal.id)
        identity = next((each for each in linked if each.provider == self.platform), None)
        return None if identity is None else await self.load(identity.subject, principal.name, account)

    async def load(self, user_id: str, name: str, account: AgentName | None = None) -> PlatformMember:
        """Returns what is known of a user of the platform."""
        channels = self._channels.list_platform(self.platform)
        if account is not None:
            channels = [each for each in channels if each.agent == account]
        lists = [await self._ask(channel, user_id) for channel in channels]
        return PlatformMember(
            principal=Principal(PrincipalKind.PLATFORM_USER, f"{self.platform}:{user_id}", name),
            communities=_merge(each for one in lists for each in one.found),
            is_complete=bool(lists) and all(each.is_complete for each in lists),
            channel=channels[0] if channels else None,
        )

    async def _ask(self, channel: Channel, user_id: str) -> MembershipList:
        """One look-up at a time for each user and account. What is missing in an answer is kept to be missing, too, so
        that nobody makes a platform that is slow or away answer again and again.
        """
        key = (channel.agent, user_id)
        async with self._locks.setdefault(key, anyio.Lock()):
            known = self._known.get(key)
            if known is not None and known[0] > self._clock.monotonic_s():
                return known[1]
            found = await _look_up(channel, user_id)
            self._known.pop(key, None)
            while len(self._known) >= MAX_KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = (self._clock.monotonic_s() + KEPT_S, found)
            return found


async def _look_up(channel: Channel, user_id: str) -> MembershipList:
    try:
        with anyio.move_on_after(PATIENCE_S):
            return await channel.list_memberships(user_id)
    except DenizenError as error:
        _log.warning("a member's rights are not known: %s", error.message, extra=error.fields)
    return MembershipList(is_complete=False)


def _merge(found: Iterable[Membership]) -> Sequence[Membership]:
    """Returns one for each community. Several accounts may know a member of the same one."""
    merged: dict[str, Membership] = {}
    for each in found:
        merged.setdefault(each.community, each)
    return list(merged.values())
