"""A channel: one account of one agent on a platform, and who hears of what happens there.

Implemented by `adapters/discord`; the engine's `AccountListener` is the listener. Nothing here knows a vendor.

Errors of a `Channel`: Unavailable when the platform does not answer (try again), NotFound when the thing is gone,
NotAllowed when the account may not, InvalidInput when the platform refuses the content.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from denizen.domain.action import Action, Warrant
from denizen.domain.conversation import Place
from denizen.domain.delivery import Content
from denizen.domain.ids import AgentName
from denizen.domain.json import JsonObject
from denizen.domain.message import Part
from denizen.domain.principal import Principal
from denizen.domain.room import Post, Room
from denizen.domain.subject import Subject

LoadParts = Callable[[], Awaitable[tuple[Part, ...]]]
"""The whole question: its text with what it replies to, and what hangs on it (pictures, text files, PDF). Called only
for messages that are answered.
"""

LoadEarlier = Callable[[], Awaitable[Sequence["IncomingMessage"]]]
"""What was said before it, for platforms whose talk is not heard as a whole: the opening, and the newest messages,
oldest first. Called only for messages that are answered. What cannot be had is left out.
"""


async def _nothing_earlier() -> Sequence[IncomingMessage]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage:
    """A message as one account sees it.

    `question` is the text without the account's own mentions, empty when there is nothing else. `roles` are the
    author's role ids on the platform. `is_mine` is a message of this account itself, `is_edit` one that was there
    before with another text. `is_unsure` is one that somebody else may have edited before it was read: its author's
    rights do not count, and it is no command. `subject` is what the room is about, where it has a title.
    """

    post: Post
    room: Room
    question: str
    load_parts: LoadParts
    roles: frozenset[str] = field(default_factory=frozenset[str])
    mentions: MessageMentions = field(default_factory=MessageMentions)
    is_mine: bool = False
    is_edit: bool = False
    is_unsure: bool = False
    subject: Subject | None = None
    load_earlier: LoadEarlier = _nothing_earlier


@dataclass(frozen=True, slots=True)
class CommandOption:
    """`choices` are offered as they are; `suggests` asks the listener while the user types (autocomplete)."""

    name: str
    description: str
    required: bool = False
    choices: tuple[str, ...] = ()
    suggests: bool = False


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A slash command. With `groups`, options belong to the subcommands, which it names. Names are lower case.

    `public`: its answer is meant for everybody in the room, so waiting for it is shown to everybody.
    """

    name: str
    description: str
    options: tuple[CommandOption, ...] = ()
    groups: tuple[CommandSpec, ...] = ()
    admin_only: bool = False
    public: bool = False


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command that somebody gave, with its subcommand in `group`. `id` is unique on the platform; `ticket` is the
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


@dataclass(frozen=True, slots=True)
class CommandReply:
    """`private` replies are seen by their user only, where the platform can do that. `is_pending` means that a turn
    was opened, whose answer will be delivered with the call's ticket. `is_failure` means that what was asked for was
    not done; the text says why.
    """

    text: str = ""
    private: bool = True
    is_pending: bool = False
    is_failure: bool = False


