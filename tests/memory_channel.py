"""An account on the platform in memory, a whole `denizen.ports.channel.Channel` for tests of the engine.

It records what was sent, shown and asked, and fails on demand:

    account.fail("post", Unavailable("the platform does not answer"), times=2)
    account.fail("post", Unavailable("the answer was lost"), after=True)      # it was posted all the same

While `run` runs, it passes events to the listener, one after another. Unlike an adapter, `run` raises what the listener
raises, so that a fault in it ends the test. The platform itself is in `memory_platform`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import anyio
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectSendStream

from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.conversation import Place
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound
from denizen.domain.ids import AgentName
from denizen.domain.json import JsonObject
from denizen.domain.message import Part, TextPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Post, Room, RoomKind
from denizen.ports.channel import (
    ChannelListener,
    EnterRoom,
    IncomingMessage,
    MembershipList,
    MentionNames,
    MessageMentions,
    ReactionChange,
)
from tests.memory_platform import MemoryPlatform, Person, PlatformPost, select_page

MAX_CHARS = 2000
MAX_PAGE = 100

Operation = Literal[
    "act",
    "post",
    "edit",
    "delete",
    "react",
    "open_direct",
    "open_thread",
    "list_posts",
    "list_arrivals",
    "find_deleted",
    "find_names",
    "visible_rooms",
    "list_memberships",
    "may_moderate",
    "may_post",
    "may_write",
    "is_open",
]
_Event = Callable[[ChannelListener], Awaitable[None]]


@dataclass(slots=True)
class SentMessage:
    """A message that the account posted, with the content that it has now. `ticket` is set when it answered one."""

    id: str
    place: Place
    content: MessageContent
    nonce: str
    reply_to: str = ""
    ticket: str = ""
    goes_on: bool = False


@dataclass(slots=True)
class _Failure:
    error: DenizenError
    times: int
    after: bool


def enter_at_once(*_: object) -> AbstractAsyncContextManager[None]:
    """The place in a room where nobody else posts."""
    return nullcontext()


class MemoryChannel:
    """`sent` in order, `typed` the places where typing began and `typing_in` those where it is shown now, `asked` every
    operation in order. Command tickets that hold are in `tickets`. With `beside`, another login of the same account,
    the platform knows the nonces of both.
    """

    def __init__(
        self,
        platform: MemoryPlatform,
        agent: AgentName,
        *,
        user_id: str = "",
        name: str = "",
        beside: MemoryChannel | None = None,
    ) -> None:
        self._platform = platform
        self._agent = agent
        self._user_id = user_id or f"bot-{agent}"
        self._name = name or agent
        self.sent: list[SentMessage] = []
        self.typed: list[Place] = []
        self.typing_in: list[Place] = []
        self.asked: list[Operation] = []
        self.tickets: set[str] = set()
        self._nonces: dict[tuple[str, str], str] = beside._nonces if beside else {}
        self._failures: defaultdict[Operation, list[_Failure]] = defaultdict(list)
        self._send: MemoryObjectSendStream[_Event] | None = None
        self._waiting = 0
        self._idle = anyio.Event()
        self._idle.set()
        platform.add_person(self._user_id, self._name, is_bot=True)
        platform.accounts.append(self)

    # For tests

    def fail(self, operation: Operation, error: DenizenError, *, times: int = 1, after: bool = False) -> None:
        """Its next `times` calls raise the error; with `after` only when they have done their work."""
        self._failures[operation].append(_Failure(error, times, after))

    async def run(
        self, listener: ChannelListener, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Connects: `on_ready`, then whatever happens from now on, until it is cancelled."""
        send, receive = anyio.create_memory_object_stream[_Event](math.inf)
        self._send = send
        self._tell(lambda heard: heard.on_ready(self._readable()))
        try:
            task_status.started()
            async with send, receive:
                async for event in receive:
                    await event(listener)
                    self._count(-1)
        finally:
            self._send = None
            self._count(-self._waiting)

    @property
    def is_busy(self) -> bool:
        return self._waiting > 0

    async def wait(self) -> None:
        await self._idle.wait()

    def hear_post(self, written: PlatformPost, *, is_edit: bool = False) -> None:
        if self._platform.may_read(written.post.room, self._user_id):
            arrival = self._arrival(written, is_edit=is_edit)
            self._tell(lambda listener: listener.on_message(arrival))

    def hear_delete(self, room: Room, post_ids: Sequence[str]) -> None:
        if self._platform.may_read(room.id, self._user_id):
            self._tell(lambda listener: listener.on_delete(room, post_ids))

    def hear_reaction(self, room: Room, post_id: str, person: Person, emoji: str, *, is_on: bool) -> None:
        """Tells of a reaction. When one is removed, only the id of the user is known, as on Discord."""
        if not self._platform.may_read(room.id, self._user_id) or person.id == self._user_id:
            return
        told = ReactionChange(emoji, post_id, room, person.id, is_on=is_on)
        if is_on:
            told = replace(told, user_name=person.name, roles=person.roles, is_bot=person.is_bot)
        self._tell(lambda listener: listener.on_reaction(told))

    def hear_room(self, room: Room) -> None:
        if self._platform.may_read(room.id, self._user_id):
            self._tell(lambda listener: listener.on_room(room))

    def hear_room_gone(self, room: Room) -> None:
        if self._platform.may_read(room.id, self._user_id):
            self._tell(lambda listener: listener.on_room_gone(room.platform, room.id, is_deleted=True))

    # The channel

    @property
    def platform(self) -> str:
        return self._platform.name

    @property
    def agent(self) -> AgentName:
        return self._agent

    @property
    def user_id(self) -> str:
        return self._user_id

    async def post(
        self,
        place: Place,
        content: MessageContent,
        *,
        nonce: str,
        reply_to: str = "",
        ticket: str = "",
        goes_on: bool = False,
        is_preview: bool = False,
    ) -> str:
        async with self._asking("post"):
            room = self._enter(place)
            if room.id in self._platform.silent:
                raise NotAllowed("The account may not post here.", code="missing_permission")
            _check(content)
            known = self._nonces.get((room.id, nonce))
            if known is not None:
                return known
            answered = ticket if ticket in self.tickets else ""
            replied = reply_to if reply_to in self._platform.posts and not answered else ""
            post = self._platform.say(room, self._user_id, content.text, reply_to=replied)
            self._nonces[room.id, nonce] = post.id
            self.sent.append(SentMessage(post.id, place, content, nonce, replied, answered, goes_on))
        return post.id

    async def edit(self, place: Place, message_id: str, content: MessageContent) -> None:
        async with self._asking("edit"):
            self._own(place, message_id)
            _check(content)
            self._platform.edit(message_id, content.text)
            for sent in self.sent:
                if sent.id == message_id:
                    sent.content = content

    async def delete(self, place: Place, message_id: str) -> None:
        async with self._asking("delete"):
            if message_id in self._platform.posts:
                self._own(place, message_id)
                self._platform.delete(message_id)

    async def react(self, place: Place, message_id: str, emoji: str, *, on: bool = True) -> None:
        async with self._asking("react"):
            self._find(place, message_id)
            shown = self._platform.reactions.setdefault(message_id, [])
            mine = (self._user_id, emoji)
            if on and mine not in shown:
                shown.append(mine)
            elif not on and mine in shown:
                shown.remove(mine)

    def typing(self, place: Place) -> AbstractAsyncContextManager[None]:
        return self._typing(place)

    async def open_direct(self, user_id: str) -> Place:
        async with self._asking("open_direct"):
            if user_id not in self._platform.people:
                raise NotFound("There is nobody like that.", code="nobody")
            return self._platform.open_direct(user_id, self._user_id).place

    async def open_thread(self, place: Place, message_id: str, title: str) -> Room:
        async with self._asking("open_thread"):
            room, written = self._enter(place), self._find(place, message_id)
            if room.is_thread or room.kind is RoomKind.DIRECT:
                raise InvalidInput("There can be no thread here.", code="no_threads")
            if message_id not in self._platform.rooms:
                self._platform.add_room(title, RoomKind.THREAD, parent=room, room_id=written.post.id)
        return self._platform.get_room(message_id)

    async def list_posts(self, room_id: str, *, before: str = "", after: str = "", limit: int = 100) -> Sequence[Post]:
        async with self._asking("list_posts"):
            self._enter_room(room_id)
            return select_page(self._platform.list_posts(room_id), before, after, min(limit, MAX_PAGE))

    async def list_arrivals(self, room: Room, *, after: str, limit: int = 100) -> Sequence[IncomingMessage]:
        async with self._asking("list_arrivals"):
            self._enter_room(room.id)
            posts = select_page(self._platform.list_posts(room.id), "", after or "0", min(limit, MAX_PAGE))
        return [self._arrival(self._platform.posts[post.id]) for post in posts]

    async def find_deleted(self, rooms: Sequence[Room]) -> frozenset[str]:
        async with self._asking("find_deleted"):
            return frozenset(room.id for room in rooms if room.id not in self._platform.rooms)

    async def find_names(self, place: Place, text: str) -> MentionNames:
        async with self._asking("find_names"):
            readers = self._platform.readers(self._enter(place).id)
            people = [person for person in self._platform.people.values() if person.id in readers]
        return MentionNames(
            {person.name: person.id for person in people if f"@{person.name}".casefold() in text.casefold()},
            {name: key for key, name in self._platform.roles.items() if f"@{name}".casefold() in text.casefold()},
        )

    async def visible_rooms(self, place: Place, principal: Principal) -> frozenset[str]:
        """A principal who is nobody here sees what all the readers of the place see."""
        async with self._asking("visible_rooms"):
            here = place.thread or place.channel
            if here not in self._platform.rooms:
                return frozenset()
            readers = self._platform.readers(here) | {self._user_id}
            if principal.kind is PrincipalKind.PLATFORM_USER:
                readers |= {self._find_user_id(principal)}
        return frozenset(key for key in self._platform.rooms if readers <= self._platform.readers(key))

    async def list_memberships(self, user_id: str) -> MembershipList:
        async with self._asking("list_memberships"):
            return self._platform.list_memberships(user_id)

    async def act(self, action: PlatformAction, warrant: OnBehalfOf, *, enter: EnterRoom) -> JsonObject:
        """The platform in memory has no actions."""
        async with self._asking("act"):
            raise InvalidInput(f"There is no action '{action.name}' here.", code="memory_no_action")

    async def check_action(self, action: PlatformAction, warrant: OnBehalfOf) -> None:
        await self.act(action, warrant, enter=enter_at_once)

    async def is_open(self, room: Room) -> bool:
        """Whether nobody is left out: a room without readers of its own, or below one."""
        async with self._asking("is_open"):
            return room.id in self._platform.rooms and self._platform.is_open(room.id)

    async def may_write(self, place: Place, principal: Principal) -> bool:
        """Whoever reads there may write there."""
        async with self._asking("may_write"):
            return self._find_user_id(principal) in self._platform.readers(place.thread or place.channel)

    async def may_post(self, place: Place, *, in_new_thread: bool = False) -> bool:
        """A thread is posted in where its channel is closed."""
        async with self._asking("may_post"):
            return in_new_thread or (place.thread or place.channel) not in self._platform.silent

    async def may_moderate(self, room_id: str, principal: Principal) -> bool:
        async with self._asking("may_moderate"):
            is_user = principal.kind is PrincipalKind.PLATFORM_USER
        return is_user and self._platform.may_moderate(room_id, self._find_user_id(principal))

    async def find_roles(self, room_id: str, user_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Returns the roles of the users who are still there; others are missing."""
        people = self._platform.people
        return {key: people[key].roles for key in user_ids if key in people}

    # Inside

    def _find_user_id(self, principal: Principal) -> str:
        """As the engine names users of a platform: `platform:id`."""
        return principal.id.removeprefix(f"{self.platform}:")

    @asynccontextmanager
    async def _asking(self, operation: Operation) -> AsyncGenerator[None]:
        await anyio.lowlevel.checkpoint()
        self.asked.append(operation)
        failures = self._failures[operation]
        failure = failures[0] if failures else None
        if failure is not None:
            failure.times -= 1
            if not failure.times:
                failures.pop(0)
            if not failure.after:
                raise failure.error
        yield
        if failure is not None:
            raise failure.error

    @asynccontextmanager
    async def _typing(self, place: Place) -> AsyncGenerator[None]:
        self.typed.append(place)
        self.typing_in.append(place)
        try:
            yield
        finally:
            self.typing_in.remove(place)

    def _enter(self, place: Place) -> Room:
        return self._enter_room(place.thread or place.channel)

    def _enter_room(self, room_id: str) -> Room:
        room = self._platform.get_room(room_id)
        if not self._platform.may_read(room_id, self._user_id):
            raise NotAllowed("The account may not see this room.", code="missing_access")
        return room

    def _find(self, place: Place, message_id: str) -> PlatformPost:
        room, written = self._enter(place), self._platform.posts.get(message_id)
        if written is None or written.post.room != room.id:
            raise NotFound("The message is gone.", code="message_not_found")
        return written

    def _own(self, place: Place, message_id: str) -> None:
        if self._find(place, message_id).post.author.id != self._user_id:
            raise NotAllowed("The message is somebody else's.", code="not_mine")

    def _readable(self) -> list[Room]:
        rooms = self._platform.rooms
        return [self._platform.get_room(key) for key in rooms if self._platform.may_read(key, self._user_id)]

    def _arrival(self, written: PlatformPost, *, is_edit: bool = False) -> IncomingMessage:
        post, platform = written.post, self._platform
        author = platform.people[post.author.id]
        answered = platform.posts.get(post.reply_to)
        question = " ".join(post.text.replace(f"@{self._name}", " ").split())
        return IncomingMessage(
            post=post,
            room=replace(platform.rooms[post.room], latest_post=post.id),
            question=question,
            load_parts=partial(_load, question, written.parts),
            roles=author.roles,
            mentions=MessageMentions(
                me=self._user_id in written.mentions,
                others=bool(written.mentions - {self._user_id}),
                users=tuple(
                    sorted(written.mentions, key=lambda user: post.text.find(f"@{platform.people[user].name}"))
                ),
                roles=written.mentioned_roles,
                replies_to_me=answered is not None and answered.post.author.id == self._user_id,
                replies_to=answered.post.author.id if answered is not None else "",
            ),
            is_mine=post.author.id == self._user_id,
            is_edit=is_edit,
            is_unsure=platform.others_edit and post.changes.edited_at is not None,
            subject=platform.subjects.get(post.room),
        )

    def _tell(self, event: _Event) -> None:
        if self._send is not None:
            self._count(1)
            self._send.send_nowait(event)

    def _count(self, by: int) -> None:
        if not self._waiting and by > 0:
            self._idle = anyio.Event()
        self._waiting += by
        if not self._waiting:
            self._idle.set()


async def _load(question: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return (TextPart(question), *parts) if question else parts


def _check(content: MessageContent) -> None:
    if len(content.text) > MAX_CHARS:
        raise InvalidInput(f"The text is longer than {MAX_CHARS} characters.", code="too_long")
    if not (content.text or content.embeds or content.files):
        raise InvalidInput("The message is empty.", code="empty_message")
