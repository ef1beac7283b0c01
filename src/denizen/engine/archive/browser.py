"""The archive for the people who run the place: searched as one person would see it, and cleared of one person.

A search goes through the view and the search of turns, so it shows what that person could be told in private at this
moment, and nothing else. Who searched as whom, and who forgot whom, is in the audit log, without the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from denizen.domain.audit import AuditEvent, AuditKind
from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.domain.message import Author
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.record import record
from denizen.engine.accounts.members import MemberDirectory
from denizen.engine.archive.lookup import ArchiveLookups, ArchiveQuery
from denizen.engine.archive.removal import ArchiveRemoval
from denizen.engine.archive.view import get_author
from denizen.ports.store import Store
from denizen.skill import ArchivedPost


@record
class PersonSearch:
    """The posts that a person would find. `rooms` is how many rooms they may read now, and not `is_complete` means that
    the platform did not tell of all.
    """

    posts: Sequence[ArchivedPost]
    rooms: int
    is_complete: bool


class ArchiveBrowser:
    """One for a process. Whoever calls has checked that the viewer runs the place."""

    def __init__(
        self, store: Store, clock: Clock, lookups: ArchiveLookups, members: MemberDirectory, removal: ArchiveRemoval
    ) -> None:
        self._store = store
        self._clock = clock
        self._lookups = lookups
        self._members = members
        self._removal = removal

    async def find_person(self, text: str) -> Author:
        """Returns who is meant by an id or a name. Whoever has written nothing is known by id alone. Raises NotFound,
        and InvalidInput that lists the people who are meant alike.
        """
        wanted = text.strip().removeprefix(f"{self._members.platform}:").strip('<@!>" ')
        async with self._store.work(write=False) as work:
            rooms = [room.id for room in await work.archive.list_rooms(self._members.platform)]
            authors = await work.archive.list_authors(self._members.platform, rooms=rooms)
        known = {author.id: author for author in authors}
        if wanted.isascii() and wanted.isdecimal():
            return known.get(wanted) or Author(wanted, wanted)
        return known[get_author(wanted, authors)]

    async def search_as(self, viewer: Principal, person: Author, wanted: ArchiveQuery) -> PersonSearch:
        """Searches as that person would; without words the newest posts are there. Raises as a search of a turn."""
        member = await self._members.load(person.id, person.name)
        rooms, posts = await self._lookups.search_as(member, wanted)
        await self._note(viewer, person.id, {"act": "search as"})
        return PersonSearch(posts, rooms, member.is_complete)

    async def count_stored(self, person_id: str) -> Mapping[str, int]:
        """Returns how much is stored of a person, by what it is: what `forget` removes, or takes the name out of."""
        async with self._store.work(write=False) as work:
            written = await work.archive.count_author(self._members.platform, person_id)
            counts = await work.personal_data.count_member(self._key(person_id))
        return {"posts": written.posts, "messages": written.messages, **counts}

    async def forget(self, actor: Principal, person_id: str) -> int:
        """Removes everything that is stored of a person until now, and their settings. Returns how many posts went.
        Raises InvalidInput for what is no id of the platform.
        """
        if not (person_id.isascii() and person_id.isdecimal()):
            raise InvalidInput(
                f"'{person_id[:50]}' is no id of a person.", code="person_invalid", fix="Ids there are numbers."
            )
        key, now = self._key(person_id), self._clock.now()
        async with self._store.work() as work:
            for name in await work.user_settings.get(key):
                await work.user_settings.put(key, name, None, now=now)
        posts = await self._removal.forget_user(self._members.platform, person_id)
        await self._note(actor, person_id, {"act": "forget person", "posts": posts})
        return posts

    async def _note(self, actor: Principal, person_id: str, details: dict[str, Json]) -> None:
        async with self._store.work() as work:
            event = AuditEvent(AuditKind.DATA, self._clock.now(), actor.key, self._key(person_id), details)
            await work.audit.add([event])

    def _key(self, person_id: str) -> str:
        return Principal(PrincipalKind.PLATFORM_USER, f"{self._members.platform}:{person_id}", "").key
