"""Who may give which command. The one place that says it; `commands.py` checks it before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType

from denizen.domain.attention import Attention, Sighting, decide_attention
from denizen.domain.errors import NotAllowed
from denizen.engine.commands.scene import CommandScene
from denizen.ports.channel import CommandCall
from denizen.ports.inbox import AllowedKind
from denizen.ports.store import UnitOfWork


class Level(IntEnum):
    """ANYBODY also when the agent does not talk with them: what is kept about a person is theirs to see and to end.
    TALKER is whoever the agent talks with there. An owner is an admin too.
    """

    ANYBODY = 0
    TALKER = 1
    ADMIN = 2
    OWNER = 3


PERMISSIONS: Mapping[str, Level] = MappingProxyType(
    {
        "ask": Level.TALKER,
        "new": Level.TALKER,
        "reset": Level.TALKER,
        "agent": Level.TALKER,  # to which agents: `agent.py`
        "model": Level.TALKER,
        "model:user": Level.ADMIN,
        "mode": Level.TALKER,
        "context": Level.TALKER,
        "compact": Level.TALKER,
        "why": Level.TALKER,
        "allow": Level.ADMIN,
        "observer": Level.OWNER,
        "usage": Level.ANYBODY,  # one's own; what else: `usage.py`
        "memory": Level.ANYBODY,
        "reminders": Level.ANYBODY,
        "help": Level.ANYBODY,
    }
)
"""By command, and by `command:option` where an option needs more than its command. Configured ones say it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What somebody is, at an account in a room."""

    attention: Attention
    is_admin: bool
    is_owner: bool

    def may(self, level: Level) -> bool:
        if level is Level.ANYBODY:
            return True
        if not self.attention.answers or level is Level.TALKER:
            return self.attention.answers
        return self.is_owner if level is Level.OWNER else self.is_admin


async def load_standing(work: UnitOfWork, call: CommandCall, at: CommandScene) -> Standing:
    """By the same rule as for messages (inventory V24, T34): a command is as good as a mention."""
    platform = call.room.platform
    sighting = Sighting(
        call.room,
        call.author_id,
        call.roles,
        is_bot=False,
        text="",
        mentions_me=True,
        mentioned_roles=frozenset(),
        replies_to_me=False,
        is_followed=False,
        exchanges=0,
        allowed_users=await work.inbox.list_allowed(at.account, platform, AllowedKind.USER),
        allowed_roles=await work.inbox.list_allowed(at.account, platform, AllowedKind.ROLE),
    )
    return Standing(decide_attention(sighting, replace(at.manners, mentions=True)), at.is_admin, at.is_owner)


def check_standing(standing: Standing, level: Level, what: str) -> None:
    """Raises NotAllowed with the reason. `what` is the command, as people write it."""
    if standing.may(level):
        return
    if standing.attention.trigger is None:
        raise NotAllowed("I do not talk here.", code="command_place", fix="Ask me in another channel.")
    if standing.attention.refusal is not None:
        raise NotAllowed(
            "I may not talk with you.",
            code="command_not_listed",
            why="I talk with certain people only, and you are not on the list.",
            fix="An admin can put you on it with /allow add.",
        )
    if level is Level.OWNER:
        raise NotAllowed(
            f"{what} is for owners only.",
            code="command_owner_only",
            why="Owners are named in the configuration of this account.",
            fix="Ask one of them.",
        )
    raise NotAllowed(
        f"{what} is for admins only.",
        code="command_admin_only",
        why="Admins and owners are named in the configuration of this account.",
        fix="Ask one of them.",
    )


def level_of(call: CommandCall) -> tuple[Level, str]:
    """Of a built-in command with the options that were given, and how people write what needs it."""
    level, what = PERMISSIONS[call.name], f"/{call.name}"
    for option in (name for name, value in call.options.items() if value.strip()):
        own = PERMISSIONS.get(f"{call.name}:{option}", level)
        if own > level:
            level, what = own, f"The option `{option}` of /{call.name}"
    return level, what
