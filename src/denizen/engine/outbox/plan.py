"""The end of a turn as platform messages: cut to fit, with pings, cards and files. Pure.

The first piece is a reply, the others follow (inventory C14). Data URIs and markers are taken out of the text and
shown as files and cards; nobody is pinged who is not named (L9, CW7, CW8, CW9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from denizen.domain.attention import AccountPolicy
from denizen.domain.conversation import Place
from denizen.domain.data_uri import extract_data_uris, strip_markers
from denizen.domain.delivery import Content, Delivery, DeliveryKind, DeliveryState, delivery_id
from denizen.domain.extras import extras_of
from denizen.domain.pings import link_pings
from denizen.domain.reasoning import reasoning_text
from denizen.domain.split import split
from denizen.domain.turn import Owed, Turn, TurnStatus
from denizen.engine.outbox.words import NOTHING, failure_text
from denizen.ports.channel import MentionNames


@dataclass(frozen=True, slots=True)
class Ending:
    """Everything that the plan depends on. `earlier` are the messages of the turn that this one supersedes."""

    turn: Turn
    place: Place
    owed: Owed
    account_policy: AccountPolicy
    names: MentionNames
    shown: Sequence[Mapping[str, Any]] = ()
    earlier: Sequence[Delivery] = ()


def plan_deliveries(ending: Ending, *, now: datetime) -> list[Delivery]:
    """Nothing for a turn that was stopped; otherwise the answer's pieces, or a notice and a reaction."""
    turn, account_policy = ending.turn, ending.account_policy
    match turn.status:
        case TurnStatus.DONE:
            contents = plan_contents(turn.reply, ending.names, account_policy, ending.shown) or [Content(NOTHING)]
            planned = _in_order(ending, DeliveryKind.ANSWER, contents, now)
        case TurnStatus.FAILED:
            text = failure_text(turn, account_policy)
            notice = [Content(text)] if account_policy.style.failure_text or ending.owed.ticket else []
            planned = _in_order(ending, DeliveryKind.NOTICE, notice, now)
            if account_policy.style.reactions.failed and ending.owed.reply_to:
                mark = Content(account_policy.style.reactions.failed)
                planned += _in_order(ending, DeliveryKind.REACTION, [mark], now)
        case _:
            return []
    return _over_earlier(planned, ending.earlier)


def plan_contents(
    text: str, names: MentionNames, account_policy: AccountPolicy, shown: Iterable[Mapping[str, Any]] = ()
) -> list[Content]:
    """A text as messages that fit the platform."""
    unmarked = strip_markers(text)
    found = extract_data_uris(unmarked.text)
    pinged = link_pings(found.text, names.users, roles=names.roles)
    pieces = split(
        pinged.text,
        limit=account_policy.style.message_limit,
        collapse_blank_lines=not account_policy.style.keep_blank_lines,
    )
    users, roles = pinged.user_ids, pinged.role_ids
    contents = [
        Content(
            piece,
            ping_users=frozenset(user for user in users if f"<@{user}>" in piece),
            ping_roles=frozenset(role for role in roles if f"<@&{role}>" in piece),
        )
        for piece in pieces
    ]
    given = list(shown)
    front = [
        Content(reasoning_text(str(row["reasoning"]), limit_chars=account_policy.style.message_limit))
        for row in given
        if row.get("reasoning")
    ]
    extras = extras_of([*given, *unmarked.results], found.uris)
    if not extras:
        return [*front, *(contents or ([Content(NOTHING)] if front else []))]
    if contents:
        first, *others = extras
        last = replace(contents[-1], embeds=first.embeds, files=first.files, buttons=first.buttons)
        return [*front, *contents[:-1], last, *others]
    return [*front, *extras]


def _in_order(ending: Ending, kind: DeliveryKind, contents: Sequence[Content], now: datetime) -> list[Delivery]:
    turn, owed = ending.turn, ending.owed
    return [
        Delivery(
            delivery_id(turn.id, kind, position), turn.id, position, kind, owed.account, ending.place, content, now,
            reply_to=owed.reply_to if position == 0 or kind is DeliveryKind.REACTION else "", ticket=owed.ticket,
        )
        for position, content in enumerate(contents)
    ]  # fmt: skip


_PIECES = (DeliveryKind.ANSWER, DeliveryKind.NOTICE, DeliveryKind.PREVIEW)


def _over_earlier(planned: list[Delivery], earlier: Sequence[Delivery]) -> list[Delivery]:
    """The pieces take the place of what was sent before; what is left over of that is taken back (empty content)."""
    sent = [d for d in earlier if d.state is DeliveryState.SENT and d.kind in _PIECES and d.platform_id]
    pieces = [d for d in planned if d.kind is not DeliveryKind.REACTION]
    if not pieces:
        return planned
    taken = [replace(piece, platform_id=old.platform_id) for piece, old in zip(pieces, sent, strict=False)]
    kept = [*taken, *pieces[len(taken) :]]
    first = pieces[0]
    surplus = [
        replace(
            first, id=delivery_id(first.turn_id, first.kind, number), position=number, content=Content(), reply_to="",
            platform_id=old.platform_id,
        )
        for number, old in enumerate(sent[len(taken) :], len(pieces))
    ]  # fmt: skip
    return [*kept, *surplus, *(d for d in planned if d.kind is DeliveryKind.REACTION)]
