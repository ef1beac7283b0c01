"""One REST request, read and authorised, as the handlers of the routes get it; and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from denizen.testing.discord.acts.acts import Acts
from denizen.testing.discord.rest.form import Form
from denizen.testing.discord.state.access import demand
from denizen.testing.discord.state.channels import Channel
from denizen.testing.discord.state.guilds import Guild
from denizen.testing.discord.state.messages import Attachment, Message
from denizen.testing.discord.state.people import Application, User
from denizen.testing.discord.state.permissions import P, Permission
from denizen.testing.discord.state.realm import Realm
from denizen.testing.discord.state.refusals import forbidden, unauthorized, unknown


@dataclass(frozen=True, slots=True)
class Created:
    """An answer with status 201."""

    body: object


@dataclass(frozen=True, slots=True)
class Call:
    """`path` has the parameters of the route, `files` those of a multipart body by number."""

    acts: Acts
    asker: Application | None
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: object = None
    files: Mapping[int, Attachment] = field(default_factory=dict[int, Attachment])
    reason: str | None = None
    gateway_url: str = ""

    @property
    def realm(self) -> Realm:
        return self.acts.realm

    @property
    def application(self) -> Application:
        """Who asks. Raises 401 for a request without a token where one is needed."""
        if self.asker is None:
            raise unauthorized()
        return self.asker

    @property
    def bot(self) -> User:
        return self.application.user

    @property
    def form(self) -> Form:
        return Form({} if self.body is None else self.body)

    def id(self, name: str) -> int:
        return int(self.path[name])

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A number of the query. Raises 50035 out of bounds."""
        form = Form(dict(self.query))
        value = form.integer(name, low, high)
        form.check()
        return default if value is None else value

    def snowflake(self, name: str) -> int | None:
        form = Form(dict(self.query))
        value = form.snowflake(name)
        form.check()
        return value

    def switch(self, name: str) -> bool:
        """A yes or no of the query."""
        return self.query.get(name, "").lower() in ("true", "1")

    def channel(self, *needed: Permission) -> Channel:
        """The channel of the route. Raises 10003, 50001 or 50013."""
        channel = self.realm.get_channel(self.id("channel_id"))
        demand(self.realm, self.bot, channel, *needed)
        return channel

    def message(self, channel: Channel) -> Message:
        """The message of the route; reading it takes the right to read the history. Raises 10008 and others."""
        demand(self.realm, self.bot, channel, P.READ_MESSAGE_HISTORY)
        return self.realm.get_message(channel, self.id("message_id"))

    def guild(self) -> Guild:
        """The guild of the route, if the bot is in it. Raises 10004."""
        guild = self.realm.get_guild(self.id("guild_id"))
        if self.bot.id not in guild.members:
            raise unknown("Guild")
        return guild

    def guild_of(self, channel: Channel) -> Guild:
        """Raises 50003 for a direct message."""
        guild = self.realm.guild_of(channel)
        if guild is None:
            raise forbidden(50003, "Cannot execute action on a DM channel")
        return guild


Handler = Callable[[Call], object]


@dataclass(frozen=True, slots=True)
class Route:
    """One route. `open` needs no token of a bot: interactions and webhooks carry theirs in the path."""

    method: str
    template: str
    handler: Handler
    open: bool = False