@dataclass(frozen=True, slots=True)
class ButtonPress:
    """A button of one of the account's messages was pressed: its user says `value`, or does `action` and says `why`.
    For a choice among several `about` is what the message says that offers them.
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


@dataclass(frozen=True, slots=True)
class ReactionChange:
    """Somebody put a reaction on a message, or took it off (not `is_on`); never the account itself. `emoji` is written
    as in a message. Of who took one off only the id is known.
    """

    emoji: str
    message_id: str
    room: Room
    user_id: str
    user_name: str = ""
    roles: frozenset[str] = field(default_factory=frozenset[str])
    is_bot: bool = False
    is_on: bool = True


class Listener(Protocol):
    """Hears of what happens on one account. The adapter calls these one after another for each room; what they raise
    is logged by the adapter, and never ends the account.
    """

    @property
    def commands(self) -> Sequence[CommandSpec]:
        """What the platform should offer now."""
        ...

    async def on_ready(self, rooms: Sequence[Room]) -> None:
        """The account is connected afresh (not resumed): what happened since is unknown. `rooms` it can read now."""
        ...

    async def on_message(self, message: IncomingMessage) -> None:
        """A new message, or one with a new text (`is_edit`). The same may come twice."""
        ...

    async def on_delete(self, room: Room, post_ids: Sequence[str]) -> None: ...

    async def on_reaction(self, reaction: ReactionChange) -> None:
        """On any message, however old. One that was put while the account was away is not told of."""
        ...

    async def on_room(self, room: Room) -> None:
        """A room is new, or has another name."""
        ...

    async def on_room_gone(self, platform: str, room_id: str, *, is_deleted: bool) -> None:
        """It was deleted, with all that was said in it and in its threads; or the account left its server."""
        ...

    async def on_command(self, call: CommandCall) -> CommandReply: ...

    async def on_suggest(self, call: CommandCall, option: str, typed: str) -> Sequence[str]:
        """At most 25 completions."""
        ...

    async def on_press(self, press: ButtonPress) -> str:
        """What is said to the one who pressed it, and to nobody else; empty for nothing."""
        ...


@dataclass(frozen=True, slots=True)
class MentionNames:
    """Who can be pinged in a place: display and user names, and role names, to ids."""

    users: Mapping[str, str] = field(default_factory=dict[str, str])
    roles: Mapping[str, str] = field(default_factory=dict[str, str])


class Channel(Protocol):
    """What the engine can do through one account."""

    @property
    def platform(self) -> str: ...

    @property
    def agent(self) -> AgentName: ...

    @property
    def user_id(self) -> str:
        """The account's own id on the platform."""
        ...

    async def post(self, place: Place, content: Content, *, nonce: str, reply_to: str = "", ticket: str = "") -> str:
        """Sends one message and returns its id. The same nonce soon after gives the earlier message again. A reply to
        a message that is gone becomes a plain message. With a ticket that still holds it answers the command.
        """
        ...

    async def edit(self, place: Place, message_id: str, content: Content) -> None: ...

    async def delete(self, place: Place, message_id: str) -> None:
        """Deleting what is gone is no error."""
        ...

    async def react(self, place: Place, message_id: str, emoji: str, *, on: bool = True) -> None: ...

    def typing(self, place: Place) -> AbstractAsyncContextManager[None]:
        """Shows typing until the block ends, whatever ends it; renewed before it fades. A fault in showing it is
        logged, and does not disturb the block.
        """
        ...

    async def open_thread(self, place: Place, message_id: str, title: str) -> Room:
        """The thread of that message, made when it has none."""
        ...

    async def list_posts(self, room_id: str, *, before: str = "", after: str = "", limit: int = 100) -> Sequence[Post]:
        """Oldest first: the newest `limit` before `before`, or the oldest `limit` after `after`."""
        ...

    async def list_arrivals(self, room: Room, *, after: str, limit: int = 100) -> Sequence[IncomingMessage]:
        """Oldest first, the oldest `limit` after `after`: what was missed."""
        ...

    async def find_deleted(self, rooms: Sequence[Room]) -> frozenset[str]:
        """Ids of those that are deleted: the platform says so itself. One that the account may not see, or that cannot
        be asked for now, is not among them. Raises Unavailable when the platform does not answer.
        """
        ...

    async def find_names(self, place: Place, text: str) -> MentionNames:
        """Those whom an @Name in the text may mean. Empty when the platform cannot say now."""
        ...

    async def visible_rooms(self, place: Place, principal: Principal) -> frozenset[str]:
        """Rooms that `principal` and everybody who reads `place` may see (promise 3), by permissions of this moment.
        When it cannot be known, only what is sure.
        """
        ...

    async def find_roles(self, room_id: str, user_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
        """The role ids of these users there; those who are not known are missing."""
        ...

    async def act(self, action: Action, warrant: Warrant) -> JsonObject:
        """Does something on the platform within what both the asker and the account may do there at this moment, and
        returns what came of it. Raises NotAllowed for everything else, and InvalidInput for an unknown action.
        """
        ...

    async def is_open(self, room: Room) -> bool:
        """Whether everybody of the room's server may read it at this moment, whatever roles they have. Never so of
        direct talk and private threads. Raises Unavailable when it cannot be known now, such as by an account that is
        not in that server.
        """
        ...

    async def may_write(self, place: Place, principal: Principal) -> bool:
        """Whether the principal may write there at this moment. Raises Unavailable when it cannot be known now."""
        ...

    async def may_moderate(self, room_id: str, principal: Principal) -> bool:
        """Whether the principal may delete others' messages there; False when it cannot be known."""
        ...
