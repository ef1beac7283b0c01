"""A chat platform in memory: rooms, people, posts, and the accounts that hear of them.

    platform = MemoryPlatform()
    general = platform.add_room("general")
    platform.add_person("ana", "Ana")
    account = MemoryChannel(platform, AgentName("ada"))

    async with anyio.create_task_group() as group:
        await group.start(account.run, listener)
        platform.say(general, "ana", "@ada hello")
        await platform.settled()

This module has the platform that all accounts share; `memory_channel` has the actions of one account. Ids of rooms and
posts are increasing numbers. There are no rate limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Protocol

from denizen.domain.errors import NotFound
from denizen.domain.message import Author, Part
from denizen.domain.room import Attachment, Post, PostChanges, Room, RoomKind, is_newer
from denizen.domain.subject import Subject
from denizen.ports.channel import Membership, MembershipList

START = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
"""The time of the first post; each later one is a second younger."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody on the platform; `roles` are role ids."""

    id: str
    name: str
    is_bot: bool = False
    roles: frozenset[str] = field(default_factory=frozenset[str])


@dataclass(frozen=True, slots=True)
class PlatformPost:
    """A post with what only the platform knows of it: whom it pings, and what is read from its attachments."""

    post: Post
    mentions: frozenset[str] = field(default_factory=frozenset[str])
    mentioned_roles: frozenset[str] = field(default_factory=frozenset[str])
    parts: tuple[Part, ...] = ()


class Account(Protocol):
    """An account as the platform knows it; all but `wait` return at once. One that is not connected hears nothing."""

    def hear_post(self, written: PlatformPost, *, is_edit: bool = False) -> None: ...

    def hear_delete(self, room: Room, post_ids: Sequence[str]) -> None: ...

    def hear_reaction(self, room: Room, post_id: str, person: Person, emoji: str, *, is_on: bool) -> None: ...

    def hear_room(self, room: Room) -> None: ...

    def hear_room_gone(self, room: Room) -> None: ...

    @property
    def is_busy(self) -> bool: ...

    async def wait(self) -> None:
        """Until everything that was heard has been dealt with."""
        ...


