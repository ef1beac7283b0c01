"""The view of one asker: the rooms of a platform that they may see now, and the people who wrote in them.

Made anew for each call, from the permissions of that moment. Whatever is not in it does not exist for the asker: the
error is the same. Used by `lookup` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from denizen.domain.archiving import ArchivePolicy, is_room_opted_out
from denizen.domain.chat import ChatId
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import AgentName, ConversationId
from denizen.domain.message import Author
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.room import Post, Room, RoomKind
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.accounts.members import MemberDirectory, PlatformMember
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.configuration.choices import load_reset_times
from denizen.ports.channel import Channel
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope

MAX_CHOICES = 10
WEB = "web"
"""The platform of chats on the page, each of which one person reads unless they share it."""

K = TypeVar("K")


@record(kw_only=True)
class ArchiveView:
    """`own` is the room of the call, when it is among `rooms`. `channel` is the account that answers, if connected.
    `hidden` are authors who opted out and whose posts may not be gone yet. `policy` is the archive's. `viewer` is the
    asker, with their name on the platform. `resets` are the conversations in which the agent that looks was told to
    forget what had been said until then.
    """

    platform: str
    rooms: Mapping[str, Room]
    own: Room | None
    channel: Channel | None
    hidden: frozenset[str]
    policy: ArchivePolicy
    viewer: Principal
    resets: Mapping[ConversationId, datetime]

    def get_room(self, text: str) -> Room:
        """By id, `#name`, `channel > thread` or a part of a name; the room of the call for an empty text. Raises
        NotFound, and InvalidInput that lists the rooms which are meant alike.
        """
        wanted = text.strip().strip('<#>"').strip().casefold()
        if not wanted:
            if self.own is None:
                raise not_found_here()
            return self.own
        if wanted in self.rooms:
            return self.rooms[wanted]
        return pick_by_name(wanted, self.rooms.values(), lambda room: (room.name, room_label(room)), _describe)

    def sees(self, post: Post) -> bool:
        room = self.rooms.get(post.room)
        if room is None or post.author.id in self.hidden:
            return False
        reset = self.resets.get(room.place.conversation_id)
        return reset is None or post.created_at > reset

    def choose(self, text: str) -> Sequence[Room]:
        """The room of that name, or every room for an empty text."""
        return [self.get_room(text)] if text.strip() else list(self.rooms.values())


async def open_view(
    scope: CallScope, store: Store, channels: ConnectedAccounts, mirror: ArchiveMirror, members: MemberDirectory
) -> ArchiveView:
    """Opens the view of a call: rooms that the archive knows, that the answering account says may be seen, and that did
    not opt out. An archived thread, of which the platform does not tell any more, is seen with its channel; direct talk
    only from within. Without a connected account there is only the room of the call. In a chat of the web, people see
    what the member whom they have linked sees, and nothing while the chat is shared: everybody with its link reads it.
    Raises NotFound (`no_archive`) where nothing is archived.
    """
    if scope.place.platform == WEB:
        async with store.work(write=False) as work:
            chat = await work.chats.find(scope.principal.key, ChatId(scope.place.thread))
        if chat is not None and chat.share_token:
            raise NotFound(
                "The archive is closed in a shared chat.",
                code="no_archive",
                why="everybody with the link of this chat reads it",
                fix="Ask in a chat that is not shared.",
            )
        member = await members.find_linked(scope.principal, scope.account or scope.agent)
        if member is None:
            raise _no_archive()
        return await open_member_view(member, store, mirror, agent=scope.agent)
    platform, own = scope.place.platform, scope.place.thread or scope.place.channel
    channel = channels.find(platform, scope.account or scope.agent)
    async with store.work(write=False) as work:
        known = {room.id: room for room in await work.archive.list_rooms(platform)}
        resets = await load_reset_times(work, scope.agent)
    if not mirror.policy.enabled or (channel is None and own not in known):
        raise _no_archive()
    kind = RoomKind.PRIVATE_THREAD if scope.place.thread else RoomKind.CHANNEL  # it is seen by itself alone
    known.setdefault(own, Room(platform, own, own, kind, parent=scope.place.channel if scope.place.thread else ""))
    seen = frozenset({own}) if channel is None else await channel.visible_rooms(scope.place, scope.principal)
    return await _build_view(
        known.values(), seen, mirror, own=own, channel=channel, viewer=scope.principal, resets=resets
    )


async def open_member_view(
    member: PlatformMember, store: Store, mirror: ArchiveMirror, *, agent: AgentName | None = None
) -> ArchiveView:
    """Opens the view of one person who is nowhere in particular: what they may read by themselves at this moment, or
    what of it an agent may look at for them. Raises NotFound (`no_archive`) where nothing is archived.
    """
    if not mirror.policy.enabled or member.channel is None:
        raise _no_archive()
    async with store.work(write=False) as work:
        known = await work.archive.list_rooms(member.channel.platform)
        resets = await load_reset_times(work, agent) if agent is not None else dict[ConversationId, datetime]()
    return await _build_view(
        known, member.rooms, mirror, own="", channel=member.channel, viewer=member.principal, resets=resets
    )


async def _build_view(
    known: Iterable[Room],
    seen: frozenset[str],
    mirror: ArchiveMirror,
    *,
    own: str,
    channel: Channel | None,
    viewer: Principal,
    resets: Mapping[ConversationId, datetime],
) -> ArchiveView:
    rooms = list(known)
    platform = channel.platform if channel is not None else rooms[0].platform
    policy, chosen = mirror.policy, await mirror.load_opt_outs(platform)
    shown = {
        room.id: room
        for room in rooms
        if (room.id in seen or (channel is not None and room.kind is RoomKind.THREAD and room.parent in seen))
        and (room.id == own or room.kind is not RoomKind.DIRECT)
        and not is_room_opted_out(room, policy, chosen)
    }
    return ArchiveView(
        platform=platform,
        rooms=shown,
        own=shown.get(own),
        channel=channel,
        hidden=policy.opt_outs.users | chosen.users,
        policy=policy,
        viewer=viewer,
        resets=resets,
    )


def _no_archive() -> NotFound:
    return NotFound("There is no archive of messages here.", code="no_archive")


def get_author(text: str, authors: Sequence[Author]) -> str:
    """The id of an author by id, `@name` or a part of a name, among those who wrote in rooms that may be seen. Raises
    NotFound, and InvalidInput that lists the people who are meant alike.
    """
    wanted = text.strip().strip('<@!>"').strip().casefold()
    for author in authors:
        if author.id == wanted:
            return author.id
    return pick_by_name(wanted, authors, lambda author: (author.name,), lambda author: f"{author.name} {author.id}").id


def pick_by_name(
    wanted: str, things: Iterable[K], names: Callable[[K], tuple[str, ...]], describe: Callable[[K], str]
) -> K:
    """The only one of that name, else the only one with that in its name; `wanted` is casefolded."""
    named = [(thing, [name.casefold() for name in names(thing)]) for thing in things]
    found = [thing for thing, all_names in named if wanted in all_names]
    found = found or [thing for thing, all_names in named if any(wanted in name for name in all_names)]
    if not found or not wanted:
        raise not_found_here()
    if len(found) > 1:
        more = ", …" if len(found) > MAX_CHOICES else ""
        choices = ", ".join(describe(thing) for thing in found[:MAX_CHOICES])
        raise InvalidInput("Several have this name.", code="ambiguous_name", fix=f"Give one id of: {choices}{more}")
    return found[0]


def not_found_here() -> NotFound:
    """The same for what may not be seen and for what does not exist."""
    return NotFound("There is no such room, person or message here.", code="not_found_here")


def room_label(room: Room) -> str:
    """How people name it: a thread with its channel."""
    if room.kind is RoomKind.DIRECT:
        return room.name or "direct messages"
    return f"{room.parent_name} > {room.name}" if room.is_thread and room.parent_name else room.name


def _describe(room: Room) -> str:
    guild = f" ({room.guild_name})" if room.guild_name else ""
    return f"#{room_label(room)}{guild} {room.id}"
