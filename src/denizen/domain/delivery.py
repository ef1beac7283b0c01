"""Outgoing messages of a platform: pieces of an answer with their files, and the record that makes each go out once."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from enum import StrEnum

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, TurnId, derive
from denizen.domain.record import record


@record
class OutgoingFile:
    """Bytes with a name, sent along."""

    name: str
    media_type: str
    data: bytes


@record
class EmbedCard:
    """A card below a text. `image` is an https URL, or `attachment://NAME` for a file that is sent along. `colour` is
    that of its edge, as 0xRRGGBB.
    """

    title: str = ""
    text: str = ""
    url: str = ""
    image: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    colour: int | None = None


@record
class MessageButton:
    """Opens `url`, or says `value` to the agent as if the one who presses it had written that; or does `action`, which
    only Denizen itself gives to a button, never a model or a tool. `asks_why` and `asks_answer`: with a text by the one
    who presses it, a reason or an answer.
    """

    label: str
    url: str = ""
    value: str = ""
    action: str = ""
    asks_why: bool = False
    asks_answer: bool = False


@record
class MessageContent:
    """The content of one platform message. Nobody is pinged but the users and roles named here."""

    text: str = ""
    embeds: tuple[EmbedCard, ...] = ()
    files: tuple[OutgoingFile, ...] = ()
    buttons: tuple[MessageButton, ...] = ()
    ping_users: frozenset[str] = field(default_factory=frozenset[str])
    ping_roles: frozenset[str] = field(default_factory=frozenset[str])


class DeliveryKind(StrEnum):
    """The purpose of an outgoing message."""

    ANSWER = "answer"
    NOTICE = "notice"
    """About a failure or a refusal."""
    PREVIEW = "preview"
    """Shows what the agent is doing, until the answer stands."""
    REACTION = "reaction"
    """An emoji on the message that was answered; it is the text of the content."""
    CARD = "card"
    """A call that waits for people, with its buttons."""
    CARD_END = "card_end"
    """Replaces the card of the same turn and position when there is nothing to wait for any more."""


class DeliveryState(StrEnum):
    """How far the sending of a message has come."""

    PENDING = "pending"
    SENDING = "sending"
    """Tried; whether it arrived is known only when it is SENT. After a crash one looks before trying again."""
    SENT = "sent"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"
    """Not wanted any more, or deleted on the platform."""


PIECES = (DeliveryKind.ANSWER, DeliveryKind.NOTICE)
"""The kinds of messages that a turn ends with."""
DUE = (DeliveryState.PENDING, DeliveryState.SENDING)


@record
class DeliveryTarget:
    """Where a message goes. `reply_to` is the platform message that it answers, `ticket` a short-lived right to answer
    a command.
    """

    place: Place
    reply_to: str = ""
    ticket: str = ""


@record(kw_only=True)
class Delivery:
    """One platform message that an agent owes, or sent. `position` orders those of a turn from 0.

    `id` derives from turn, kind and position; `nonce` from `id`: the same piece has the same nonce in every process.
    `platform_id` is what the platform called it once it was sent. `failure` says why it was not, or, where it was, why
    its cards, files and buttons were not.
    """

    id: str
    turn_id: TurnId
    position: int
    kind: DeliveryKind
    agent: AgentName
    target: DeliveryTarget
    content: MessageContent
    created_at: datetime
    state: DeliveryState = DeliveryState.PENDING
    platform_id: str = ""
    attempts: int = 0
    failure: str = ""

    @property
    def nonce(self) -> str:
        """At most 25 characters, as Discord wants it."""
        return derive("n", self.id)[:25]


def delivery_id(turn_id: TurnId, kind: DeliveryKind, position: int) -> str:
    return derive("dlv", turn_id, kind, str(position))
