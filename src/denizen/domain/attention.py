"""When an agent speaks on a platform: the rules of its account, and the decision about one message. Pure.

Sources: inventory V24, S35, C14 to C16, T34, C-config-channels, and section 6. A message that is for the agent may
still be refused; what is not for it is passed over in silence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from denizen.domain.principal import RoleName
from denizen.domain.room import Room, RoomKind


class Trigger(StrEnum):
    """Why a message is for the agent."""

    MENTION = "mention"
    ROLE_MENTION = "role_mention"
    REPLY = "reply"
    DIRECT = "direct"
    FOLLOWED = "followed"
    KEYWORD = "keyword"
    ALWAYS = "always"


class RefusalReason(StrEnum):
    """Why a message that is for the agent is not answered. Stored with it; the text for people is elsewhere."""

    NOT_ALLOWED = "not_allowed"
    EXCHANGES = "exchanges"
    """Agents have talked among themselves long enough."""
    MONEY = "money"
    """They have spent enough on that."""
    RATE = "rate"
    BUSY = "busy"
    TOO_OLD = "too_old"


class ThreadMode(StrEnum):
    """FOLLOW a thread in which the agent was mentioned; OPEN one for every mention in a channel; or NONE."""

    NONE = "none"
    FOLLOW = "follow"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class AccountScope:
    """Allow lists. An empty list admits everything; `users` and `roles` together are one list (either suffices)."""

    guilds: frozenset[str] = field(default_factory=frozenset[str])
    channels: frozenset[str] = field(default_factory=frozenset[str])
    users: frozenset[str] = field(default_factory=frozenset[str])
    roles: frozenset[str] = field(default_factory=frozenset[str])


@dataclass(frozen=True, slots=True)
class Reactions:
    """Emoji that show the state of a message; empty for none (inventory S35, C20)."""

    seen: str = ""
    done: str = ""
    failed: str = "\N{WARNING SIGN}\N{VARIATION SELECTOR-16}"


@dataclass(frozen=True, slots=True)
class AccountPolicy:
    """How one account behaves. `owners` and `admins` are user ids, `admin_roles` role ids.

    `missed_limit_s`: messages that came while Denizen was away and are older get one reply together. `edit_window_s`:
    an edit of the question so soon after it is answered anew. `error_message` replaces the reason of a failure;
    `failure_text` off leaves it at the reaction. `switchable` names agents that anybody may switch a talk to.
    `tells_refusals` off leaves people whom it may not answer without a word; `asks_here` off keeps calls that wait for
    approval out of the talk, for rooms without buttons that strangers read. `eagerness`, 0 to 100, decides which of
    several agents joins in unasked; `max_exchange_usd` is what agents may spend in a room within an hour on answering
    each other, None for any amount.
    """

    owners: frozenset[str] = field(default_factory=frozenset[str])
    admins: frozenset[str] = field(default_factory=frozenset[str])
    admin_roles: frozenset[str] = field(default_factory=frozenset[str])
    scope: AccountScope = field(default_factory=AccountScope)
    direct_messages: bool = True
    mentions: bool = True
    replies: bool = True
    mention_roles: frozenset[str] = field(default_factory=frozenset[str])
    keywords: tuple[re.Pattern[str], ...] = ()
    always_channels: frozenset[str] = field(default_factory=frozenset[str])
    threads: ThreadMode = ThreadMode.FOLLOW
    max_exchanges: int = 3
    max_exchange_usd: Decimal | None = None
    eagerness: int = 50
    missed_limit_s: float = 3600.0
    edit_window_s: float = 60.0
    message_limit: int = 2000
    keep_blank_lines: bool = False
    preview: bool = True
    reactions: Reactions = field(default_factory=Reactions)
    error_message: str = ""
    failure_text: bool = True
    greeting: str = "Hello! How can I help?"
    switchable: frozenset[str] = field(default_factory=frozenset[str])
    tells_refusals: bool = True
    asks_here: bool = True


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """One message, as far as the decision needs it. `allowed_*` is the list that `/allow` keeps. `is_own_account` means an
    author who is another account of this process.
    """

    room: Room
    author_id: str
    author_roles: frozenset[str]
    is_bot: bool
    text: str
    mentions_me: bool
    mentioned_roles: frozenset[str]
    replies_to_me: bool
    is_followed: bool
    exchanges: int
    mentions_others: bool = False
    is_own_account: bool = False
    allowed_users: frozenset[str] = field(default_factory=frozenset[str])
    allowed_roles: frozenset[str] = field(default_factory=frozenset[str])


@dataclass(frozen=True, slots=True)
class Attention:
    """What to do about a message: nothing without a trigger, an answer without a refusal."""

    trigger: Trigger | None = None
    refusal: RefusalReason | None = None

    @property
    def answers(self) -> bool:
        return self.trigger is not None and self.refusal is None


def decide_attention(sighting: MessageFacts, account_policy: AccountPolicy) -> Attention:
    """Bots are answered on an explicit mention only (inventory C16), and `max_exchanges` times in a row at most."""
    if not in_scope(sighting.room, account_policy.scope):
        return Attention()
    trigger = _find_trigger(sighting, account_policy)
    if trigger is None:
        return Attention()
    if not may_talk(sighting, account_policy):
        # Who did not address the agent is not told about it: that would be noise in other people's talk.
        is_told = trigger in _ADDRESSED and not sighting.is_bot
        return Attention(trigger, RefusalReason.NOT_ALLOWED) if is_told else Attention()
    if sighting.is_bot and sighting.exchanges >= account_policy.max_exchanges:
        return Attention(trigger, RefusalReason.EXCHANGES)
    return Attention(trigger)


_ADDRESSED = frozenset({Trigger.MENTION, Trigger.ROLE_MENTION, Trigger.REPLY, Trigger.DIRECT})
"""Triggers by which somebody turns to the agent."""


def in_scope(room: Room, scope: AccountScope) -> bool:
    """Whether the account speaks there at all."""
    if room.kind is RoomKind.DIRECT:
        return True
    return (not scope.guilds or room.guild in scope.guilds) and (
        not scope.channels or room.channel in scope.channels or room.id in scope.channels
    )


def _find_trigger(sighting: MessageFacts, account_policy: AccountPolicy) -> Trigger | None:
    """The first that holds."""
    room, from_people = sighting.room, not sighting.is_bot
    if room.kind is RoomKind.DIRECT:
        return Trigger.DIRECT if account_policy.direct_messages and from_people else None
    if sighting.mentions_me and account_policy.mentions:
        return Trigger.MENTION
    if not from_people:
        return None
    if sighting.mentioned_roles & account_policy.mention_roles:
        return Trigger.ROLE_MENTION
    if sighting.replies_to_me and account_policy.replies:
        return Trigger.REPLY
    if sighting.mentions_others:
        return None
    if sighting.is_followed and account_policy.threads is not ThreadMode.NONE:
        return Trigger.FOLLOWED
    if {room.id, room.channel} & account_policy.always_channels:
        return Trigger.ALWAYS
    if any(pattern.search(sighting.text) for pattern in account_policy.keywords):
        return Trigger.KEYWORD
    return None


def may_talk(sighting: MessageFacts, account_policy: AccountPolicy) -> bool:
    """Owners, admins and the other accounts of this process always; others when there is no list, or when they are on
    it, themselves or by a role.
    """
    if sighting.is_own_account:
        return True
    if assign_roles(sighting.author_id, sighting.author_roles, account_policy) & {RoleName.OWNER, RoleName.ADMIN}:
        return True
    users = account_policy.scope.users | sighting.allowed_users
    roles = account_policy.scope.roles | sighting.allowed_roles
    if not users and not roles:
        return True
    return sighting.author_id in users or bool(sighting.author_roles & roles)


def assign_roles(user_id: str, platform_roles: frozenset[str], account_policy: AccountPolicy) -> frozenset[str]:
    """What a platform user is to Denizen: owner, admin or member; and `role:ID` for each role of the platform."""
    names = {f"role:{role}" for role in platform_roles} | {RoleName.MEMBER.value}
    if user_id in account_policy.owners:
        names |= {RoleName.OWNER.value, RoleName.ADMIN.value}
    if user_id in account_policy.admins or platform_roles & account_policy.admin_roles:
        names.add(RoleName.ADMIN.value)
    return frozenset(names)
