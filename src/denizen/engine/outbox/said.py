"""What an agent says without a turn: a refusal, a greeting, what a command gave. Pure.

It is about one message, which it claims; the same message never gets two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from denizen.domain.attention import AccountPolicy
from denizen.domain.conversation import Place
from denizen.domain.delivery import Content, Delivery, DeliveryKind, delivery_id
from denizen.domain.ids import turn_id
from denizen.engine.outbox.plan import plan_contents
from denizen.ports.channel import Channel, MentionNames


@dataclass(frozen=True, slots=True)
class Said:
    """`about` is the message that it replies to, `sign` an emoji to put on that. `is_first`: only when nothing was
    decided about the message before; `refusal` is what is remembered of it. With a `key` it is one of several things
    said about that message, and that is what names it.
    """

    place: Place
    about: str
    text: str = ""
    sign: str = ""
    refusal: str = "said"
    is_first: bool = False
    key: str = ""


def plan_said(said: Said, channel: Channel, account_policy: AccountPolicy, *, now: datetime) -> list[Delivery]:
    """The text in pieces, of which the first is a reply, and the sign."""
    turn = turn_id(channel.agent, channel.platform, f"said:{said.key or said.about}")
    owed = [
        (DeliveryKind.NOTICE, at, piece)
        for at, piece in enumerate(plan_contents(said.text, MentionNames(), account_policy))
    ]
    owed += [(DeliveryKind.REACTION, 0, Content(said.sign))] if said.sign else []
    return [
        Delivery(
            delivery_id(turn, kind, position), turn, position, kind, channel.agent, said.place, content, now,
            reply_to=said.about if position == 0 else "",
        )
        for kind, position, content in owed
    ]  # fmt: skip
