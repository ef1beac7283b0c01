"""A channel is one account of one agent on a platform; its listener is told what happens there.

The adapters of Discord and GitHub implement `Channel`, and the engine implements `ChannelListener`. Nothing here
knows a vendor.

A `Channel` raises Unavailable when the platform does not answer (try again), NotFound when the thing is gone,
NotAllowed when the account may not, and InvalidInput when the platform rejects the content.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from datetime import datetime
from typing import Protocol

from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.conversation import Place
from denizen.domain.delivery import MessageContent
from denizen.domain.ids import AgentName
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Part
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.room import Post, Room
from denizen.domain.subject import Subject

LoadParts = Callable[[], Awaitable[tuple[Part, ...]]]
"""Loads the whole question: its text with the message it replies to, and its attachments (pictures, text files, PDFs).
Called for messages that are answered, and for those with files where an agent reads the whole talk.
"""

LoadEarlier = Callable[[], Awaitable[Sequence["IncomingMessage"]]]
"""Loads the opening and the newest messages before this one, oldest first, on platforms that do not report every
message. Called only for messages that are answered. Messages that cannot be loaded are left out.
"""

EnterRoom = Callable[[Place], AbstractAsyncContextManager[None]]
"""Waits until nobody else of this process posts at the place, and keeps others waiting until the block ends."""


async def _nothing_earlier() -> Sequence[IncomingMessage]:
    return ()


@record(kw_only=True)
class MessageMentions:
    """Whom a message addresses, as one account sees it.

    `me` is an explicit @ of the account in the text, `others` an explicit @ of somebody else. `users` are the ids of
    all users who are mentioned, in the order of the text; `roles` are role ids. `replies_to_me` is a platform reply to
    one of the account's messages; `replies_to` is the author of the message that it replies to, where that is known.
    """

    me: bool = False
    others: bool = False
    users: tuple[str, ...] = ()
    roles: frozenset[str] = field(default_factory=frozenset[str])
    replies_to_me: bool = False
    replies_to: str = ""


@record(kw_only=True)
class IncomingMessage:
    """A message as one account sees it.

    `question` is the text without the account's own mentions, empty when there is nothing else. `roles` are the
    author's role ids on the platform. `command` is a command that the text gives to all whom it mentions first, where
    the platform can tell; otherwise the question may be one. `is_mine` is a message of this account itself, `is_edit`
    one that was there before with another text. `is_unsure` is one that somebody else may have edited before it was
    read: its author's rights do not count, and it is no command. `subject` is what the room is about, where it has a
    title.
    """

    post: Post
    room: Room
    question: str
    load_parts: LoadParts
    command: str = ""
    roles: frozenset[str] = field(default_factory=frozenset[str])
    mentions: MessageMentions = field(default_factory=MessageMentions)
    is_mine: bool = False
    is_edit: bool = False
    is_unsure: bool = False
    subject: Subject | None = None
    load_earlier: LoadEarlier = _nothing_earlier


@record
class CommandOption:
    """An option of a command. `choices` is a fixed list; `suggests` asks the listener while the user types
    (autocomplete).
    """

    name: str
    description: str
    required: bool = False
    choices: tuple[str, ...] = ()
    suggests: bool = False


@record
class CommandSpec:
    """A slash command. With `groups` the options belong to the subcommands named there. Names are lower case.

    `public` means that everybody in the room sees the answer, so everybody sees that it is being prepared.
    """

    name: str
    description: str
    options: tuple[CommandOption, ...] = ()
    groups: tuple[CommandSpec, ...] = ()
    admin_only: bool = False
    public: bool = False


@record
class CommandCall:
    """A command that somebody gave, with its subcommand in `group`. `id` is unique on the platform. `ticket` is the
    right to answer it, empty when it was typed as text. `target` is the message that it was given about, if any.
    """

    id: str
    name: str
    group: str
    options: Mapping[str, str]
    room: Room
    author_id: str
    author_name: str
    roles: frozenset[str]
    created_at: datetime
    ticket: str = ""
    target: str = ""


@record
class ProgramOutput:
    """The output of a command's program, and whether the program failed."""

    text: str
    is_error: bool = False


