"""Plans of platform messages: an answer cut to fit with pings, cards and files; a failure in a sentence; an
announcement.

Pure. A failure is told by the family of its error, without internals; its reference finds the turn in `denizen trace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from denizen.domain.attachments import collect_extras
from denizen.domain.attention import AccountPolicy
from denizen.domain.conversation import Place
from denizen.domain.data_uri import extract_data_uris, strip_markers
from denizen.domain.delivery import (
    PIECES,
    Delivery,
    DeliveryKind,
    DeliveryState,
    DeliveryTarget,
    MessageContent,
    delivery_id,
)
from denizen.domain.ids import turn_id
from denizen.domain.pings import link_pings
from denizen.domain.reasoning import reasoning_text
from denizen.domain.record import record
from denizen.domain.split import split_text
from denizen.domain.turn import ReplyTarget, Turn, TurnStatus
from denizen.ports.channel import Channel, MentionNames

_SAFE = frozenset({"InvalidInput", "NotFound", "LimitExceeded", "NotAllowed"})
"""Families whose own words are meant for who asked."""
_WORDS = {
    "Unavailable": "I cannot reach my model just now. Please try again in a little while.",
    "NeedsAttention": "Something here needs whoever runs me; I cannot answer until then.",
    "NeedsApproval": "This needs somebody's approval first.",
    "Conflict": "Something changed meanwhile. Please try again.",
}
NOT_SHOWN = "I made something that cannot be shown here."
"""In the place of cards and files that the platform refused."""
NOTHING = "I have nothing to show for that."
"""In the place of an answer without a word or a picture: a question never stays without a reply."""

_UNKNOWN = "Something went wrong on my side, and I could not answer."
_OWN = {
    "turn_timeout": "This took too long, so I stopped.",
    "turn_lost": "I was interrupted. Please ask again.",
    # What a provider says about these names accounts and addresses of the operator.
    "model_quota": "My budget for this is used up for now.",
    "model_rejected": "My model refused this request.",
    "context_too_long": "This has become too long for me. `/compact` or `/new` helps.",
}


def failure_text(turn: Turn, account_policy: AccountPolicy) -> str:
    """Returns the configured text, or the sentence of the family, with the reference."""
    failure = turn.result.failure
    if account_policy.style.error_message:
        words = account_policy.style.error_message
    elif failure is None:
        words = _UNKNOWN
    elif failure.code in _OWN:
        words = _OWN[failure.code]
    elif failure.family in _SAFE:
        words = failure.message
    else:
        words = _WORDS.get(failure.family, _UNKNOWN)
    return f"{words}\n-# Reference: {turn.id}"


@record(kw_only=True)
class TurnEnding:
    """Everything that the plan depends on. `earlier` are the messages of the turns that this one supersedes."""

    turn: Turn
    place: Place
    owed: ReplyTarget
    account_policy: AccountPolicy
    names: MentionNames
    shown: Sequence[Mapping[str, Any]] = ()
    earlier: Sequence[Delivery] = ()


def plan_deliveries(ending: TurnEnding, *, now: datetime) -> list[Delivery]:
    """Nothing for a turn that was stopped; otherwise the answer's pieces, or a notice and a reaction."""
    turn, account_policy = ending.turn, ending.account_policy
    match turn.status:
        case TurnStatus.DONE:
            reply = f"**{turn.agent}:** {turn.result.reply}" if ending.owed.names_agent else turn.result.reply
            contents = plan_contents(reply, ending.names, account_policy, ending.shown) or [MessageContent(NOTHING)]
            planned = _in_order(ending, DeliveryKind.ANSWER, contents, now)
        case TurnStatus.FAILED:
            text = failure_text(turn, account_policy)
            notice = [MessageContent(text)] if account_policy.style.failure_text or ending.owed.ticket else []
            planned = _in_order(ending, DeliveryKind.NOTICE, notice, now)
            if account_policy.style.reactions.failed and ending.owed.reply_to:
                mark = MessageContent(account_policy.style.reactions.failed)
                planned += _in_order(ending, DeliveryKind.REACTION, [mark], now)
        case _:
            return []
    return _over_earlier(planned, ending.earlier)


def name_task(turn: Turn) -> Turn:
    """Returns the turn of a background task with a reply that says which task it answers; others as they are."""
    parent = turn.parent
    if parent is None or turn.status is not TurnStatus.DONE:
        return turn
    reply = f"`{parent.task_id}`, which I gave to {turn.agent}, is done:\n{turn.result.reply}"
    return replace(turn, result=replace(turn.result, reply=reply))


