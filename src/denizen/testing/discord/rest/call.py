"""One REST request, parsed and authorized, as the handlers get it; and forms, which collect everything that is wrong
with a body and refuse it at once (50035).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from denizen.testing.discord.actions.actions import SimActions
from denizen.testing.discord.state.access import require_permission
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.errors import bad_form, unauthorized, unknown
from denizen.testing.discord.state.guilds import SimGuild
from denizen.testing.discord.state.messages import SimAttachment, SimMessage
from denizen.testing.discord.state.people import SimApplication, SimUser
from denizen.testing.discord.state.permissions import ALL, DiscordPermission, P
from denizen.testing.discord.state.store import SimStore

_Fault = tuple[str, str, str]


class Form:
    """One JSON object of a body. The readers return None for what is absent, null or wrong; `check` raises."""

    def __init__(self, body: object, path: str = "", faults: list[_Fault] | None = None) -> None:
        self._path = path
        self._faults: list[_Fault] = [] if faults is None else faults
        self.fields: Mapping[str, Any] = {}
        if isinstance(body, dict):
            self.fields = cast("dict[str, Any]", body)
        else:
            self.fault("", "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")

    def has(self, name: str) -> bool:
        """Whether the field is present, even if null."""
        return name in self.fields

    def given(self, name: str) -> bool:
        """Whether the field is present and not null."""
        return self.fields.get(name) is not None

    def text(self, name: str, limit: int | None = None, *, required: bool = False) -> str | None:
        value = self.fields.get(name)
        if value is None:
            if required:
                self.fault(name, "BASE_TYPE_REQUIRED", "This field is required")
            return None
        if not isinstance(value, str):
            self.fault(name, "STRING_TYPE_CONVERT", f'Could not interpret "{value}" as string.')
            return None
        if limit is not None and len(value) > limit:
            self.fault(name, "BASE_TYPE_MAX_LENGTH", f"Must be {limit} or fewer in length.")
        if required and not value:
            self.fault(name, "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {limit} in length.")
        return value

    def integer(self, name: str, low: int = 0, high: int = 2**53) -> int | None:
        value = self.fields.get(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).lstrip("-").isdigit():
            self.fault(name, "NUMBER_TYPE_COERCE", f'Value "{value}" is not int.')
            return None
        if not low <= int(value) <= high:
            code = "NUMBER_TYPE_MAX" if int(value) > high else "NUMBER_TYPE_MIN"
            self.fault(name, code, f"int value should be between {low} and {high}.")
        return int(value)

    def snowflake(self, name: str, *, required: bool = False) -> int | None:
        value = self.fields.get(name)
        if value is None:
            if required:
                self.fault(name, "BASE_TYPE_REQUIRED", "This field is required")
            return None
        return self._snowflake(name, value)

    def snowflakes(self, name: str) -> list[int]:
        return [
            each
            for index, value in enumerate(self.items(name))
            if (each := self._snowflake(f"{name}.{index}", value)) is not None
        ]

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.fields.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fault(name, "BOOLEAN_TYPE_CONVERT", "Must be either true or false.")
            return default
        return value

    def permissions(self, name: str) -> DiscordPermission | None:
        bits = self.integer(name, 0, 2**63)
        return None if bits is None else DiscordPermission(bits & ALL.value)

    def moment(self, name: str) -> datetime | None:
        value = self.text(name)
        try:
            return None if value is None else datetime.fromisoformat(value)
        except ValueError:
            self.fault(name, "DATE_TIME_TYPE_PARSE", f"Could not parse {value}. Should be ISO8601.")
            return None

    def items(self, name: str, limit: int | None = None) -> list[Any]:
        value = self.fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(name, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
            return []
        found = cast("list[Any]", value)
        if limit is not None and len(found) > limit:
            self.fault(name, "BASE_TYPE_MAX_LENGTH", f"Must be {limit} or fewer in length.")
        return found

    def objects(self, name: str, limit: int | None = None) -> list[dict[str, Any]]:
        """Returns a list of objects; anything else in it is a fault."""
        return [dict(each.fields) for each in self.forms(name, limit)]

    def forms(self, name: str, limit: int | None = None) -> Iterator[Form]:
        for index, value in enumerate(self.items(name, limit)):
            yield Form(value, f"{self._place(name)}.{index}", self._faults)

    def inner(self, name: str) -> Form | None:
        """Returns the object in this field."""
        return Form(self.fields[name], self._place(name), self._faults) if self.given(name) else None

    def fault(self, name: str, code: str, message: str) -> None:
        self._faults.append((self._place(name), code, message))

    def check(self) -> None:
        """Raises 50035 with everything that was found wrong."""
        if self._faults:
            raise bad_form(self._faults)

    def _place(self, name: str) -> str:
        return ".".join(part for part in (self._path, name) if part)

    def _snowflake(self, name: str, value: object) -> int | None:
        if isinstance(value, int | str) and not isinstance(value, bool) and str(value).isdigit():
            return int(value)
        self.fault(name, "NUMBER_TYPE_COERCE", f'Value "{value}" is not snowflake.')
        return None


@dataclass(frozen=True, slots=True)
class CreatedResponse:
    """An answer with status 201."""

    body: object


@dataclass(frozen=True, slots=True)
class RestCall:
    """A request. `path` has the parameters of the route, `files` those of a multipart body by number."""

    acts: SimActions
    asker: SimApplication | None
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: object = None
    files: Mapping[int, SimAttachment] = field(default_factory=dict[int, SimAttachment])
    reason: str | None = None
    gateway_url: str = ""

    @property
    def store(self) -> SimStore:
        return self.acts.store

    @property
    def application(self) -> SimApplication:
        """The application that asks. Raises 401 without a token where one is needed."""
        if self.asker is None:
            raise unauthorized()
        return self.asker

    @property
    def bot(self) -> SimUser:
        return self.application.user

    @property
    def form(self) -> Form:
        return Form({} if self.body is None else self.body)

    def id(self, name: str) -> int:
        return int(self.path[name])

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Returns a number of the query. Raises 50035 out of bounds."""
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
        """Returns a boolean of the query."""
        return self.query.get(name, "").lower() in ("true", "1")

    def channel(self, *needed: DiscordPermission) -> SimChannel:
        """Returns the channel of the route. Raises 10003, 50001 or 50013."""
        channel = self.store.get_channel(self.id("channel_id"))
        require_permission(self.store, self.bot, channel, *needed)
        return channel

    def message(self, channel: SimChannel) -> SimMessage:
        """Returns the message of the route, which takes the right to read the history. Raises 10008 and others."""
        require_permission(self.store, self.bot, channel, P.READ_MESSAGE_HISTORY)
        return self.store.get_message(channel, self.id("message_id"))

    def guild(self) -> SimGuild:
        """Returns the guild of the route, if the bot is in it. Raises 10004."""
        guild = self.store.get_guild(self.id("guild_id"))
        if self.bot.id not in guild.members:
            raise unknown("Guild")
        return guild


Handler = Callable[[RestCall], object]


@dataclass(frozen=True, slots=True)
class RestRoute:
    """One route. `open` needs no bot token: interactions and webhooks carry theirs in the path."""

    method: str
    template: str
    handler: Handler
    open: bool = False