@record
class CommandReply:
    """The immediate reply to a command. Only the user sees a `private` one, where the platform can do that.

    `is_pending` means that a turn was started, whose answer is delivered with the call's ticket. `is_failure` means
    that the request was not done; the text says why. `output` is what the command's program printed, which the text
    shows, too. `updates` are texts that replace the first one as time goes by, where a message can be edited.
    """

    text: str = ""
    private: bool = True
    is_pending: bool = False
    is_failure: bool = False
    output: ProgramOutput | None = None
    updates: AsyncGenerator[str] | None = None


@record
class ButtonPress:
    """Somebody pressed a button of one of the account's messages: they say `value`, or do `action` because of `why`.
    For a choice among several, `about` is the beginning of the message that offers them.
    """

    id: str
    message_id: str
    value: str
    room: Room
    author_id: str
    author_name: str
    roles: frozenset[str]
    created_at: datetime
    action: str = ""
    why: str = ""
    about: str = ""


@record
class ReactionChange:
    """Somebody other than the account added a reaction to a message, or removed it (not `is_on`). `emoji` is written as
    in a message. Only the id is known of a user who removed one.
    """

    emoji: str
    message_id: str
    room: Room
    user_id: str
    user_name: str = ""
    roles: frozenset[str] = field(default_factory=frozenset[str])
    is_bot: bool = False
    is_on: bool = True


@record(kw_only=True)
class CommunityEvent:
    """Something that happened in a community besides talk, as one account tells it.

    `kind` is the type of the event, such as `member.join`. `id` is unique where the platform tells such events apart;
    empty: what another account tells with the same `data` at that time is the same event. `user_id` is who did it, or
    whom it is about.
    """

    kind: str
    guild: str
    id: str = ""
    subject: str = ""
    user_id: str = ""
    data: JsonObject = field(default_factory=dict[str, Json])


class ChannelListener(Protocol):
    """Is told what happens on one account.

    The adapter calls these methods one after another for each room. It logs what they raise, and goes on.
    """

    @property
    def commands(self) -> Sequence[CommandSpec]:
        """The commands that the platform should offer now."""
        ...

    async def on_ready(self, rooms: Sequence[Room]) -> None:
        """The account has connected afresh (not resumed), so it may have missed something. It can read `rooms` now."""
        ...

    async def on_message(self, message: IncomingMessage) -> None:
        """A new message, or one with a new text (`is_edit`). The same may come twice."""
        ...

    async def on_delete(self, room: Room, post_ids: Sequence[str]) -> None: ...

    async def on_reaction(self, reaction: ReactionChange) -> None:
        """A reaction changed, on a message of any age. Changes while the account was away are not reported."""
        ...

    def awaits(self, kind: str) -> bool:
        """Tells whether anybody waits for events of that kind: others are not even put together."""
        ...

    async def on_event(self, event: CommunityEvent) -> None:
        """Something happened in a community. Events while the account was away are not reported."""
        ...

    async def on_room(self, room: Room) -> None:
        """A room is new or renamed."""
        ...

    async def on_room_gone(self, platform: str, room_id: str, *, is_deleted: bool) -> None:
        """A room was deleted, with its messages and threads, or the account left its server."""
        ...

    async def on_command(self, call: CommandCall) -> CommandReply: ...

    async def on_suggest(self, call: CommandCall, option: str, typed: str) -> Sequence[str]:
        """Returns at most 25 completions."""
        ...

    async def on_press(self, press: ButtonPress) -> str:
        """Returns the text that only the person who pressed sees; empty for none."""
        ...


@record
class MentionNames:
    """The names that can be pinged in a place, with their ids: users by display and user name, and roles."""

    users: Mapping[str, str] = field(default_factory=dict[str, str])
    roles: Mapping[str, str] = field(default_factory=dict[str, str])


@record(kw_only=True)
class Membership:
    """The standing of somebody in a community (a guild) at this moment: the ids of their roles and of the rooms that
    they may read, and whether they manage the community, as its owner or by a right to change its settings.
    """

    community: str
    name: str
    roles: frozenset[str]
    rooms: frozenset[str]
    manages: bool = False


@record(kw_only=True)
class MembershipList:
    """The communities that an account shares with somebody, as far as they are certain. Not `is_complete`: there may be
    others, of which nothing can be known now.
    """

    found: Sequence[Membership] = ()
    is_complete: bool = True


