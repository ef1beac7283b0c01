"""What an account is made from: where Discord is, whose login it is, and what may be asked of it. Records only.

The composition root fills these from `channels.discord`; `account` and `check` read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from denizen.domain.ids import AgentName

PLATFORM = "discord"

IDENTIFY_PAUSE_S = 5.0
"""Discord allows one login to the gateway in so many seconds."""
API_URL = "https://discord.com/api/v10"
PORTAL_URL = "https://discord.com/developers/applications"


@dataclass(frozen=True, slots=True)
class DiscordEndpoints:
    """REST address with its version, and the websocket. Without a `gateway_url` the REST side is asked for it."""

    api_url: str = API_URL
    gateway_url: str = ""

    @property
    def are_own(self) -> bool:
        """Whether this is another server than Discord's."""
        return self.api_url.rstrip("/") != API_URL


@dataclass(frozen=True, slots=True)
class DiscordAccountSettings:
    """One login of one agent.

    `commands_guild` is the only guild in which slash commands are registered, empty for all. `owned_commands` names
    commands that were registered earlier and may be deleted when they are not wanted any more: others that the
    application has are not ours. `members_intent` off never asks for the members intent, even where it is enabled.
    So many messages of one room may wait to be heard (`room_limit`); later ones are read from Discord when their turn
    comes. `ready_wait_s` is how long silence must last before guilds that do not answer are left out of the start;
    `identify_pause_s` the pause before each login to the gateway but the first (Discord allows one in 5 s).
    """

    agent: AgentName
    token: str = field(repr=False)
    endpoints: DiscordEndpoints = field(default_factory=DiscordEndpoints)
    commands_guild: str = ""
    owned_commands: frozenset[str] = field(default_factory=frozenset[str])
    members_intent: bool = True
    room_limit: int = 1000
    ready_wait_s: float = 2.0
    identify_pause_s: float = IDENTIFY_PAUSE_S

    @property
    def token_setting(self) -> str:
        """Where the token is configured, for people."""
        return f"channels.discord.accounts.{self.agent}.token"
