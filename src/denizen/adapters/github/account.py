"""One login on GitHub: `denizen.ports.channel.Channel`, told by webhooks and by looking for what these left out.

`run` finds out who the account is and what happened while it was away, and then looks again now and then; `take` is
given each webhook, verified, by `app/hosting`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

import anyio

from denizen.adapters.github import reading, writing
from denizen.adapters.github.api import Api
from denizen.adapters.github.arriving import Ear
from denizen.adapters.github.body import to_body
from denizen.adapters.github.credentials import Identity, credentials_of
from denizen.adapters.github.events import Change, read_event
from denizen.adapters.github.heard import Heard, Topic
from denizen.adapters.github.news import MAX_REPOSITORIES, read_news, rooms_of
from denizen.adapters.github.payload import Payload
from denizen.adapters.github.people import People
from denizen.adapters.github.repositories import Repositories
from denizen.adapters.github.requests import Client
from denizen.adapters.github.settings import PLATFORM, AccountSettings
from denizen.adapters.github.threads import Thread, thread_of
from denizen.domain.action import Action, Warrant
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.delivery import Content
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal
from denizen.domain.room import Post, Room, RoomKind
from denizen.ports.channel import IncomingMessage, Listener, MentionNames
from denizen.ports.hosting import HostedRepository

LOOK_BACK = timedelta(days=7)
"""What is older when the account comes back is not looked for."""
OVERLAP = timedelta(minutes=5)
REMEMBERED = 5000
START_PATIENCE_S = 3.0
"""How long a webhook waits for the account to be connected; GitHub gives up after ten seconds."""

_log = logging.getLogger("denizen.github")


class GitHubAccount:
    """`run` has to be running for it to hear; what it can do needs no connection."""

    def __init__(self, settings: AccountSettings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self._client = Client(settings.api_url, clock)
        self._credentials = credentials_of(self._client, settings, clock)
        self._api = Api(self._client, self._credentials)
        self._repositories = Repositories(self._client, self._credentials, settings, clock)
        self._people = People(self._api)
        self._identity: Identity | None = None
        self._ear: Ear | None = None
        self._listener: Listener | None = None
        self._connected = anyio.Event()
        self._since = clock.now()
        """What is older is the business of catching up."""
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

    # --- hearing -----------------------------------------------------------------------------------------------------

    async def run(self, listener: Listener) -> None:
        """Until it is cancelled. Raises NeedsAttention for credentials that GitHub refuses, and Unavailable."""
        try:
            self._identity = identity = await self._credentials.identify()
            self._ear = Ear(self._api, identity, self.settings.reply_to_new_issues)
            now = self._clock.now()
            names = [each.name for each in await self._repositories.load()]
            news = await read_news(self._api, names, now - LOOK_BACK)
            await listener.on_ready(rooms_of(news, names[:MAX_REPOSITORIES], now))
            self._listener, self._since = listener, now.replace(microsecond=0)
            self._connected.set()
            now = await self._rescan(now)  # what was written meanwhile
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
        """Ends its connections; what is asked later opens others."""
        await self._client.aclose()

    async def take(self, name: str, payload: Payload) -> bool:
        """A webhook of that event. False when it is about nothing for an agent. Raises Unavailable while the account is
        not connected: what is missed then is found when it is.
        """
        event = read_event(name, payload)
        if event.installation and event.repository:
            self._credentials.know_installation(event.repository, event.installation)
        if event.heard is None or event.topic is None or not self.settings.admits(event.repository):
            return False
        await self._hear(event.topic, event.heard, event.change, is_told=True)
        return True

    async def sync_commands(self) -> None:
        """GitHub has none to register: they are typed."""

    async def _rescan(self, since: datetime) -> datetime:
        """Looks for messages whose webhook never came; what was heard already is passed over."""
        now = self._clock.now()
        try:
            names = [each.name for each in await self._repositories.load()]
            for news in await read_news(self._api, names, max(since - OVERLAP, self._since)):
                await self._hear(news.topic, news.heard, Change.MADE)
        except DenizenError as error:
            _log.warning("GitHub cannot be looked through", extra={"agent": self.agent, "why": error.explain()})
            return since
        return now

    async def _hear(self, topic: Topic, heard: Heard, change: Change, *, is_told: bool = False) -> None:
        """One after another in each room. `is_told`: by a webhook, which says what was written and by whom."""
        if self._listener is None:
            with anyio.move_on_after(START_PATIENCE_S):
                await self._connected.wait()
        listener, ear, post = self._listener, self._ear, heard.post
        if listener is None or ear is None:
            raise Unavailable(
                "This account is not connected to GitHub yet.", code="github_not_connected",
                fix="Wait; what was missed is read when it is.",
            )  # fmt: skip
        # One that was heard before it was edited is not heard anew because it reads differently now.
        key = (post.id, change, 0 if change is Change.MADE else hash((post.edited_at, post.text)))
        async with self._locks.setdefault(post.room, anyio.Lock()):
            if key in self._heard:
                return
            room = heard.thread.room(topic.subject.title, latest_post=post.id)
            self._people.meet(post.author)
            await self._tell_room(listener, room)
            if change is Change.GONE:
                await listener.on_delete(room, [post.id])
                if heard.is_opening:  # of what goes with it GitHub does not tell one by one
                    await listener.on_room_gone(room.platform, room.id, is_deleted=True)
            else:
                is_edit, is_fresh = change is Change.EDITED, is_told and change is Change.MADE
                await listener.on_message(ear.arrival(topic, heard, is_edit=is_edit, is_fresh=is_fresh))
            self._heard[key] = None
            while len(self._heard) > REMEMBERED:
                self._heard.popitem(last=False)

    async def _tell_room(self, listener: Listener, room: Room) -> None:
        """A room that is new, or has another title. It was read up to the message that is told next."""
        if self._names.get(room.id) != room.name:
            await listener.on_room(replace(room, latest_post=str(int(room.latest_post) - 1)))
            self._names[room.id] = room.name
            if len(self._names) > REMEMBERED:
                self._names.clear()

    # --- doing -------------------------------------------------------------------------------------------------------

    async def post(self, place: Place, content: Content, *, nonce: str, reply_to: str = "", ticket: str = "") -> str:
        """GitHub has no replies: the place is the thread. What was tried before is found by its mark (`list_posts`)."""
        thread = _thread_at(place)
        logins = await self._people.find_logins(content.ping_users, thread.repository)
        return await writing.add(self._api, thread, to_body(content, logins, nonce=nonce))

    async def edit(self, place: Place, message_id: str, content: Content) -> None:
        thread = _thread_at(place)
        logins = await self._people.find_logins(content.ping_users, thread.repository)
        await writing.edit(self._api, thread, message_id, to_body(content, logins))

    async def delete(self, place: Place, message_id: str) -> None:
        await writing.delete(self._api, _thread_at(place), message_id)

    async def react(self, place: Place, message_id: str, emoji: str, *, on: bool = True) -> None:
        await writing.react(self._api, _thread_at(place), message_id, emoji, on=on, user_id=self.user_id)

    @asynccontextmanager
    async def _silence(self) -> AsyncGenerator[None]:
        yield

    def typing(self, place: Place) -> AbstractAsyncContextManager[None]:
        """GitHub shows nothing of the kind."""
        return self._silence()

    async def open_thread(self, place: Place, message_id: str, title: str) -> Room:
        raise NotAllowed("There are no threads to open on GitHub.", code="github_no_threads")

    async def act(self, action: Action, warrant: Warrant) -> JsonObject:
        raise NotAllowed("An agent only writes on GitHub; it does nothing else there.", code="github_no_actions")

    # --- knowing -----------------------------------------------------------------------------------------------------

    async def list_posts(self, room_id: str, *, before: str = "", after: str = "", limit: int = 100) -> Sequence[Post]:
        thread = thread_of(room_id)
        if after:
            found = await reading.list_after(self._api, thread, after, limit)
        else:
            found = await reading.list_before(self._api, thread, before, limit)
        return [each.post for each in found]

    async def list_arrivals(self, room: Room, *, after: str, limit: int = 100) -> Sequence[IncomingMessage]:
        """A repository has no messages of its own."""
        if room.kind is RoomKind.FORUM or self._ear is None:
            return ()
        thread = thread_of(room.id)
        topic = await reading.load_topic(self._api, thread)
        found = await reading.list_after(self._api, thread, after, limit, topic)
        return [self._ear.arrival(topic, each) for each in found]

    async def list_repositories(self) -> Sequence[HostedRepository]:
        """Those that it can read and may answer in, as they were within the last minute."""
        return await self._repositories.show()

    async def find_deleted(self, rooms: Sequence[Room]) -> frozenset[str]:
        """Nothing is sure: a thread that is gone may have been moved, and a repository be private now."""
        return frozenset()

    async def find_names(self, place: Place, text: str) -> MentionNames:
        """Nobody is called by an agent's words: who takes part in a thread hears of them anyway."""
        return MentionNames()

    async def visible_rooms(self, place: Place, principal: Principal) -> frozenset[str]:
        """The thread, and what it belongs to: who may read it may read that. Of other threads nothing is sure here."""
        return frozenset(filter(None, (place.channel, place.thread)))

    async def find_roles(self, room_id: str, user_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
        """What somebody is to a repository is told with each message, and nowhere else."""
        return {}

    async def is_open(self, room: Room) -> bool:
        """Whether its repository is public: what is private stays there, whoever may read that."""
        try:
            return await self._people.is_public(room.guild)
        except (NotFound, NotAllowed, InvalidInput):
            return False

    async def may_write(self, place: Place, principal: Principal) -> bool:
        try:
            return await self._people.may_write(_thread_at(place), principal)
        except (NotFound, NotAllowed, InvalidInput):
            return False

    async def may_moderate(self, room_id: str, principal: Principal) -> bool:
        return False


def _thread_at(place: Place) -> Thread:
    return thread_of(place.thread or place.channel)
