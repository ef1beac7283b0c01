"""Builders of records that fill a store, for the contract suite and benchmarks. Every time is an hour of one day."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from denizen.domain.conversation import Conversation, Place, Session
from denizen.domain.delivery import Delivery, DeliveryKind, DeliveryTarget, MessageContent, delivery_id
from denizen.domain.ids import AgentName, CallId, MessageId, TurnId
from denizen.domain.message import Author, Message, Part, Role, TextPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Post, Room
from denizen.domain.tool import Tier, ToolCall, ToolResult
from denizen.domain.turn import CallRecord, Step, Turn, TurnStatus
from denizen.domain.usage import Usage
from denizen.domain.verdict import CallOutcome, Decision, Verdict
from denizen.ports.store import Store
from tests.clock import NOON

PLACE = Place("discord", "general")
AGENT = AgentName("denizen")
PLATFORM = "discord"
ANA = Principal(PrincipalKind.PLATFORM_USER, "1", "Ana", frozenset({"mod", "member"}))
USAGE = Usage(1000, 50, 900, 100, Decimal("0.00123456"), 1)


def at(hours: float) -> datetime:
    """So many hours after noon."""
    return NOON + timedelta(hours=hours)


async def open_conversation(store: Store, place: Place = PLACE) -> tuple[Conversation, Session]:
    """A conversation and the agent's session in it, made at noon."""
    async with store.work() as work:
        conversation = await work.conversations.put(place, now=NOON)
        return conversation, await work.sessions.current(conversation.id, AGENT, now=NOON)


def make_message(session: Session, key: str, *parts: Part | str, role: Role = Role.USER, hours: float = 0) -> Message:
    """A message of the session, with texts or other parts; its id when none is given."""
    return Message(
        id=MessageId(key),
        conversation_id=session.conversation_id,
        role=role,
        author=Author("1", "Ana"),
        parts=tuple(TextPart(part) if isinstance(part, str) else part for part in parts or (key,)),
        created_at=at(hours),
        session_id=session.id,
    )


def make_turn(session: Session, key: str, *, principal: Principal = ANA, hours: float = 0) -> Turn:
    """An open turn."""
    return Turn(
        id=TurnId(key),
        conversation_id=session.conversation_id,
        session_id=session.id,
        agent=session.agent,
        principal=principal,
        trigger_id=MessageId(f"trigger-{key}"),
        status=TurnStatus.OPEN,
        opened_at=at(hours),
        options={"model": "fast", "deep": {"list": [1, 2.5, None, "x"]}},
    )


def make_step(turn: Turn, number: int, *, model: str = "m1", usage: Usage = USAGE, hours: float = 0) -> Step:
    """A step of the turn."""
    return Step(
        turn_id=turn.id,
        number=number,
        model=model,
        purpose="act",
        finish_reason="stop",
        usage=usage,
        duration_ms=1234,
        created_at=at(hours),
    )


def make_call(turn: Turn, step: int, position: int) -> CallRecord:
    """A call that was denied."""
    return CallRecord(
        turn_id=turn.id,
        step=step,
        position=position,
        tool_call=ToolCall(CallId(f"call-{step}-{position}"), "shell", {"command": "ls", "depth": [1, {"a": None}]}),
        outcome=CallOutcome(
            Verdict(Decision.DENY, Tier.DANGEROUS, "not here", "rule:shell"),
            ToolResult("refused", is_error=True),
            duration_ms=7,
        ),
        cached=False,
        created_at=at(step + position / 10),
    )


def make_room(key: str, *, parent: str = "", guild: str = "g1") -> Room:
    """A channel."""
    return Room(PLATFORM, key, f"room {key}", guild=guild, parent=parent)


def make_post(key: str, text: str = "", *, room: str = "10", author: str = "1", hours: float | None = None) -> Post:
    """A post. When nothing else is given it says its id, and was written as many minutes after noon."""
    written_at = at(int(key) / 60 if hours is None else hours)
    return Post(PLATFORM, key, room, Author(author, f"user {author}"), text or f"post {key}", written_at)


def make_delivery(
    turn: str, position: int = 0, *, kind: DeliveryKind = DeliveryKind.ANSWER, content: MessageContent | None = None
) -> Delivery:
    """One that is pending, at `PLACE`."""
    key = TurnId(turn)
    text = f"{turn} {kind} {position}"
    return Delivery(
        id=delivery_id(key, kind, position),
        turn_id=key,
        position=position,
        kind=kind,
        agent=AGENT,
        target=DeliveryTarget(PLACE),
        content=content or MessageContent(text),
        created_at=NOON,
    )
