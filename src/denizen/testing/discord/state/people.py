"""Users, applications, and gateway intents. Three intents have to be enabled in the portal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any


class GatewayIntent(IntFlag):
    """The intents that a bot names when it identifies, by their documented names."""

    GUILDS = 1 << 0
    GUILD_MEMBERS = 1 << 1
    GUILD_MODERATION = 1 << 2
    GUILD_EXPRESSIONS = 1 << 3
    GUILD_INTEGRATIONS = 1 << 4
    GUILD_WEBHOOKS = 1 << 5
    GUILD_INVITES = 1 << 6
    GUILD_VOICE_STATES = 1 << 7
    GUILD_PRESENCES = 1 << 8
    GUILD_MESSAGES = 1 << 9
    GUILD_MESSAGE_REACTIONS = 1 << 10
    GUILD_MESSAGE_TYPING = 1 << 11
    DIRECT_MESSAGES = 1 << 12
    DIRECT_MESSAGE_REACTIONS = 1 << 13
    DIRECT_MESSAGE_TYPING = 1 << 14
    MESSAGE_CONTENT = 1 << 15
    GUILD_SCHEDULED_EVENTS = 1 << 16
    AUTO_MODERATION_CONFIGURATION = 1 << 20
    AUTO_MODERATION_EXECUTION = 1 << 21
    GUILD_MESSAGE_POLLS = 1 << 24
    DIRECT_MESSAGE_POLLS = 1 << 25


NONE = GatewayIntent(0)
PRIVILEGED = GatewayIntent.GUILD_PRESENCES | GatewayIntent.GUILD_MEMBERS | GatewayIntent.MESSAGE_CONTENT

KNOWN = (~NONE).value
"""All intents that exist. Any other bit in an IDENTIFY is an error."""

_APPLICATION_FLAGS = {
    GatewayIntent.GUILD_PRESENCES: 1 << 13,
    GatewayIntent.GUILD_MEMBERS: 1 << 15,
    GatewayIntent.MESSAGE_CONTENT: 1 << 19,
}


def application_flags(enabled: GatewayIntent) -> int:
    """Returns the flags of an application in fewer than 100 guilds that has enabled these privileged intents."""
    return sum(bit for intent, bit in _APPLICATION_FLAGS.items() if enabled & intent)


@dataclass(frozen=True, slots=True)
class SimPresence:
    """The status of a user, and the activities that a profile shows, as they were sent."""

    status: str = "offline"
    activities: Sequence[Any] = ()


@dataclass(slots=True, eq=False)
class SimUser:
    """A person or a bot. With `accepts_dms` False direct messages are refused (50007). `presence` is None until it is
    set for the first time.
    """

    id: int
    name: str
    display_name: str
    bot: bool = False
    accepts_dms: bool = True
    presence: SimPresence | None = None

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"


@dataclass(slots=True, eq=False)
class SimApplication:
    """A bot's entry in the developer portal. `id` is also the id of its bot user."""

    id: int
    name: str
    token: str
    user: SimUser
    owner: SimUser
    intents: GatewayIntent
    description: str = ""
    refused_logins: list[int] = field(default_factory=list[int])
    """The close codes with which the gateway refused this application."""

    @property
    def mention(self) -> str:
        return self.user.mention
