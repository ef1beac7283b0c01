"""The settings of an account: the server, the login, and what it may do. Records only.

The composition root fills them from `channels.discord`; `account` and `check` read them.
"""

from __future__ import annotations

from dataclasses import field

from denizen.domain.ids import AgentName
from denizen.domain.record import record

PLATFORM = "discord"

POST_LINK = "https://discord.com/channels/{guild}/{room}/{post}"
"""The address of a message. In a direct conversation `guild` is `@me`."""

IDENTIFY_PAUSE_S = 5.0
"""Discord allows one login to the gateway in this time."""
API_URL = "https://discord.com/api/v10"
PORTAL_URL = "https://discord.com/developers/applications"


@record
class DiscordEndpoints:
    """The REST address with its version, and the websocket address. Without a `gateway_url` the REST side names it."""

    api_url: str = API_URL
    gateway_url: str = ""

    @property
    def are_own(self) -> bool:
        """Whether they belong to a server other than Discord's."""
        return self.api_url.rstrip("/") != API_URL


@record
class DiscordAccountSettings:
    """The settings of one login of one agent.

    `commands_guild` is the only guild in which slash commands are registered; empty means all. `owned_commands`
    names commands that an earlier version registered: they may be deleted, while other commands of the application
    are left alone. Without `members_intent` that intent is never asked for, even where the portal enables it. An
    account that `has_voice` may join voice channels.

    `room_limit` is how many messages of one room may wait for the listener; later ones are read from Discord when
    their turn comes. `ready_wait_s` is how long no guild may arrive before the start goes on without the missing
    ones. `identify_pause_s` is the pause before each further login to the gateway (Discord allows one in 5 s).
    """

    agent: AgentName
    token: str = field(repr=False)
    endpoints: DiscordEndpoints = field(default_factory=DiscordEndpoints)
    commands_guild: str = ""
    owned_commands: frozenset[str] = field(default_factory=frozenset[str])
    members_intent: bool = True
    has_voice: bool = False
    room_limit: int = 1000
    ready_wait_s: float = 2.0
    identify_pause_s: float = IDENTIFY_PAUSE_S

    @property
    def token_setting(self) -> str:
        """The config key of the token, for people."""
        return f"channels.discord.accounts.{self.agent}.token"
