"""Chats as clients get them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from denizen.domain.chat import Chat
from denizen.domain.handover import Handover
from denizen.domain.ids import CallId, MessageId, TurnId
from denizen.domain.message import FilePart, ImagePart, Part, Role
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.turn import TurnStatus
from denizen.domain.upload import find_upload_path, shown_name
from denizen.engine.chats.reading import ChatTranscript, ShownTurn
from denizen.engine.chats.uploads import Upload
from denizen.engine.inspection.queries import RecordedCall
from denizen.web.api.records import citation_to_wire, messages_to_wire, restore_error, usage_to_wire
from denizen.web.http.problems import describe_problem, fill_in
from denizen_sdk.chats import (
    AnswerExtras,
    AnswerInfo,
    ChatDetails,
    ChatInfo,
    ChatMessage,
    ChatSession,
    ForkInfo,
    HandoverInfo,
    SharedChat,
    SharedMessage,
    UploadInfo,
)

UPLOAD_PATH = "/api/upload/"


def chat_to_wire(chat: Chat) -> ChatInfo:
    return ChatInfo(
        id=chat.id,
        title=chat.title,
        agent=chat.agent,
        created_at=chat.created_at.isoformat(),
        updated_at=chat.updated_at.isoformat(),
        mode=chat.mode,
        share_token=chat.share_token,
        is_pinned=chat.is_pinned,
    )


def details_to_wire(
    shown: ChatTranscript, calls: Mapping[tuple[TurnId, CallId], RecordedCall], reader: Principal
) -> ChatDetails:
    current = shown.session.id if shown.session is not None else ""
    last = _find_last_messages(shown)
    messages: list[ChatMessage] = []
    by_id = {message.id: message for message in shown.messages}
    for info in messages_to_wire(shown.messages, calls, reader):
        message = by_id[MessageId(info.id)]
        vote = shown.votes.get(message.id)
        ended = shown.turns.get(message.turn_id) if message.turn_id and last[message.turn_id] == message.id else None
        messages.append(
            ChatMessage(
                id=info.id,
                role=info.role,
                author=info.author,
                text=info.text,
                created_at=info.created_at,
                sequence=message.sequence,
                turn_id=info.turn_id,
                calls=info.calls,
                uploads=tuple(upload for part in message.parts if (upload := _attachment_to_wire(part))),
                turn=_answer_to_wire(ended) if ended is not None else None,
                feedback=vote.vote if vote is not None else None,
                feedback_reason=vote.reason if vote is not None else "",
            )
        )
    return ChatDetails(
        chat=chat_to_wire(shown.chat),
        session_id=current,
        messages=tuple(messages),
        has_earlier=shown.has_earlier,
        sessions=tuple(
            ChatSession(
                id=session.id,
                agent=session.agent,
                created_at=session.created_at.isoformat(),
                is_current=session.id == current,
                parent_id=session.parent_id or "",
                fork_sequence=session.fork_sequence,
            )
            for session in shown.sessions
        ),
        forks=tuple(ForkInfo(fork.sequence, fork.sessions, fork.current) for fork in shown.forks),
        running=tuple(turn.id for turn in shown.running),
        handover=_handover_to_wire(shown.handover) if shown.handover is not None else None,
    )


def _handover_to_wire(handover: Handover) -> HandoverInfo:
    return HandoverInfo(handover.agent, handover.until.isoformat(), handover.messages_left)


def upload_to_wire(upload: Upload) -> UploadInfo:
    return _describe_upload(upload.path.text, upload.media_type, len(upload.data))


def _describe_upload(path: str, media_type: str, size_bytes: int) -> UploadInfo:
    return UploadInfo(path, UPLOAD_PATH + quote(path), shown_name(path), media_type, size_bytes)


def shared_to_wire(shown: ChatTranscript) -> SharedChat:
    """Returns what everybody may read: questions and answers, and neither calls nor files nor who asked."""
    last = _find_last_messages(shown)
    messages: list[SharedMessage] = []
    for message in shown.messages:
        turn = shown.turns.get(message.turn_id) if message.turn_id is not None else None
        is_answer = message.role is Role.ASSISTANT and turn is not None and last[turn.turn.id] == message.id
        if message.role is Role.USER or (is_answer and turn is not None and turn.turn.status is TurnStatus.DONE):
            messages.append(
                SharedMessage(
                    role=message.role,
                    author=message.author.name if is_answer else "",
                    text=message.text,
                    created_at=message.created_at.isoformat(),
                    citations=tuple(map(citation_to_wire, turn.citations)) if is_answer and turn else (),
                    images=turn.images if is_answer and turn else (),
                )
            )
    return SharedChat(
        title=shown.chat.title,
        agent=shown.chat.agent,
        updated_at=shown.chat.updated_at.isoformat(),
        messages=tuple(messages),
    )


def _find_last_messages(shown: ChatTranscript) -> dict[TurnId, str]:
    """Returns the id of the last message of each turn that people see."""
    return {
        message.turn_id: message.id
        for message in shown.messages
        if message.turn_id is not None and message.role in {Role.USER, Role.ASSISTANT}
    }


def _answer_to_wire(shown: ShownTurn) -> AnswerInfo:
    turn = shown.turn
    took = None if turn.closed_at is None else turn.closed_at - turn.opened_at
    return AnswerInfo(
        id=turn.id,
        status=turn.status,
        agent=turn.agent,
        model=turn.result.model,
        origin="api" if turn.principal.kind is PrincipalKind.API_KEY else "web",
        opened_at=turn.opened_at.isoformat(),
        duration_ms=None if took is None else round(took.total_seconds() * 1000),
        usage=usage_to_wire(turn.result.usage),
        error=fill_in(describe_problem(restore_error(turn.status, turn.result.failure)))
        if turn.status.is_error
        else None,
        citations=tuple(map(citation_to_wire, shown.citations)),
        extras=AnswerExtras(tuple(map(_picture_to_wire, shown.images)), shown.cards, shown.reasoning),
    )


def _picture_to_wire(url: str) -> str:
    path = find_upload_path(url)
    return url if path is None else UPLOAD_PATH + quote(path)


def _attachment_to_wire(part: Part) -> UploadInfo | None:
    if not isinstance(part, ImagePart | FilePart):
        return None
    path = find_upload_path(part.url)
    if path is None:
        return None
    size = part.size_bytes if isinstance(part, FilePart) else 0
    return _describe_upload(path, part.media_type, size)