class Channel(Protocol):
    """One account, as the engine uses it."""

    @property
    def platform(self) -> str: ...

    @property
    def agent(self) -> AgentName: ...

    @property
    def user_id(self) -> str:
        """The account's own id on the platform."""
        ...

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
        """Sends one message and returns its id. A repeated nonce soon after returns the earlier message. A reply to a
        deleted message becomes a plain message. With a valid ticket it answers the command; `goes_on` then means
        that more messages of the answer follow at once, which are to stand right below this one. `is_preview` is one
        that gives way to an answer.
        """
        ...

    async def edit(self, place: Place, message_id: str, content: MessageContent) -> None: ...

    async def delete(self, place: Place, message_id: str) -> None:
        """Deletes a message. One that is gone already is no error."""
        ...

    async def react(self, place: Place, message_id: str, emoji: str, *, on: bool = True) -> None: ...

    def typing(self, place: Place) -> AbstractAsyncContextManager[None]:
        """Shows typing until the block ends, whatever ends it. A failure to show it is logged, and does not disturb the
        block.
        """
        ...

    async def open_thread(self, place: Place, message_id: str, title: str) -> Room:
        """Returns the thread of that message, and opens it if there is none."""
        ...

    async def open_direct(self, user_id: str) -> Place:
        """Returns the direct conversation with the user, and opens it if there is none. Raises NotAllowed on platforms
        that have none.
        """
        ...

    async def list_posts(self, room_id: str, *, before: str = "", after: str = "", limit: int = 100) -> Sequence[Post]:
        """Returns the newest `limit` posts before `before`, or the oldest `limit` after `after`, oldest first."""
        ...

    async def list_arrivals(self, room: Room, *, after: str, limit: int = 100) -> Sequence[IncomingMessage]:
        """Returns the oldest `limit` messages after `after`, oldest first: what was missed."""
        ...

    async def find_deleted(self, rooms: Sequence[Room]) -> frozenset[str]:
        """Returns the ids of the rooms that the platform says are deleted. A room that the account may not see, or that
        cannot be asked for now, is left out. Raises Unavailable when the platform does not answer.
        """
        ...

    async def find_names(self, place: Place, text: str) -> MentionNames:
        """Returns whom an @Name in the text may mean; nobody when the platform cannot say now."""
        ...

    async def visible_rooms(self, place: Place, principal: Principal) -> frozenset[str]:
        """Returns the rooms that `principal` and everybody who reads `place` may see at this moment. When that cannot
        be known, only those that are certain.
        """
        ...

    async def list_memberships(self, user_id: str) -> MembershipList:
        """Returns the communities of the account in which that user is a member, and their rights there."""
        ...

    async def find_roles(self, room_id: str, user_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Returns the role ids of these users there; unknown users are missing."""
        ...

    async def act(self, action: PlatformAction, warrant: OnBehalfOf, *, enter: EnterRoom) -> JsonObject:
        """Does something on the platform, within what both the asker and the account may do there at this moment, and
        returns the result. A message is posted within `enter` of its place. Raises NotAllowed for everything else, and
        InvalidInput for an unknown action.
        """
        ...

    async def check_action(self, action: PlatformAction, warrant: OnBehalfOf) -> None:
        """Raises what `act` would raise before it changes anything on the platform. Changes nothing."""
        ...

    async def is_open(self, room: Room) -> bool:
        """Whether everybody of the room's server may read it at this moment, whatever their roles.

        Direct messages and private threads are never open. Raises Unavailable when it cannot be known now, such as
        by an account that is not in that server.
        """
        ...

    async def may_write(self, place: Place, principal: Principal) -> bool:
        """Whether the principal may write there at this moment. Raises Unavailable when it cannot be known now."""
        ...

    async def may_post(self, place: Place, *, in_new_thread: bool = False) -> bool:
        """Whether the account itself may post there at this moment, or in a thread that it opens there. True when it
        cannot be known: posting tells.
        """
        ...

    async def may_moderate(self, room_id: str, principal: Principal) -> bool:
        """Whether the principal may delete others' messages there; False when that cannot be known."""
        ...
