"""Cards that show people a call that waits for them, and how it ended. Pure.

Everything in it comes from elsewhere: a model chose the arguments, a tool describes itself. So all of it stands on
lines of its own within one code block, which no text can leave, where nobody is pinged and no link is unfolded.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from denizen.domain.approval import (
    OTHER_WAYS,
    Approval,
    ApprovalChoice,
    ApprovalStatus,
    Deciders,
    describe_deciders,
    describe_end,
)
from denizen.domain.delivery import MessageButton, MessageContent
from denizen.domain.json import Json
from denizen.domain.taint import describe_taint
from denizen.domain.tool import Taint, ToolSpec
from denizen.domain.words import truncate

MASK = "•••"
MAX_VALUE_CHARS = 200
MAX_ARGS = 12
MAX_LINE_CHARS = 300
MAX_PREVIEW_CHARS = 1400
MAX_PINGED = 8
"""The whole card is a message of a platform, which has a length."""
MAX_MORE_CHARS = 50
"""The length of the line that counts the arguments that are not shown."""

_SECRET = re.compile(
    r"pass(?:word|wd|phrase)|secret|token|api.?key|authorization|credential|private.?key|cookie", re.IGNORECASE
)
_FENCE = "```"
_HEADS = {
    ApprovalStatus.APPROVED: "\N{WHITE HEAVY CHECK MARK}",
    ApprovalStatus.DENIED: "\N{CROSS MARK}",
    ApprovalStatus.EXPIRED: "\N{HOURGLASS}",
}


def describe_call(
    spec: ToolSpec, args: Mapping[str, Json], *, why: str, taint: Iterable[Taint], change: str = ""
) -> str:
    """Describes the call in lines: what the tool does, what it would change or else its arguments, why people are
    asked. However much these say, they never push out the reason, and what of them is not shown is counted.
    """
    does = _first_line(spec.description) if spec.description.strip() else "(the tool does not say what it does)"
    head = truncate(one_line(does), MAX_LINE_CHARS)
    tail = [truncate(f"Asked because {one_line(why)}.", MAX_LINE_CHARS)]
    if labels := describe_taint(taint):
        tail.append(f"This answer has read {labels}.")
    room = MAX_PREVIEW_CHARS - sum(len(line) + 1 for line in (head, *tail))
    shown = _change_in_lines(change, room) if change else _args_in_lines(mask_secrets(args), room)
    return "\n".join([head, *shown, *tail])


def _change_in_lines(change: str, room: int) -> list[str]:
    written, lines = change.splitlines(), list[str]()
    for each in written:
        line = _counted("".join(map(_visible, each)))
        room -= len(line) + 1
        if room < MAX_MORE_CHARS:
            break
        lines.append(line)
    left = len(written) - len(lines)
    return [*lines, f"  and {left} more lines that are not shown"] if left else lines


def _args_in_lines(shown: list[tuple[str, Json]], room: int) -> list[str]:
    lines: list[str] = []
    for name, value in shown[:MAX_ARGS]:
        line = _counted(f"  {one_line(name)}: {one_line(_value(value))}")
        room -= len(line) + 1
        if room < MAX_MORE_CHARS:
            break
        lines.append(line)
    left = len(shown) - len(lines)
    return [*lines, f"  and {left} more that are not shown"] if left else lines


def mask_secrets(args: Mapping[str, Json]) -> list[tuple[str, Json]]:
    """The arguments without the values of those whose names sound secret, also within others."""
    return [(name, _masked(name, value)) for name, value in args.items()]


def plan_card(approval: Approval, pings: Sequence[str] = (), *, is_orphan: bool = False) -> MessageContent:
    """With its buttons. `pings` are the ids of users who are told of it, as far as there is room for them.
    `is_orphan`: nobody on this platform may decide, so it says who can.
    """
    who, asker = describe_deciders(approval.rule), _code(approval.request.requester_name)
    pinged = pings[:MAX_PINGED]
    absent = f"Nobody here has that role: whoever runs me decides, {OTHER_WAYS}. " if is_orphan else ""
    lines = [
        *([" ".join(f"<@{user}>" for user in pinged)] if pinged else []),
        f"\N{RAISED HAND} **Approval needed** for `{_code(approval.request.tool)}`, asked by `{asker}`",
        _block(approval.request.preview),
        f"-# {who[0].upper()}{who[1:]} may decide. {absent}{_until(approval)}{_mark(approval)}",
    ]
    buttons = [MessageButton("Approve", action=card_action(approval, ApprovalChoice.ONCE))]
    if approval.rule.deciders is not Deciders.QUORUM:
        buttons.append(MessageButton("For an hour here", action=card_action(approval, ApprovalChoice.HOUR)))
    buttons.append(MessageButton("Deny", action=card_action(approval, ApprovalChoice.DENY), asks_why=True))
    return MessageContent("\n".join(lines), buttons=tuple(buttons), ping_users=frozenset(pinged))


def plan_end(approval: Approval) -> MessageContent:
    """Returns the card of a call that was decided."""
    end = describe_end(approval)
    head = _HEADS.get(approval.status, "")
    lines = [
        f"{head} `{_code(approval.request.tool)}`, asked by `{_code(approval.request.requester_name)}`: `{_code(end)}`",
        _block(approval.request.preview),
        f"-# {_mark(approval)}",
    ]
    return MessageContent("\n".join(lines))


def card_action(approval: Approval, choice: ApprovalChoice) -> str:
    """Returns the value of a card's button, which works wherever and whenever it is pressed."""
    return f"{choice.value}:{approval.id}"


def read_action(action: str) -> tuple[ApprovalChoice, str] | None:
    """The inverse of `card_action`; None for what is none."""
    name, _, key = action.partition(":")
    return (ApprovalChoice(name), key) if name in set(ApprovalChoice) and key else None


def one_line(text: str) -> str:
    """Without line breaks, and with every character that cannot be seen, or that turns others round, spelled out."""
    return "".join(map(_visible, " ".join(text.split())))


def _visible(character: str) -> str:
    return f"\\u{ord(character):04x}" if unicodedata.category(character)[0] == "C" else character


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0]


def _value(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _masked(name: str, value: Json) -> Json:
    if _SECRET.search(name):
        return MASK
    if isinstance(value, dict):
        return {key: _masked(key, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_masked("", each) for each in value]
    return value


def _until(approval: Approval) -> str:
    if approval.expires_at is None:
        return ""
    silence = "approved" if approval.rule.grant_on_timeout else "denied"
    return f"Without a word it is {silence} <t:{int(approval.expires_at.timestamp())}:R>. "


def _mark(approval: Approval) -> str:
    """Tells cards apart that say the same."""
    return f"`{approval.id[:12]}`"


def _block(text: str) -> str:
    return f"{_FENCE}text\n{text.replace('`', _TICK)}\n{_FENCE}"


def _code(text: str) -> str:
    return truncate(one_line(text).replace("`", _TICK), 80) or "?"


_TICK = "\N{MODIFIER LETTER GRAVE ACCENT}"
"""Looks like the mark that would end a code block."""


def _counted(text: str) -> str:
    """Cut, and then it says of how much."""
    hidden = len(text) - MAX_VALUE_CHARS
    return text if hidden <= 0 else f"{text[:MAX_VALUE_CHARS]}… ({hidden:,} more characters)"