class MemoryPlatform:
    """Rooms without readers are open to everybody; a thread is read by those who read its channel."""

    def __init__(self, name: str = "discord", *, guild: str = "1", guild_name: str = "Harbour") -> None:
        self.name = name
        self.people: dict[str, Person] = {}
        self.roles: dict[str, str] = {}
        self.rooms: dict[str, Room] = {}
        self.posts: dict[str, PlatformPost] = {}
        self.reactions: dict[str, list[tuple[str, str]]] = {}
        self.accounts: list[Account] = []
        self.subjects: dict[str, Subject] = {}
        """The subjects of rooms by id; empty unless a test sets them."""
        self.silent: set[str] = set()
        """Ids of the rooms in which accounts may not post."""
        self.others_edit = False
        """Whether one may edit what another wrote, so that an edited text is nobody's for sure."""
        self._guild, self._guild_name = guild, guild_name
        self._readers: dict[str, set[str]] = {}
        self._moderators: dict[str, set[str]] = {}
        self._managers: set[str] = set()
        self._ids = count(1001)
        self._now = START - timedelta(seconds=1)

    # What is there

    def add_person(self, user_id: str, name: str, *, is_bot: bool = False, roles: Iterable[str] = ()) -> Person:
        self.people[user_id] = person = Person(user_id, name, is_bot, frozenset(roles))
        return person

    def add_role(self, role_id: str, name: str) -> None:
        self.roles[role_id] = name

    def add_room(
        self,
        name: str,
        kind: RoomKind = RoomKind.CHANNEL,
        *,
        parent: Room | None = None,
        readers: Iterable[str] | None = None,
        room_id: str = "",
    ) -> Room:
        """`readers` are user ids, those of accounts among them; None admits everybody, or whom the parent admits."""
        room = Room(self.name, room_id or self._next_id(), name, kind, self._guild, self._guild_name)
        if parent is not None:
            room = replace(room, parent=parent.id, parent_name=parent.name)
        if kind is RoomKind.DIRECT:
            room = replace(room, guild="", guild_name="")
        self.rooms[room.id] = room
        if readers is not None:
            self._readers[room.id] = set(readers)
        for account in self.accounts:
            account.hear_room(room)
        return room

    def open_direct(self, person: str, account: str) -> Room:
        """The direct messages of the two, which may be there already."""
        both = {person, account}
        known = (self.rooms[key] for key, readers in self._readers.items() if readers == both)
        room = next((each for each in known if each.kind is RoomKind.DIRECT), None)
        return room or self.add_room(person, RoomKind.DIRECT, readers=both)

    def set_readers(self, room: Room, readers: Iterable[str] | None) -> None:
        """Permissions as they are from now on."""
        self._readers.pop(room.id, None)
        if readers is not None:
            self._readers[room.id] = set(readers)

    def set_moderators(self, room: Room, user_ids: Iterable[str]) -> None:
        self._moderators[room.id] = set(user_ids)

    def set_managers(self, user_ids: Iterable[str]) -> None:
        """Who manages the guild from now on."""
        self._managers = set(user_ids)

    def list_memberships(self, user_id: str) -> MembershipList:
        """The guild as one who is there has it; nothing for strangers."""
        person = self.people.get(user_id)
        if person is None:
            return MembershipList()
        rooms = frozenset(key for key, room in self.rooms.items() if room.guild and self.may_read(key, user_id))
        mine = Membership(
            community=self._guild,
            name=self._guild_name,
            roles=person.roles,
            rooms=rooms,
            manages=user_id in self._managers,
        )
        return MembershipList(found=[mine])

    def remove_room(self, room: Room, *, tell: bool = True) -> None:
        for account in self.accounts if tell else ():
            account.hear_room_gone(room)
        del self.rooms[room.id]
        self.posts = {key: written for key, written in self.posts.items() if written.post.room != room.id}

    # What people do

    def skip(self, *, days: float = 0, s: float = 0) -> None:
        """Nothing happens for that long."""
        self._now += timedelta(days=days, seconds=s)

    def write(
        self,
        room: Room,
        author: str,
        text: str,
        *,
        reply_to: str = "",
        attachments: Sequence[Attachment] = (),
        parts: tuple[Part, ...] = (),
    ) -> Post:
        """Posts it without telling anybody, as if no account were connected. `@Name` mentions a person or a role."""
        person = self.people[author]
        post = Post(
            self.name,
            self._next_id(),
            room.id,
            Author(person.id, person.name, person.is_bot),
            text,
            self._next_time(),
            guild=room.guild,
            parent=room.parent,
            reply_to=reply_to,
            attachments=tuple(attachments),
        )
        self.posts[post.id] = PlatformPost(
            post, _find_mentions(text, self._names()), _find_mentions(text, _swap(self.roles)), parts
        )
        return post

    def say(self, room: Room, author: str, text: str, *, reply_to: str = "", parts: tuple[Part, ...] = ()) -> Post:
        """Posts it and tells every connected account that reads the room."""
        post = self.write(room, author, text, reply_to=reply_to, parts=parts)
        self.repeat(post.id)
        return post

    def repeat(self, post_id: str) -> None:
        """Tells of a post once more, as platforms do after a reconnect."""
        for account in self.accounts:
            account.hear_post(self.posts[post_id])

    def edit(self, post_id: str, text: str, *, tell: bool = True) -> Post:
        old = self.posts[post_id]
        post = replace(old.post, text=text, changes=PostChanges(edited_at=self._next_time()))
        self.posts[post_id] = replace(
            old,
            post=post,
            mentions=_find_mentions(text, self._names()),
            mentioned_roles=_find_mentions(text, _swap(self.roles)),
        )
        for account in self.accounts if tell else ():
            account.hear_post(self.posts[post_id], is_edit=True)
        return post

    def delete(self, *post_ids: str, tell: bool = True) -> None:
        gone = [written.post for key in post_ids if (written := self.posts.pop(key, None)) is not None]
        for room_id in dict.fromkeys(post.room for post in gone):
            for account in self.accounts if tell else ():
                account.hear_delete(self.rooms[room_id], [post.id for post in gone if post.room == room_id])

    def react(self, user_id: str, post_id: str, emoji: str, *, on: bool = True) -> None:
        """Somebody puts a reaction on a post, or takes it off."""
        shown, theirs = self.reactions.setdefault(post_id, []), (user_id, emoji)
        if on == (theirs in shown):
            return
        shown.append(theirs) if on else shown.remove(theirs)
        room = self.rooms[self.posts[post_id].post.room]
        for account in self.accounts:
            account.hear_reaction(room, post_id, self.people[user_id], emoji, is_on=on)

    async def settled(self) -> None:
        """Until every connected account has dealt with all that it heard, and with what came of that."""
        while busy := [account for account in self.accounts if account.is_busy]:
            await busy[0].wait()

    # What accounts ask

    def get_room(self, room_id: str) -> Room:
        """With its latest post. Raises NotFound."""
        if room_id not in self.rooms:
            raise NotFound("There is no such room.", code="room_not_found")
        posts = self.list_posts(room_id)
        return replace(self.rooms[room_id], latest_post=posts[-1].id if posts else "")

    def list_posts(self, room_id: str) -> list[Post]:
        """Oldest first."""
        return [written.post for written in self.posts.values() if written.post.room == room_id]

    def is_open(self, room_id: str) -> bool:
        """Whether nobody was ever named who may read it, nor its channel."""
        room = self.rooms[room_id]
        is_secret = room.kind in (RoomKind.DIRECT, RoomKind.PRIVATE_THREAD)
        return not is_secret and room_id not in self._readers and room.parent not in self._readers

    def readers(self, room_id: str) -> frozenset[str]:
        """Everybody who may read the room now."""
        room = self.rooms[room_id]
        chosen = self._readers.get(room_id)
        if room.is_thread and room.parent in self.rooms:
            above = self.readers(room.parent)
            return above if chosen is None else above & chosen
        return frozenset(self.people) if chosen is None else frozenset(chosen)

    def may_read(self, room_id: str, user_id: str) -> bool:
        return room_id in self.rooms and user_id in self.readers(room_id)

    def may_moderate(self, room_id: str, user_id: str) -> bool:
        room = self.rooms.get(room_id)
        return room is not None and user_id in self._moderators.get(room.channel, set())

    def _names(self) -> dict[str, str]:
        return {person.name: person.id for person in self.people.values()}

    def _next_id(self) -> str:
        return str(next(self._ids))

    def _next_time(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


def select_page(posts: Iterable[Post], before: str, after: str, limit: int) -> list[Post]:
    """Returns the newest `limit` posts before `before`, or with `after` the oldest `limit` after it."""
    chosen = [
        post for post in posts if (not before or is_newer(before, post.id)) and (not after or is_newer(post.id, after))
    ]
    return chosen[:limit] if after else chosen[-limit:]


def _find_mentions(text: str, ids: Mapping[str, str]) -> frozenset[str]:
    """The ids of the names that stand after an @ in the text, and those that are pinged as `<@id>`; of names that begin
    alike the longest counts.
    """
    if not ids:
        return frozenset()
    names = "|".join(re.escape(name) for name in sorted(ids, key=len, reverse=True))
    pinged = {key for key in ids.values() if f"<@{key}>" in text or f"<@&{key}>" in text}
    return frozenset(pinged | {ids[name] for name in re.findall(f"@({names})", text)})


def _swap(names: Mapping[str, str]) -> dict[str, str]:
    return {name: key for key, name in names.items()}
