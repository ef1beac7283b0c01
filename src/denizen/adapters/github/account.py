"""`GitHubAccount`: one login on GitHub. Start reading here.

Webhooks tell it of messages, and it looks regularly for those whose webhook never came. Implements
`denizen.ports.channel.Channel`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from weakref import WeakValueDictionary

import anyio

from denizen.adapters.github import comments
from denizen.adapters.github.access import GitHubUsers, RepositoryList
from denizen.adapters.github.api import GitHubApi, GitHubIdentity, build_credentials
from denizen.adapters.github.client import GitHubClient, Payload
from denizen.adapters.github.comments import list_newest
from denizen.adapters.github.events import MAX_REPOSITORIES, MessageChange, list_rooms, list_updates, parse_event
from denizen.adapters.github.markdown import from_body, list_mentions, strip_mentions, to_body
from denizen.adapters.github.settings import PLATFORM, GitHubAccountSettings
from denizen.adapters.github.threads import GitHubMessage, GitHubThread, ThreadTopic, parse_thread
from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound, Unavailable, list_fields
from denizen.domain.ids import AgentName
from denizen.domain.json import JsonObject
from denizen.domain.message import FilePart, Part, TextPart
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.room import Post, Room, RoomKind
from denizen.ports.channel import (
    ChannelListener,
    EnterRoom,
    IncomingMessage,
    MembershipList,
    MentionNames,
    MessageMentions,
)
from denizen.ports.hosting import HostedRepository

EARLIER_COMMENTS = 10
"""The number of earlier comments that are read as context."""
EARLIER_DEADLINE_S = 5.0
"""GitHub gives up on a webhook after ten seconds."""
NO_WORDS = "(There are no words beside the mention: it is about what was said before.)"

_log = logging.getLogger("denizen.github")


@record
class IncomingMessageBuilder:
    """Builds an `IncomingMessage` as one account sees it. With `new_issues` an opened issue is addressed to the
    account, whether it mentions it or not.
    """

    api: GitHubApi
    identity: GitHubIdentity
    new_issues: bool

    def arrival(
        self, topic: ThreadTopic, message: GitHubMessage, *, is_edit: bool = False, is_fresh: bool = False
    ) -> IncomingMessage:
        """Builds the message. `is_fresh` means that GitHub sent it as it was created.

        Otherwise an edit may hold somebody else's words: whoever may write to a repository may edit what others
        wrote there.
        """
        is_unsure = message.post.changes.edited_at is not None and not is_fresh
        words, _ = from_body(message.body)
        called, own = list_mentions(words), self.identity.mention.lower()
        is_new_issue = self.new_issues and message.is_opening and topic.subject.kind == "issue"
        is_meant = own in called or is_new_issue
        question = strip_mentions(words, own) or NO_WORDS
        return IncomingMessage(
            post=message.post,
            room=message.thread.room(topic.subject.title, latest_post=message.post.id),
            question=question,
            load_parts=partial(_load_parts, message, question),
            roles=frozenset(filter(None, (message.association,))),
            mentions=MessageMentions(
                me=is_meant,
                others=any(name != own for name in called),
                users=(self.identity.user_id,) if is_meant else (),
            ),
            is_mine=message.post.author.id == self.identity.user_id,
            is_edit=is_edit,
            is_unsure=is_unsure,
            subject=topic.subject,
            load_earlier=partial(self._load_earlier, topic, message),
        )

    async def _load_earlier(self, topic: ThreadTopic, message: GitHubMessage) -> Sequence[IncomingMessage]:
        """Returns the opening and the newest comments before the message; none if they cannot be read, since the
        question is answered all the same.
        """
        found: Sequence[GitHubMessage] = ()
        if not message.is_opening:
            try:
                with anyio.fail_after(EARLIER_DEADLINE_S):
                    found = await list_newest(self.api, message.thread, message.post.id, EARLIER_COMMENTS)
            except (DenizenError, TimeoutError) as error:
                why = error.explain() if isinstance(error, DenizenError) else "it took too long"
                _log.warning(
                    "comments are not read", extra={"room": message.thread.room_id, **list_fields(error), "why": why}
                )
        opening = [] if message.is_opening else [topic.opening]
        return [self.arrival(topic, each) for each in (*opening, *found)]


async def _load_parts(message: GitHubMessage, question: str) -> tuple[Part, ...]:
    if not message.code:
        return (TextPart(question),)
    name = message.file or "change.diff"
    return (TextPart(question), FilePart(name, "text/x-diff", len(message.code.encode()), text=message.code))


LOOK_BACK = timedelta(days=7)
"""How far back the account looks for missed messages when it returns."""
# Scans overlap, in case a list shows a message late.
OVERLAP = timedelta(minutes=5)
# Bounds the memory of handled messages, which scans and repeated webhooks are compared with.
REMEMBERED = 5000
START_PATIENCE_S = 3.0
"""The time that a webhook waits for the account to connect. GitHub gives up after ten seconds."""


class GitHubAccount:
    """One login on GitHub. It receives messages only while `run` runs; the other methods need no connection."""

    def __init__(self, settings: GitHubAccountSettings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self._client = GitHubClient(settings.api_url, clock)
        self._credentials = build_credentials(self._client, settings, clock)
        self._api = GitHubApi(self._client, self._credentials)
        self._repositories = RepositoryList(self._client, self._credentials, settings, clock)
        self._people = GitHubUsers(self._api)
        self._identity: GitHubIdentity | None = None
        self._ear: IncomingMessageBuilder | None = None
        self._listener: ChannelListener | None = None
        self._connected = anyio.Event()
        self._since = clock.now()
        """Catching up handles everything older."""
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._names: dict[str, str] = {}
        self._heard: OrderedDict[tuple[str, str, int], None] = OrderedDict()

    @property
    def platform(self) -> str:
        return PLATFORM

    @property
    def agent(self) -> AgentName:
        return self.settings.agent

    @property
    def user_id(self) -> str:
        return self._identity.user_id if self._identity else ""

    @property
    def is_connected(self) -> bool:
        return self._listener is not None

    @property
    def is_listening(self) -> bool:
        return self.is_connected

    @property
    def shards(self) -> None:
        """There are none here."""

    # --- receiving ---------------------------------------------------------------------------------------------------

    async def run(self, listener: ChannelListener) -> None:
        """Receives messages until cancelled. Raises NeedsAttention for refused credentials, and Unavailable."""
        try:
            self._identity = identity = await self._credentials.identify()
            self._ear = IncomingMessageBuilder(self._api, identity, self.settings.reply_to_new_issues)
            now = self._clock.now()
            names = [each.name for each in await self._repositories.load()]
            updates = await list_updates(self._api, names, now - LOOK_BACK)
            await listener.on_ready(list_rooms(updates, names[:MAX_REPOSITORIES], now))
            self._listener, self._since = listener, now.replace(microsecond=0)
            self._connected.set()
            now = await self._rescan(now)  # finds what was written while the first scan ran
            if not self.settings.rescan_s:
                await anyio.sleep_forever()
            while True:
                await anyio.sleep(self.settings.rescan_s)
                now = await self._rescan(now)
        finally:
            self._listener, self._connected = None, anyio.Event()
            with anyio.CancelScope(shield=True):
                await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections. A later request opens new ones."""
        await self._client.aclose()

    async def take(self, name: str, payload: Payload) -> bool:
        """Handles a webhook. Returns False when it is about nothing for an agent. Raises Unavailable while the account
        is not connected; the next scan finds what was missed.
        """
        event = parse_event(name, payload)
        if event.installation and event.repository:
            self._credentials.know_installation(event.repository, event.installation)
        if event.message is None or event.topic is None or not self.settings.admits(event.repository):
            return False
        await self._hear(event.topic, event.message, event.change, is_told=True)
        return True

    async def sync_commands(self) -> None:
        """Returns 0: GitHub registers no commands, people type them."""

    async def _rescan(self, since: datetime) -> datetime:
        """Looks for messages whose webhook never came, and skips those that were handled."""
        now = self._clock.now()
        try:
            names = [each.name for each in await self._repositories.load()]
            for update in await list_updates(self._api, names, max(since - OVERLAP, self._since)):
                await self._hear(update.topic, update.message, MessageChange.MADE)
        except DenizenError as error:
            _log.warning(
                "GitHub cannot be looked through", extra={"agent": self.agent, **error.fields, "why": error.explain()}
            )
            return since
        return now

    async def _hear(
        self, topic: ThreadTopic, message: GitHubMessage, change: MessageChange, *, is_told: bool = False
    ) -> None:
        """Passes a message to the listener, one after another in each room. `is_told` means that a webhook brought it,
        so the author and the text are certain.
        """
        if self._listener is None:
            with anyio.move_on_after(START_PATIENCE_S):
                await self._connected.wait()
        listener, ear, post = self._listener, self._ear, message.post
        if listener is None or ear is None:
            raise Unavailable(
                "This account is not connected to GitHub yet.",
                code="github_not_connected",
                fix="Wait; what was missed is read when it is.",
            )
        # A scan finds an edited message again. It has been handled already, whatever its text is now.
        key = (post.id, change, 0 if change is MessageChange.MADE else hash((post.changes.edited_at, post.text)))
        async with self._locks.setdefault(post.room, anyio.Lock()):
            if key in self._heard:
                return
            room = message.thread.room(topic.subject.title, latest_post=post.id)
            self._people.meet(post.author)
            if self._names.get(room.id) != room.name:  # new, or has another title
                # The room's read position is the message before the one that comes next.
                await listener.on_room(replace(room, latest_post=str(int(room.latest_post) - 1)))
                self._names[room.id] = room.name
                if len(self._names) > REMEMBERED:
                    self._names.clear()
            if change is MessageChange.GONE:
                await listener.on_delete(room, [post.id])
                if message.is_opening:  # GitHub sends no webhooks for the comments that go with it
                    await listener.on_room_gone(room.platform, room.id, is_deleted=True)
            else:
                is_edit, is_fresh = change is MessageChange.EDITED, is_told and change is MessageChange.MADE
                await listener.on_message(ear.arrival(topic, message, is_edit=is_edit, is_fresh=is_fresh))
            self._heard[key] = None
            while len(self._heard) > REMEMBERED:
                self._heard.popitem(last=False)

    # --- sending -----------------------------------------------------------------------------------------------------

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
        """Posts a comment. GitHub has no replies; `list_posts` finds an earlier try by its hidden mark."""
        thread = _thread_at(place)
        logins = await self._people.find_logins(content.ping_users, thread.repository)
        return await comments.add_comment(self._api, thread, to_body(content, logins, nonce=nonce))

    async def edit(self, place: Place, message_id: str, content: MessageContent) -> None:
        thread = _thread_at(place)
        logins = await self._people.find_logins(content.ping_users, thread.repository)
        await comments.edit_comment(self._api, thread, message_id, to_body(content, logins))

    async def delete(self, place: Place, message_id: str) -> None:
        await comments.delete_comment(self._api, _thread_at(place), message_id)

    async def react(self, place: Place, message_id: str, emoji: str, *, on: bool = True) -> None:
        await comments.set_reaction(self._api, _thread_at(place), message_id, emoji, on=on, user_id=self.user_id)

    @asynccontextmanager
    async def _silence(self) -> AsyncGenerator[None]:
        yield

    def typing(self, place: Place) -> AbstractAsyncContextManager[None]:
        """Does nothing: GitHub shows no typing."""
        return self._silence()

    async def open_thread(self, place: Place, message_id: str, title: str) -> Room:
        raise NotAllowed("There are no threads to open on GitHub.", code="github_no_threads")

    async def act(self, action: PlatformAction, warrant: OnBehalfOf, *, enter: EnterRoom) -> JsonObject:
        raise NotAllowed("An agent only writes on GitHub; it does nothing else there.", code="github_no_actions")

    async def check_action(self, action: PlatformAction, warrant: OnBehalfOf) -> None:
        await self.act(action, warrant, enter=lambda _: nullcontext())

    # --- reading -----------------------------------------------------------------------------------------------------

    async def list_posts(self, room_id: str, *, before: str = "", after: str = "", limit: int = 100) -> Sequence[Post]:
        thread = parse_thread(room_id)
        if after:
            found = await comments.list_after(self._api, thread, after, limit)
        else:
            found = await comments.list_before(self._api, thread, before, limit)
        return [each.post for each in found]

    async def list_arrivals(self, room: Room, *, after: str, limit: int = 100) -> Sequence[IncomingMessage]:
        """Lists what was missed in a thread. A repository has no messages of its own."""
        if room.kind is RoomKind.FORUM or self._ear is None:
            return ()
        thread = parse_thread(room.id)
        topic = await comments.load_topic(self._api, thread)
        found = await comments.list_after(self._api, thread, after, limit, topic)
        return [self._ear.arrival(topic, each) for each in found]

    async def list_repositories(self) -> Sequence[HostedRepository]:
        """Returns the repositories in which it may answer, as they were within the last minute."""
        return await self._repositories.show()

    async def find_deleted(self, rooms: Sequence[Room]) -> frozenset[str]:
        """Returns none: a thread that is gone may have been moved, or its repository made private."""
        return frozenset()

    async def find_names(self, place: Place, text: str) -> MentionNames:
        """Returns none: an agent's words ping nobody, since the participants of a thread are notified anyway."""
        return MentionNames()

    async def visible_rooms(self, place: Place, principal: Principal) -> frozenset[str]:
        """Returns the thread and what it belongs to, which all its readers see. Nothing is certain of other threads."""
        return frozenset(filter(None, (place.channel, place.thread)))

    async def list_memberships(self, user_id: str) -> MembershipList:
        """Returns none: GitHub does not tell an app what somebody may read elsewhere."""
        return MembershipList()

    async def find_roles(self, room_id: str, user_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Returns none: GitHub tells an author's association with each message only."""
        return {}

    async def is_open(self, room: Room) -> bool:
        """Whether the room's repository is public. What is private is never open, whoever may read it."""
        try:
            return await self._people.is_public(room.guild)
        except (NotFound, NotAllowed, InvalidInput):
            return False

    async def may_write(self, place: Place, principal: Principal) -> bool:
        try:
            return await self._people.may_write(_thread_at(place), principal)
        except (NotFound, NotAllowed, InvalidInput):
            return False

    async def may_post(self, place: Place, *, in_new_thread: bool = False) -> bool:
        return True

    async def open_direct(self, user_id: str) -> Place:
        raise NotAllowed("There are no direct messages on GitHub.", code="github_no_direct")

    async def may_moderate(self, room_id: str, principal: Principal) -> bool:
        return False


def _thread_at(place: Place) -> GitHubThread:
    return parse_thread(place.thread or place.channel)
