"""When an agent speaks on a platform: the policy of its account, and the decision about one message. Pure.

A message that is for the agent may still be refused. A message that is not for the agent gets no reaction at all.
"""

from __future__ import annotations

import re
from dataclasses import field
from decimal import Decimal
from enum import StrEnum

from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.domain.room import Room, RoomKind


class Trigger(StrEnum):
    """Why a message is for the agent."""

    MENTION = "mention"
    ROLE_MENTION = "role_mention"
    REPLY = "reply"
    DIRECT = "direct"
    FOLLOWED = "followed"
    HANDED = "handed"
    """The room was handed to an agent for a while."""
    KEYWORD = "keyword"
    ALWAYS = "always"


class RefusalReason(StrEnum):
    """Why a message that is for the agent is not answered. The value is stored with the message."""

    NOT_ALLOWED = "not_allowed"
    EXCHANGES = "exchanges"
    """Agents have replied to each other too often in a row."""
    MONEY = "money"
    """Agents have spent too much on answering each other."""
    RATE = "rate"
    BUSY = "busy"
    TOO_OLD = "too_old"
    CANNOT_POST = "cannot_post"
    """The account may not post in the room."""


class ThreadMode(StrEnum):
    """How the agent treats threads: NONE ignores them, FOLLOW goes on in a thread in which it was mentioned, OPEN
    opens a thread for every mention in a channel.
    """

    NONE = "none"
    FOLLOW = "follow"
    OPEN = "open"


@record
class AccountScope:
    """Allow lists of ids. An empty list admits everything. `users` and `roles` are one list: either suffices."""

    guilds: frozenset[str] = field(default_factory=frozenset[str])
    channels: frozenset[str] = field(default_factory=frozenset[str])
    users: frozenset[str] = field(default_factory=frozenset[str])
    roles: frozenset[str] = field(default_factory=frozenset[str])


@record(kw_only=True)
class Reactions:
    """Emoji that show the state of a message; empty for none. `waiting`: earlier messages are answered before it."""

    waiting: str = "\N{HOURGLASS WITH FLOWING SAND}"
    seen: str = "\N{EYES}"
    done: str = "\N{THUMBS UP SIGN}"
    failed: str = "\N{WARNING SIGN}\N{VARIATION SELECTOR-16}"


@record
class AccountStaff:
    """Who runs an account. `owners` and `admins` are user ids, `admin_roles` role ids of the platform."""

    owners: frozenset[str] = field(default_factory=frozenset[str])
    admins: frozenset[str] = field(default_factory=frozenset[str])
    admin_roles: frozenset[str] = field(default_factory=frozenset[str])


@record(kw_only=True)
class TriggerPolicy:
    """Which messages are for the agent. `mention_roles` are role ids, `always_channels` ids of channels or threads."""

    direct_messages: bool = True
    mentions: bool = True
    replies: bool = True
    mention_roles: frozenset[str] = field(default_factory=frozenset[str])
    keywords: tuple[re.Pattern[str], ...] = ()
    always_channels: frozenset[str] = field(default_factory=frozenset[str])
    threads: ThreadMode = ThreadMode.FOLLOW


@record(kw_only=True)
class ConversationLimits:
    """How long a conversation goes on, and how late a message is still answered.

    `max_exchanges` bounds the replies of agents to agents in a row. `max_exchange_usd` bounds what agents spend in a
    room within an hour on answering each other; None means any amount. Messages that came while Denizen was away and
    are older than `missed_limit_s` get one reply together. An edit of the question within `edit_window_s` is answered
    anew.
    """

    max_exchanges: int = 3
    max_exchange_usd: Decimal | None = None
    missed_limit_s: float = 3600.0
    edit_window_s: float = 60.0


@record(kw_only=True)
class ReplyStyle:
    """How replies look. `message_limit` is in characters.

    `error_message` replaces the reason of a failure. With `failure_text` off, a failure shows as a reaction only. With
    `tells_refusals` off, people whom the agent may not answer get no reply. With `asks_here` off, calls that wait for
    approval are not shown in the conversation: some rooms have no buttons, and strangers read them.
    """

    message_limit: int = 2000
    keep_blank_lines: bool = False
    preview: bool = True
    reactions: Reactions = field(default_factory=Reactions)
    error_message: str = ""
    failure_text: bool = True
    greeting: str = "Hello! How can I help?"
    tells_refusals: bool = True
    asks_here: bool = True


@record(kw_only=True)
class AccountPolicy:
    """How one account behaves.

    `eagerness`, 0 to 100, decides which of several agents joins in unasked. `switchable` names the agents that anybody
    may let answer in a conversation.
    """

    staff: AccountStaff = field(default_factory=AccountStaff)
    scope: AccountScope = field(default_factory=AccountScope)
    triggers: TriggerPolicy = field(default_factory=TriggerPolicy)
    limits: ConversationLimits = field(default_factory=ConversationLimits)
    style: ReplyStyle = field(default_factory=ReplyStyle)
    eagerness: int = 50
    switchable: frozenset[str] = field(default_factory=frozenset[str])


@record(kw_only=True)
class AuthorFacts:
    """The author of a message. `is_own_account`: another account of this process."""

    id: str
    roles: frozenset[str] = field(default_factory=frozenset[str])
    is_bot: bool = False
    is_own_account: bool = False


