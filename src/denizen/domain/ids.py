"""Typed ids. Ids that must be the same when an event arrives twice are derived; the others are random."""

from __future__ import annotations

import os
from typing import NewType

ConversationId = NewType("ConversationId", str)
SessionId = NewType("SessionId", str)
MessageId = NewType("MessageId", str)
TurnId = NewType("TurnId", str)
AgentName = NewType("AgentName", str)
CallId = NewType("CallId", str)


def derive(prefix: str, *parts: str) -> str:
    """The same id for the same parts, for ever. The parts are length-prefixed, so they cannot run into each other."""
    import hashlib  # a terminal that asks a server makes random ids only, and is to be quick

    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(4, "big"))
        digest.update(data)
    return f"{prefix}_{digest.hexdigest()[:24]}"


def derive_call_key(turn_id: str, step: int, position: int) -> str:
    """Returns the idempotency key of a call that a step of a turn makes."""
    return derive("call", turn_id, f"{step}.{position}")


def fresh(prefix: str) -> str:
    """A new random id."""
    return f"{prefix}_{os.urandom(12).hex()}"


def conversation_id(platform: str, channel: str, thread: str = "") -> ConversationId:
    """Where talk happens: platform, channel and thread name exactly one conversation."""
    return ConversationId(derive("conv", platform, channel, thread))


def turn_id(agent: str, platform: str, message: str) -> TurnId:
    """One trigger for one agent is one turn: the same platform message twice gives the same id."""
    return TurnId(derive("turn", agent, platform, message))
