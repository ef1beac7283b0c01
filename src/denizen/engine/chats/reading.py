"""Reads what a chat shows: the messages of a session of it, with what is recorded of their turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from denizen.domain.attachments import collect_extras, describe_cards, list_pictures
from denizen.domain.chat import Chat, ChatId, MessageVote, SessionFork, list_forks
from denizen.domain.citation import Citation
from denizen.domain.conversation import Session
from denizen.domain.errors import NotFound
from denizen.domain.handover import Handover
from denizen.domain.ids import MessageId, SessionId, TurnId
from denizen.domain.message import Message, Role
from denizen.domain.record import record
from denizen.domain.turn import Turn, TurnStatus
from denizen.domain.upload import SCHEME
from denizen.engine.configuration.generation import Generation
from denizen.engine.loop.step_record import collect_reply_extras
from denizen.ports.store import UnitOfWork

WEB = "web"
"""The platform of chats."""
MAX_OPEN = 20


@record(kw_only=True)
class ShownTurn:
    """A turn, and what came of it besides its text: proved citations, pictures as data URIs, addresses of uploads
    or web addresses, cards as Markdown, and the reasoning if the agent shows it.
    """

    turn: Turn
    citations: Sequence[Citation] = ()
    images: tuple[str, ...] = ()
    cards: str = ""
    reasoning: str = ""


@record(kw_only=True)
class ChatTranscript:
    """A stretch of a session of a chat. `session` is None where nothing was said yet. `running` are the turns that have
    not ended, in the order in which they run. `handover` tells for how long the chat is with an agent that it was
    handed to.
    """

    chat: Chat
    session: Session | None = None
    sessions: Sequence[Session] = ()
    forks: Sequence[SessionFork] = ()
    messages: Sequence[Message] = ()
    turns: Mapping[TurnId, ShownTurn] = field(default_factory=dict[TurnId, ShownTurn])
    votes: Mapping[MessageId, MessageVote] = field(default_factory=dict[MessageId, MessageVote])
    running: Sequence[Turn] = ()
    has_earlier: bool = False
    handover: Handover | None = None


async def get_chat(work: UnitOfWork, owner: str, chat_id: ChatId) -> Chat:
    """Raises NotFound, for a chat of somebody else too."""
    chat = await work.chats.find(owner, chat_id)
    if chat is None:
        raise NotFound(
            "You have no such chat.", code="chat_not_found", fix="It may be deleted: look at the list of your chats."
        )
    return chat


async def get_own_message(work: UnitOfWork, owner: str, message_id: MessageId) -> Message:
    """Raises NotFound: somebody else's message and one that does not exist give the same answer."""
    try:
        message = await work.messages.get(message_id)
        place = (await work.conversations.get(message.conversation_id)).place
    except NotFound:
        raise no_message() from None
    is_own = place.platform == WEB and place.channel == owner
    if not is_own or await work.chats.find(owner, ChatId(place.thread)) is None:
        raise no_message()
    return message


def no_message() -> NotFound:
    return NotFound("You have no such message.", code="message_not_found")


async def read_chat(
    work: UnitOfWork,
    chat: Chat,
    generation: Generation,
    *,
    session_id: SessionId | None = None,
    before: int | None = None,
    limit: int,
) -> ChatTranscript:
    """Reads the newest `limit` messages before the sequence `before`, of that session or of the current one. Raises
    NotFound for a session of another chat.
    """
    sessions = await work.sessions.list_all(chat.conversation_id)
    session = choose_session(sessions, chat, session_id)
    if session is None:
        return ChatTranscript(chat=chat, sessions=sessions)
    messages = await work.messages.list_tail(session.id, limit=limit + 1, before=before)
    has_earlier, messages = len(messages) > limit, messages[-limit:]
    turn_ids = {each.turn_id for each in messages if each.turn_id is not None}
    citations = await work.citations.list_for_all(turn_ids)
    opened = await work.turns.list_turns(conversation_id=chat.conversation_id, limit=MAX_OPEN)
    return ChatTranscript(
        chat=chat,
        session=session,
        sessions=sessions,
        forks=list_forks(sessions, session.id),
        messages=messages,
        turns={
            turn.id: _show_turn(turn, messages, citations.get(turn.id, ()), generation)
            for turn in await work.turns.find_many(turn_ids)
        },
        votes=await work.chats.list_votes([each.id for each in messages if each.role is Role.ASSISTANT]),
        running=[turn for turn in reversed(opened) if turn.status is TurnStatus.OPEN],
        has_earlier=has_earlier,
    )


def choose_session(sessions: Sequence[Session], chat: Chat, session_id: SessionId | None = None) -> Session | None:
    """Returns the session of that id, or the open one of the chat's agent. Raises NotFound."""
    if session_id is None:
        return next((each for each in sessions if each.agent == chat.agent and each.closed_at is None), None)
    found = next((each for each in sessions if each.id == session_id), None)
    if found is None:
        raise NotFound(f"The chat has no session {session_id}.", code="session_not_found")
    return found


def _show_turn(
    turn: Turn, messages: Sequence[Message], citations: Sequence[Citation], generation: Generation
) -> ShownTurn:
    agent = generation.agents.get(turn.agent)
    extras = collect_reply_extras(messages, turn.id, with_reasoning=agent is not None and agent.show_reasoning)
    shown = collect_extras(extras.shown, stored=SCHEME)
    return ShownTurn(
        turn=turn,
        citations=[each for each in citations if each.doubt is None],
        images=(*list_pictures(shown), *extras.images),
        cards=describe_cards(shown),
        reasoning=extras.thoughts,
    )
