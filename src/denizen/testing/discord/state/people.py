"""Who there is: people, bots, and the applications that own the bots."""

from __future__ import annotations

from dataclasses import dataclass, field

from denizen.testing.discord.state.intents import Intent


@dataclass(slots=True, eq=False)
class User:
    """A person or a bot. `accepts_dms` False closes the door to direct messages (50007)."""

    id: int
    name: str
    display_name: str
    bot: bool = False
    accepts_dms: bool = True

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"


@dataclass(slots=True, eq=False)
class Application:
    """A bot's entry in the developer portal. `id` is also the id of its bot user."""

    id: int
    name: str
    token: str
    user: User
    owner: User
    intents: Intent
    description: str = ""
    refused_logins: list[int] = field(default_factory=list[int])
    """The close codes with which the gateway turned this application away."""

    @property
    def mention(self) -> str:
        return self.user.mention