def plan_contents(
    text: str, names: MentionNames, account_policy: AccountPolicy, shown: Iterable[Mapping[str, Any]] = ()
) -> list[MessageContent]:
    """A text as messages that fit the platform."""
    unmarked = strip_markers(text)
    found = extract_data_uris(unmarked.text)
    pinged = link_pings(found.text, names.users, roles=names.roles)
    pieces = split_text(
        pinged.text,
        limit=account_policy.style.message_limit,
        collapse_blank_lines=not account_policy.style.keep_blank_lines,
    )
    users, roles = pinged.user_ids, pinged.role_ids
    contents = [
        MessageContent(
            piece,
            ping_users=frozenset(user for user in users if f"<@{user}>" in piece),
            ping_roles=frozenset(role for role in roles if f"<@&{role}>" in piece),
        )
        for piece in pieces
    ]
    given = list(shown)
    front = [
        MessageContent(reasoning_text(str(row["reasoning"]), limit_chars=account_policy.style.message_limit))
        for row in given
        if row.get("reasoning")
    ]
    extras = collect_extras([*given, *unmarked.results], found.uris)
    if not extras:
        return [*front, *(contents or ([MessageContent(NOTHING)] if front else []))]
    if contents:
        first, *others = extras
        last = replace(contents[-1], embeds=first.embeds, files=first.files, buttons=first.buttons)
        return [*front, *contents[:-1], last, *others]
    return [*front, *extras]


def _in_order(
    ending: TurnEnding, kind: DeliveryKind, contents: Sequence[MessageContent], now: datetime
) -> list[Delivery]:
    turn, owed = ending.turn, ending.owed
    return [
        Delivery(
            id=delivery_id(turn.id, kind, position),
            turn_id=turn.id,
            position=position,
            kind=kind,
            agent=owed.account,
            target=DeliveryTarget(
                ending.place, owed.reply_to if position == 0 or kind is DeliveryKind.REACTION else "", owed.ticket
            ),
            content=content,
            created_at=now,
        )
        for position, content in enumerate(contents)
    ]


def _over_earlier(planned: list[Delivery], earlier: Sequence[Delivery]) -> list[Delivery]:
    """The pieces take the place of what was sent before, and what is left over of that is taken back (empty content).
    An answer with more pieces than there are places goes out anew, so that its pieces stand together.
    """
    messages = [d for d in earlier if d.state is DeliveryState.SENT and d.kind in PIECES and d.platform_id]
    gone = {d.platform_id for d in messages if d.content == MessageContent()}
    # What took another's place has the same message.
    sent = [message for message in dict.fromkeys(d.platform_id for d in messages) if message not in gone]
    pieces = [d for d in planned if d.kind is not DeliveryKind.REACTION]
    if not pieces:
        return planned
    free = sent if len(pieces) <= len(sent) else []
    taken = [replace(piece, platform_id=message) for piece, message in zip(pieces, free, strict=False)]
    first = pieces[0]
    surplus = [
        replace(
            first,
            id=delivery_id(first.turn_id, first.kind, number),
            position=number,
            content=MessageContent(),
            target=replace(first.target, reply_to=""),
            platform_id=message,
        )
        for number, message in enumerate(sent[len(taken) :], len(pieces))
    ]
    return [*(taken or pieces), *surplus, *(d for d in planned if d.kind is DeliveryKind.REACTION)]


@record
class Announcement:
    """A text or reaction that is not the answer of a turn, such as a refusal.

    `about` is the message that it replies to, empty for none; `sign` an emoji to put on that. `is_first`: only when
    nothing was decided about the message before; `refusal` is what is remembered of it. With a `key` it is one of
    several things said about that message, and that is what names it. `topic` is said once a minute in a place: then
    the text, but not the sign, and for further messages the sign alone.
    """

    place: Place
    about: str
    text: str = ""
    sign: str = ""
    refusal: str = "said"
    is_first: bool = False
    key: str = ""
    topic: str = ""


def plan_announcement(
    said: Announcement, channel: Channel, account_policy: AccountPolicy, *, now: datetime
) -> list[Delivery]:
    """The text in pieces, of which the first is a reply, and the sign."""
    turn = turn_id(channel.agent, channel.platform, f"said:{said.key or said.about}")
    owed = [
        (DeliveryKind.NOTICE, at, piece)
        for at, piece in enumerate(plan_contents(said.text, MentionNames(), account_policy))
    ]
    owed += [(DeliveryKind.REACTION, 0, MessageContent(said.sign))] if said.sign else []
    return [
        Delivery(
            id=delivery_id(turn, kind, position),
            turn_id=turn,
            position=position,
            kind=kind,
            agent=channel.agent,
            target=DeliveryTarget(said.place, said.about if position == 0 else ""),
            content=content,
            created_at=now,
        )
        for kind, position, content in owed
    ]
