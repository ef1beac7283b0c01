"""The chats of the web: listing, opening, sending messages, forks, sharing, votes and deletion.

Everything belongs to a principal, by its key. What somebody else has is not found.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from datetime import datetime

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from denizen.domain.chat import MAX_REASON_CHARS, Chat, ChatId, ChatMode, MessageVote, Vote, first_words, is_chat_id
from denizen.domain.conversation import ALONE, Session, own_place
from denizen.domain.errors import Conflict, InvalidInput, NotAllowed, NotFound
from denizen.domain.events import TurnEvent
from denizen.domain.handover import is_exit
from denizen.domain.ids import AgentName, ConversationId, MessageId, SessionId, TurnId, turn_id
from denizen.domain.message import Message, Role, join_text
from denizen.domain.principal import Principal, RoleName
from denizen.domain.taint import find_message_taint
from denizen.domain.tool import Taint
from denizen.domain.turn import Turn, TurnRequest
from denizen.domain.words import fold_words
from denizen.engine.chats.forks import ChatForks
from denizen.engine.chats.live_chats import ChatChanged, ChatEvent, LiveChats, MessageTaken, TitleChanged
from denizen.engine.chats.reading import WEB, ChatTranscript, choose_session, get_chat, get_own_message, read_chat
from denizen.engine.chats.removal import ChatRemoval
from denizen.engine.chats.titles import ChatTitles
from denizen.engine.chats.uploads import ChatUploads
from denizen.engine.chats.watching import ChatWatcher
from denizen.engine.configuration.choices import find_model_choice
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.handovers import find_session_handover, put_handover
from denizen.engine.intake.opening import request_turn_id
from denizen.engine.loop.services import EngineServices
from denizen.engine.turn import TurnRunner
from denizen.ports.chats import ChatChanges
from denizen.ports.store import RecentSession

MAX_SEARCHED = 5000
"""So many chats of one person are searched, the newest."""
MAX_HITS = 500
TITLE_PATIENCE_S = 60.0
"""How long the stream of a first message waits for a title after the answer."""
MAX_SHARED_MESSAGES = 500
"""So many messages of a shared chat are shown, the newest."""


class Chats:
    """The chats of all people, with their `uploads`. `titles_by_model` tells whether the model makes titles, as
    configured now.
    """

    def __init__(
        self,
        runtime: Runtime,
        services: EngineServices,
        turns: TurnRunner,
        uploads: ChatUploads,
        titles_by_model: Callable[[], bool],
    ) -> None:
        self._runtime = runtime
        self._services = services
        self._turns = turns
        self.uploads = uploads
        self._titles_by_model = titles_by_model
        self._live = LiveChats()
        self._titles = ChatTitles(runtime, services, turns, self._live)
        self._watcher = ChatWatcher(services, turns, self._live)
        self._removal = ChatRemoval(services, turns, uploads, self._live)
        self.forks = ChatForks(services, self._live)

    # --- listing and reading -----------------------------------------------------------------------------------------

    async def list_chats(
        self, owner: str, *, words: str = "", before: datetime | None = None, limit: int = 50
    ) -> Sequence[Chat]:
        """Returns the owner's chats, newest first and pinned ones before the others; with `words` those whose title or
        messages have all of them.
        """
        async with self._services.store.work(write=False) as work:
            if not words.strip():
                return await work.chats.list_chats(owner, before=before, limit=limit)
            chats = await work.chats.list_chats(owner, before=before, limit=MAX_SEARCHED)
            places = [chat.conversation_id for chat in chats]
            hits = await work.messages.search(words, conversation_ids=places, limit=MAX_HITS)
        said, wanted = {hit.message.conversation_id for hit in hits}, fold_words(words)
        return [chat for chat in chats if chat.conversation_id in said or _has_words(chat.title, wanted)][:limit]

    async def get(self, owner: str, chat_id: ChatId) -> Chat:
        """Raises NotFound, for a chat of somebody else too."""
        async with self._services.store.work(write=False) as work:
            return await get_chat(work, owner, chat_id)

    async def find(self, owner: str, chat_id: ChatId) -> Chat | None:
        async with self._services.store.work(write=False) as work:
            return await work.chats.find(owner, chat_id)

    async def read(
        self,
        owner: str,
        chat_id: ChatId,
        *,
        session_id: SessionId | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> ChatTranscript:
        """Returns what a chat shows. Raises NotFound."""
        async with self._services.store.work(write=False) as work:
            chat = await get_chat(work, owner, chat_id)
            shown = await read_chat(
                work, chat, self._runtime.current, session_id=session_id, before=before, limit=limit
            )
            handed = await find_session_handover(work, chat.conversation_id)
        handovers = self._services.handovers
        return replace(
            shown,
            chat=replace(chat, agent=handovers.choose_agent(handed, chat.agent)),
            handover=handed.handover if handed and handovers.is_in_force(handed.handover) else None,
        )

    async def read_shared(self, token: str) -> ChatTranscript:
        """Returns what everybody with the token may read: no turn that has read what other people wrote, which is for
        the owner of the chat alone. Raises NotFound.
        """
        async with self._services.store.work(write=False) as work:
            chat = await work.chats.find_shared(token) if token else None
            if chat is None:
                raise NotFound(
                    "There is no shared chat here.", code="share_not_found", why="its owner may have ended the sharing"
                )
            shown = await read_chat(work, chat, self._runtime.current, limit=MAX_SHARED_MESSAGES)
        secret = {each.turn_id for each in shown.messages if _draws_on_others(each)}
        return replace(
            shown,
            messages=[each for each in shown.messages if each.turn_id not in secret],
            turns={
                key: replace(turn, images=await self._load_shared(chat, turn.images))
                for key, turn in shown.turns.items()
                if key not in secret
            },
        )

    async def _load_shared(self, chat: Chat, images: Sequence[str]) -> tuple[str, ...]:
        """Returns the pictures, those stored with the chat as data URIs: uploads are their owner's alone."""
        return tuple([url for each in images if (url := await self.uploads.load_data_uri(chat, each))])

    # --- creating and changing ---------------------------------------------------------------------------------------

    async def create(
        self, principal: Principal, chat_id: ChatId, *, agent: str = "", mode: ChatMode = ChatMode.CHAT, title: str = ""
    ) -> Chat:
        """Returns the chat, and makes it where it is missing. Raises NotFound for an unknown agent, NotAllowed for
        somebody who may not have a chat in that mode, LimitExceeded after `ROOMS`.
        """
        _check_mode(principal, mode)
        name, now = self._runtime.current.agent(agent).name, self._services.clock.now()
        async with self._services.store.work() as work:
            found = await work.chats.find(principal.key, chat_id)
            if found is not None:
                return found
            await self.forks.take_room(work, principal.key)
            place = own_place(WEB, principal.key, chat_id)
            conversation = await work.conversations.put(place, now=now)
            chat, _ = await work.chats.put(
                Chat(
                    id=chat_id,
                    conversation_id=conversation.id,
                    owner=principal.key,
                    agent=AgentName(name),
                    created_at=now,
                    updated_at=now,
                    mode=mode,
                    title=title,
                )
            )
        return chat

    async def change(
        self,
        owner: str,
        chat_id: ChatId,
        *,
        title: str | None = None,
        agent: str | None = None,
        is_pinned: bool | None = None,
    ) -> Chat:
        """Changes the chat; another agent goes on with copies of what was said, and ends a hand-over to one. Raises as
        `branch` does.
        """
        name = None if agent is None else AgentName(self._runtime.current.agent(agent).name)
        async with self._services.store.work() as work:
            chat = await get_chat(work, owner, chat_id)
            if name is not None and name != chat.agent:
                await self.forks.hand_over(work, chat, name)
            handed = await find_session_handover(work, chat.conversation_id)
            is_kept = handed is not None and self._services.handovers.is_in_force(handed.handover)
            if handed is not None and name is not None and not (is_kept and name == handed.handover.agent):
                place = own_place(WEB, owner, chat.id)
                await put_handover(work, handed.own, place, None, now=self._services.clock.now())
            await work.chats.change(chat.conversation_id, ChatChanges(title=title, is_pinned=is_pinned))
            chat = await get_chat(work, owner, chat_id)
        if title is not None:
            self._live.publish(chat.conversation_id, TitleChanged(title))
        self._live.publish(chat.conversation_id, ChatChanged())
        return chat

    async def share(self, owner: str, chat_id: ChatId, *, is_public: bool) -> str:
        """Returns the token of a chat that is shared from now on, a new one each time; empty when the sharing has
        ended. Raises NotFound, NotAllowed for a chat about the administration, and Conflict for one that shows what
        other people wrote.
        """
        token = secrets.token_urlsafe(24) if is_public else ""
        async with self._services.store.work() as work:
            chat = await get_chat(work, owner, chat_id)
            if is_public and chat.mode is ChatMode.ADMIN:
                raise NotAllowed(
                    "A chat about the administration cannot be shared.",
                    code="admin_chat_private",
                    why="it shows what other people do on this server",
                    fix="Copy what others may read.",
                )
            if is_public:
                session = choose_session(await work.sessions.list_all(chat.conversation_id), chat)
                messages = await work.messages.list_tail(session.id, limit=MAX_SHARED_MESSAGES) if session else ()
                if any(_draws_on_others(each) for each in messages):
                    raise Conflict(
                        "This chat cannot be shared.",
                        code="chat_shows_others",
                        why="an answer in it draws on what other people wrote, such as messages of the archive",
                        fix="Share a chat without such an answer, or copy what others may read.",
                    )
            await work.chats.change(chat.conversation_id, ChatChanges(share_token=token))
        return token

    async def remove(self, owner: str, chat_id: ChatId) -> None:
        """Removes a chat for good, and stops what runs in it. Raises NotFound."""
        await self._removal.remove(await self.get(owner, chat_id))

    async def forget_owner(self, owner: str, turn_ids: Sequence[TurnId] = ()) -> None:
        """Removes all chats and uploads of an owner, as `ChatRemoval.forget_owner` does."""
        await self._removal.forget_owner(owner, turn_ids)

    async def forget_turns(self, turn_ids: Sequence[TurnId]) -> None:
        """Stops turns outside of chats, and takes them out of the durable log."""
        await self._removal.forget_turns(turn_ids)

    async def list_uploads(self, owner: str) -> Sequence[str]:
        """Returns the paths of all uploads of an owner."""
        return await self.uploads.list_paths(owner)

    async def vote(self, owner: str, message_id: MessageId, vote: Vote | None, reason: str = "") -> None:
        """Sets or takes back the vote on an answer in an own chat. Raises NotFound, InvalidInput for other messages."""
        async with self._services.store.work() as work:
            message = await get_own_message(work, owner, message_id)
            if message.role is not Role.ASSISTANT:
                raise InvalidInput("Only answers of agents have votes.", code="feedback_not_answer")
            if vote is None:
                await work.chats.remove_vote(message_id)
            else:
                said = reason.strip()[:MAX_REASON_CHARS]
                await work.chats.put_vote(
                    MessageVote(message_id=message_id, vote=vote, reason=said, said_at=message.created_at)
                )
        self._live.publish(message.conversation_id, ChatChanged())

    # --- sessions ----------------------------------------------------------------------------------------------------

    async def list_sessions(self, owner: str, *, agent: str = "", limit: int = 50) -> Sequence[RecentSession]:
        """Returns the sessions that go on, by their last message, newest first; without questions that stood alone."""
        async with self._services.store.work(write=False) as work:
            return await work.sessions.list_recent(
                platform=WEB, channel=owner, agent=agent, except_prefix=ALONE, limit=limit
            )

    async def new_session(self, principal: Principal, name: str, agent: str) -> Session:
        """Begins a session of that name afresh. Raises NotFound for an unknown agent, InvalidInput for a name that is
        not allowed, LimitExceeded after `ROOMS`.
        """
        place, now = own_place(WEB, principal.key, name), self._services.clock.now()
        known = AgentName(self._runtime.current.agent(agent).name)
        async with self._services.store.work() as work:
            await self.forks.take_room(work, principal.key)
            conversation = await work.conversations.put(place, now=now)
            session = await work.sessions.renew(conversation.id, known, now=now)
        self._live.publish(conversation.id, ChatChanged())
        return session

    # --- messages ----------------------------------------------------------------------------------------------------

    async def submit(self, request: TurnRequest, *, mode: ChatMode = ChatMode.CHAT) -> Turn:
        """Takes a message, and returns its turn, which runs. `mode` is that of a chat which begins with it. Raises what
        `TurnRunner.submit` raises, and NotAllowed for somebody who may not have a chat in its mode.
        """
        request, mode = await self._set_mode(await self.address(request), mode)
        await self._choose_agent(request)
        request = await self._choose_model(request)
        with self._keeping(request) as taken:

            async def note(turn: Turn, *, is_new: bool) -> None:
                await self._note(request, mode, turn, is_new=is_new)
                taken.append(turn)

            return await self._turns.submit(request, on_open=note)

    async def stream(
        self, request: TurnRequest, *, mode: ChatMode = ChatMode.CHAT, is_plain: bool = False
    ) -> AsyncGenerator[TurnEvent | TitleChanged]:
        """Takes a message, and yields what happens in its turn and the titles that the chat gets; the turn's end may be
        followed by a title. A plain session is named by its first words, and each agent has a history of its own in it.
        Raises as `submit` does.
        """
        place = request.place.conversation_id
        request, mode = await self._set_mode(request, mode)
        if not is_plain:
            await self._choose_agent(request)
        request = await self._choose_model(request)
        with self._live.watch(place) as news, self._keeping(request) as taken:

            async def note(turn: Turn, *, is_new: bool) -> None:
                await self._note(request, mode, turn, is_new=is_new, titles=not is_plain)
                taken.append(turn)

            async with aclosing(self._turns.stream(request, on_open=note)) as events:
                async for event in events:
                    while not is_plain and (title := _next_title(news)):
                        yield title
                    yield event
            if is_plain:
                return
            with anyio.move_on_after(TITLE_PATIENCE_S):
                while self._titles.is_pending(place):
                    event = await news.receive()
                    if isinstance(event, TitleChanged) and event.title:
                        yield event
            while title := _next_title(news):
                yield title

    @contextmanager
    def _keeping(self, request: TurnRequest) -> Generator[list[Turn]]:
        """Keeps what happens in the turn of a message for those who come later, if it is taken: the caller appends the
        turn to the list.
        """
        key = request_turn_id(self._runtime.current.agent(request.agent), request)
        is_first = not self._services.live.is_kept(key)
        self._services.live.keep(key)
        taken: list[Turn] = []
        try:
            yield taken
        finally:
            if (is_first and not taken) or any(turn.status.is_final for turn in taken):
                self._services.live.drop(key)

    def watch(self, owner: str, chat_id: ChatId) -> AsyncGenerator[tuple[TurnId, TurnEvent] | ChatEvent]:
        """Yields what happens in a chat, as `ChatWatcher.watch` does. Raises NotFound."""
        return self._watcher.watch(owner, chat_id)

    def tell_changed(self, place: ConversationId) -> None:
        """Tells those who watch the chat that it has to be read again."""
        self._live.publish(place, ChatChanged())

    async def _choose_model(self, request: TurnRequest) -> TurnRequest:
        """Returns the message with the model that its sender chose with `/model` or `/mode`, unless it names one."""
        if request.options.model:
            return request
        async with self._services.store.work(write=False) as work:
            model = await find_model_choice(work, request.sender.principal.key, self._runtime.current.models)
        return replace(request, options=replace(request.options, model=model)) if model else request

    async def _set_mode(self, request: TurnRequest, mode: ChatMode) -> tuple[TurnRequest, ChatMode]:
        """Returns the message as one of its chat's mode; a chat that is there keeps its own. Roles count as they are
        now: somebody who is no admin any more goes on with none of the chats about the administration.
        """
        principal, name = request.sender.principal, request.place.thread
        chat = await self.find(principal.key, ChatId(name)) if is_chat_id(name) else None
        found = chat.mode if chat is not None else mode
        _check_mode(principal, found)
        options = replace(request.options, is_administration=found is ChatMode.ADMIN)
        return replace(request, options=options), found

    async def address(self, request: TurnRequest) -> TurnRequest:
        """Returns the message as one to the agent that its session was handed to, if it was; `!exit` ends the
        hand-over. One that is repeated stays with the agent that took it.
        """
        handovers, named = self._services.handovers, self._runtime.current.agent(request.agent).name
        found = await handovers.find_in_session(request.place)
        if found is None:
            return request
        agent = handovers.choose_agent(found, named)
        if agent == found.handover.agent and is_exit(join_text(request.parts)):
            await handovers.end(found.own, request.place, "You have ended it", key=request.platform_id)
            agent = found.own
        if request.keyed:
            known = {turn_id(each, WEB, request.platform_id): each for each in (named, found.own, found.handover.agent)}
            async with self._services.store.work(write=False) as work:
                taken = await work.turns.find_many(known)
            agent = taken[0].agent if taken else agent
        return replace(request, agent=agent)

    async def _choose_agent(self, request: TurnRequest) -> None:
        """Lets the agent of the message go on with the chat."""
        principal, name = request.sender.principal, request.place.thread
        agent = self._runtime.current.agent(request.agent)
        if is_chat_id(name):
            async with self._services.store.work() as work:
                chat = await work.chats.find(principal.key, ChatId(name))
                if chat is not None and chat.agent != agent.name and not request.session.is_new:
                    await self.forks.hand_over(work, chat, AgentName(agent.name))

    async def _note(
        self, request: TurnRequest, mode: ChatMode, turn: Turn, *, is_new: bool, titles: bool = True
    ) -> None:
        """Notes a message that was taken in the list of chats: a session that was named for one question is none. One
        that is sent again does not count toward a hand-over again.
        """
        name = request.place.thread
        if not name.startswith(ALONE) and is_chat_id(name):
            owner, now = request.sender.principal.key, self._services.clock.now()
            said = join_text(request.parts)
            new = Chat(
                id=ChatId(name),
                conversation_id=turn.conversation_id,
                owner=owner,
                agent=turn.agent,
                created_at=now,
                updated_at=now,
                mode=mode,
                title=first_words(said),
            )
            async with self._services.store.work() as work:
                chat, is_new_chat = await work.chats.put(new)
                is_untitled = is_new_chat or not chat.title
                if not is_new_chat:
                    title = new.title if is_untitled else None
                    await work.chats.change(
                        chat.conversation_id, ChatChanges(title=title, agent=turn.agent, updated_at=now)
                    )
            if is_untitled:
                self._live.publish(new.conversation_id, TitleChanged(new.title))
                if titles and said.strip() and self._titles_by_model() and not turn.status.is_final:
                    await self._titles.submit(new, turn.id)
            self._live.publish(new.conversation_id, MessageTaken(turn.id))
        if is_new:  # behind what watchers are told: the turn runs already
            await self._services.handovers.take_session_message(request.place, turn.agent)


def _has_words(title: str, wanted: Sequence[str]) -> bool:
    """Tells whether each of these words begins some word of the title."""
    words = fold_words(title)
    return bool(wanted) and all(any(word.startswith(each) for word in words) for each in wanted)


def _check_mode(principal: Principal, mode: ChatMode) -> None:
    if mode is ChatMode.ADMIN and not principal.roles & {RoleName.ADMIN, RoleName.OWNER}:
        raise NotAllowed(
            "Chats about the administration are for owners and admins.",
            code="admin_only",
            fix="Use a key or an account with the role admin.",
        )


def _draws_on_others(message: Message) -> bool:
    return Taint.OTHERS in find_message_taint(message)


def _next_title(news: MemoryObjectReceiveStream[ChatEvent]) -> TitleChanged | None:
    """Returns the next title that has come already."""
    while True:
        try:
            event = news.receive_nowait()
        except anyio.WouldBlock:
            return None
        if isinstance(event, TitleChanged) and event.title:
            return event