@record
class AllowedPeople:
    """The users and roles that people added with `/allow`."""

    users: frozenset[str] = field(default_factory=frozenset[str])
    roles: frozenset[str] = field(default_factory=frozenset[str])


@record(kw_only=True)
class MessageFacts:
    """One message, as far as the decision needs it. `bot_replies` counts the replies of agents in a row in its room."""

    room: Room
    author: AuthorFacts
    text: str = ""
    mentions_me: bool = False
    mentions_others: bool = False
    mentioned_roles: frozenset[str] = field(default_factory=frozenset[str])
    replies_to_me: bool = False
    is_followed: bool = False
    is_handed: bool = False
    bot_replies: int = 0
    allowed: AllowedPeople = field(default_factory=AllowedPeople)


@record
class Attention:
    """The decision about a message: without a trigger nothing is done, without a refusal it is answered."""

    trigger: Trigger | None = None
    refusal: RefusalReason | None = None

    @property
    def answers(self) -> bool:
        return self.trigger is not None and self.refusal is None


def decide_attention(message: MessageFacts, policy: AccountPolicy) -> Attention:
    """Decides whether the message is for the agent, and whether it may be answered.

    A bot is answered only when it mentions the agent explicitly, and `max_exchanges` times in a row at most: otherwise
    two agents that reply to each other would never stop.
    """
    if not in_scope(message.room, policy.scope):
        return Attention()
    trigger = _find_trigger(message, policy.triggers)
    if trigger is None:
        return Attention()
    is_bot = message.author.is_bot
    if not may_talk(message.author, message.allowed, policy):
        # Who did not address the agent is not told about it: that would be noise in other people's talk.
        is_told = trigger in _ADDRESSED and not is_bot
        return Attention(trigger, RefusalReason.NOT_ALLOWED) if is_told else Attention()
    if is_bot and message.bot_replies >= policy.limits.max_exchanges:
        return Attention(trigger, RefusalReason.EXCHANGES)
    return Attention(trigger)


_ADDRESSED = frozenset({Trigger.MENTION, Trigger.ROLE_MENTION, Trigger.REPLY, Trigger.DIRECT})
"""Triggers by which somebody turns to the agent."""


def in_scope(room: Room, scope: AccountScope) -> bool:
    """Whether the account speaks there at all."""
    # A direct message belongs to no guild and no channel, so the lists of these do not concern it.
    if room.kind is RoomKind.DIRECT:
        return True
    return (not scope.guilds or room.guild in scope.guilds) and (
        not scope.channels or room.channel in scope.channels or room.id in scope.channels
    )


def _find_trigger(message: MessageFacts, policy: TriggerPolicy) -> Trigger | None:
    """Returns the first trigger that applies: what addresses the agent comes before what only concerns it."""
    room, from_people = message.room, not message.author.is_bot
    if room.kind is RoomKind.DIRECT:
        return Trigger.DIRECT if policy.direct_messages and from_people else None
    if message.mentions_me and policy.mentions:
        return Trigger.MENTION
    if not from_people:
        return None
    if message.mentioned_roles & policy.mention_roles:
        return Trigger.ROLE_MENTION
    if message.replies_to_me and policy.replies:
        return Trigger.REPLY
    # From here on nobody addressed the agent: it stays out of a message that addresses somebody else.
    if message.mentions_others:
        return None
    if message.is_handed:
        return Trigger.HANDED
    if message.is_followed and policy.threads is not ThreadMode.NONE:
        return Trigger.FOLLOWED
    if {room.id, room.channel} & policy.always_channels:
        return Trigger.ALWAYS
    if any(pattern.search(message.text) for pattern in policy.keywords):
        return Trigger.KEYWORD
    return None


def may_talk(author: AuthorFacts, allowed: AllowedPeople, policy: AccountPolicy) -> bool:
    """Whether that author may talk with the agent.

    Owners, admins and the other accounts of this process always may. Without any list everybody may; with one, those
    who are on it, by their id or by one of their roles.
    """
    if author.is_own_account:
        return True
    if assign_roles(author.id, author.roles, policy.staff) & {RoleName.OWNER, RoleName.ADMIN}:
        return True
    users = policy.scope.users | allowed.users
    roles = policy.scope.roles | allowed.roles
    if not users and not roles:
        return True
    return author.id in users or bool(author.roles & roles)


def name_roles(platform_roles: frozenset[str]) -> frozenset[str]:
    """Returns what platform roles are called among the roles of a principal: `role:ID`."""
    # The prefix keeps a platform role that is named "owner" from becoming an owner.
    return frozenset(f"role:{role}" for role in platform_roles)


def assign_roles(user_id: str, platform_roles: frozenset[str], staff: AccountStaff) -> frozenset[str]:
    """Returns what a platform user is to Denizen: owner, admin or member; and `role:ID` for each platform role."""
    names = name_roles(platform_roles) | {RoleName.MEMBER.value}
    if user_id in staff.owners:
        names |= {RoleName.OWNER.value, RoleName.ADMIN.value}
    if user_id in staff.admins or platform_roles & staff.admin_roles:
        names |= {RoleName.ADMIN.value}
    return names
